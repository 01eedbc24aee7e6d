// Search spaces of kernel families, as types.
//
// A family declares its parameters, which of their values go together, and features of a configuration in closed form. The object
// of a space belongs to one task, such as a convolution of given shape. A point has one value for each parameter. From the
// declarations follow enumeration, samples, neighbors and texts. None but texts and errors allocates.
#pragma once

#include <collage/detail/sentence.hpp>
#include <collage/error.hpp>
#include <collage/tune/random.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace collage::inline v0::tune {

/// One value for each parameter, in the order in which the space declares them.
template <class Space>
using point_of = std::array<int, Space::parameters.size()>;

/// `name` and `version` begin each text; `version` is raised with every change after which an old text would mean another
/// kernel. `parameters` is an array of names. `values` has what a parameter may be for this task, in ascending order.
/// `conflict` says in one sentence why values do not go together, and is empty if they do. It may assume that each is listed.
template <class Space>
concept search_space = requires(const Space& space, std::size_t parameter, const point_of<Space>& point) {
  { Space::name } -> std::convertible_to<const char*>;
  { Space::version } -> std::convertible_to<int>;
  { space.values(parameter) } -> std::same_as<std::span<const int>>;
  { space.conflict(point) } -> std::same_as<detail::sentence>;
};

/// A space with features in closed form. `estimate` is a closed form for the time of a point, in units of its own: only the order
/// of points of one task counts.
template <class Space>
concept described_space = search_space<Space> && requires(const Space& space, const point_of<Space>& point) {
  { space.features(point) } -> std::same_as<std::array<float, Space::feature_names.size()>>;
  { space.estimate(point) } -> std::same_as<double>;
};

/// Whether values go together that are all listed: whether `conflict` is empty. A space may have `bool holds(point)`, which says the
/// same without a sentence: large spaces are enumerated several times faster.
template <search_space Space>
bool are_together(const Space& space, const point_of<Space>& point) {
  if constexpr (requires { space.holds(point); }) return space.holds(point);
  else return space.conflict(point).empty();
}

/// Why a point is not of a space, in one sentence; empty if it is.
template <search_space Space>
detail::sentence fault_of(const Space& space, const point_of<Space>& point) {
  for (std::size_t i = 0; i < point.size(); ++i) {
    const std::span<const int> values = space.values(i);
    if (std::ranges::find(values, point[i]) != values.end()) continue;
    detail::sentence why;
    why << Space::parameters[i] << " is " << point[i];
    if (values.empty()) return why << ", and no value of it is possible here";
    why << ", and must be one of ";
    for (const int& value : values) why << (&value == values.data() ? "" : ", ") << value;
    return why;
  }
  return space.conflict(point);
}

/// All points of a space, in the order of their values, the last parameter first. A range for `for`.
template <search_space Space>
class all_points {
 public:
  class iterator {
   public:
    using value_type = point_of<Space>;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    explicit iterator(const Space& space) : space_(&space) {
      for (std::size_t i = 0; i < point_.size(); ++i) {
        if (space.values(i).empty()) {
          space_ = nullptr;
          return;
        }
        point_[i] = space.values(i).front();
      }
      if (!are_together(space, point_)) ++*this;
    }
    const value_type& operator*() const { return point_; }
    iterator& operator++() {
      do {
        if (!step()) {
          space_ = nullptr;
          return *this;
        }
      } while (!are_together(*space_, point_));
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator& a, std::default_sentinel_t) { return a.space_ == nullptr; }
    friend bool operator==(const iterator& a, const iterator& b) {
      return a.space_ == b.space_ && (a.space_ == nullptr || a.place_ == b.place_);
    }

   private:
    /// The next combination, legal or not; false after the last one.
    bool step() {
      for (std::size_t i = point_.size(); i-- > 0;) {
        const std::span<const int> values = space_->values(i);
        place_[i] = place_[i] + 1 < values.size() ? place_[i] + 1 : 0;
        point_[i] = values[place_[i]];
        if (place_[i] != 0) return true;
      }
      return false;
    }

    const Space* space_ = nullptr;  ///< nothing at the end
    std::array<std::size_t, Space::parameters.size()> place_ = {};
    value_type point_ = {};
  };

  explicit all_points(const Space& space) : space_(&space) {}
  explicit all_points(const Space&&) = delete;  // the space must live as long as its points are listed
  iterator begin() const { return iterator(*space_); }
  static std::default_sentinel_t end() { return {}; }

 private:
  const Space* space_;
};

/// The number of points.
template <search_space Space>
std::size_t count_of(const Space& space) {
  std::size_t count = 0;
  for (auto at = all_points(space).begin(); at != std::default_sentinel; ++at) ++count;
  return count;
}

/// A point that the generator draws, each with the same chance; nothing if the space has none.
template <search_space Space>
std::optional<point_of<Space>> sample(const Space& space, random_source& random) {
  constexpr int tries = 64;
  for (std::size_t i = 0; i < Space::parameters.size(); ++i)
    if (space.values(i).empty()) return std::nullopt;
  for (int t = 0; t < tries; ++t) {
    point_of<Space> point;
    for (std::size_t i = 0; i < point.size(); ++i) point[i] = space.values(i)[random.below(space.values(i).size())];
    if (are_together(space, point)) return point;
  }
  // Few combinations are legal: count them.
  const std::size_t count = count_of(space);
  if (count == 0) return std::nullopt;
  auto at = all_points(space).begin();
  for (std::size_t left = random.below(count); left > 0; --left) ++at;
  return *at;
}

/// A point that differs from `point` in one parameter, each with the same chance; nothing if there is none.
template <search_space Space>
std::optional<point_of<Space>> mutate(const Space& space, const point_of<Space>& point, random_source& random) {
  std::optional<point_of<Space>> chosen;
  std::size_t seen = 0;  // each of them replaces the chosen one with chance 1 / seen
  for (std::size_t i = 0; i < point.size(); ++i)
    for (const int value : space.values(i)) {
      point_of<Space> other = point;
      other[i] = value;
      if (value == point[i] || !are_together(space, other)) continue;
      if (random.below(++seen) == 0) chosen = other;
    }
  return chosen;
}

/// The canonical text, which is the same for equal points only: "winograd-tiles1 tile 4 vectors 2 block 56 rows 14 unroll 4".
/// A space that has a `text` of its own decides.
template <search_space Space>
std::string text_of(const Space& space, const point_of<Space>& point) {
  if constexpr (requires { space.text(point); }) {
    return space.text(point);
  } else {
    std::string text = Space::name + std::to_string(Space::version);
    for (std::size_t i = 0; i < point.size(); ++i)
      text += std::string(" ") + Space::parameters[i] + ' ' + std::to_string(point[i]);
    return text;
  }
}

/// Reads a canonical text. Error (invalid_argument): it is not one, or its point is not of this space. A space that has a
/// `parse` of its own decides.
template <search_space Space>
point_of<Space> parse_point(const Space& space, std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    throw error(error_kind::invalid_argument, why, "the configuration '" + std::string(text) + "'",
                std::string("texts of this space begin with '") + Space::name + std::to_string(Space::version) + "'");
  };
  point_of<Space> point = {};
  if constexpr (requires { space.parse(text); }) {
    point = space.parse(text);
  } else {
    std::string_view rest = text;
    const auto word = [&] {
      const std::string_view found = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), found.size() + 1));
      return found;
    };
    const std::string first = Space::name + std::to_string(Space::version);
    if (word() != first) refuse("it is not of this space and version");
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (word() != Space::parameters[i]) refuse(std::string("the parameter ") + Space::parameters[i] + " is missing");
      const std::string_view digits = word();
      const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), point[i]);
      if (fault != std::errc() || end != digits.data() + digits.size())
        refuse(std::string(Space::parameters[i]) + " is '" + std::string(digits) + "', which is not a number");
    }
    if (text_of(space, point) != text) refuse("it is written as '" + text_of(space, point) + "'");
  }
  if (const detail::sentence why = fault_of(space, point); !why.empty()) refuse({why.text, why.size});
  return point;
}

}  // namespace collage::inline v0::tune
