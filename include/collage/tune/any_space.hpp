// Described spaces whose type is hidden, so that one tuner serves those of all backends.
#pragma once

#include <collage/error.hpp>
#include <collage/tune/rank.hpp>
#include <collage/tune/space.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace collage::inline v0::tune {

/// Makes the text of a point.
template <class Text, class Space>
concept text_maker = requires(const Text& texts, const Space& space, const point_of<Space>& point) {
  { texts(space, point) } -> std::convertible_to<std::string>;
};
/// One that reads texts, too: nothing if it is not the text of a point.
template <class Text, class Space>
concept text_reader = requires(const Text& texts, const Space& space, std::string_view words) {
  { texts.parse(space, words) } -> std::same_as<std::optional<point_of<Space>>>;
};

/// The texts of `text_of` and `parse_point`.
struct own_text {
  template <described_space Space>
  std::string operator()(const Space& space, const point_of<Space>& point) const {
    return text_of(space, point);
  }
  template <described_space Space>
  std::optional<point_of<Space>> parse(const Space& space, std::string_view words) const {
    try {
      return parse_point(space, words);
    } catch (const error&) { return std::nullopt; }
  }
};

/// A described space whose type is hidden. Its points have numbers, from 0 on, in the order of `all_points`. Copies share it, and
/// nothing changes it, so threads may, too.
class any_space {
 public:
  /// Enumerates the points. Error (unsupported): there are 2^32 or more of them, or 2^63 or more combinations of values.
  template <described_space Space>
  explicit any_space(Space space) : any_space(std::move(space), own_text()) {}
  /// `texts` makes the texts of configurations, which differ between points. If it has a `parse`, `find` needs no index.
  template <described_space Space, text_maker<Space> Text>
  any_space(Space space, Text texts)
      : held_(std::make_shared<const holder<Space, Text>>(std::move(space), std::move(texts))) {}

  std::size_t size() const { return held_->size(); }
  std::size_t feature_count() const { return held_->feature_count(); }

  // Error (invalid_argument) of all below: a point is not below `size`.

  /// Those of point after point.
  std::vector<float> features(std::span<const std::uint32_t> points) const { return held_->features(points); }
  /// The closed form: only the order counts.
  double estimate(std::uint32_t point) const { return held_->estimate(point); }
  /// The configuration's.
  std::string text(std::uint32_t point) const { return held_->text(point); }
  /// The points that differ in one parameter, by one step: the next value, up and down, of which there is a point.
  std::vector<std::uint32_t> neighbours(std::uint32_t point) const { return held_->neighbours(point); }
  /// The point with a text; nothing if there is none.
  std::optional<std::uint32_t> find(std::string_view words) const { return held_->find(words); }

  /// As `subject_of`.
  model_subject subject(std::string family, std::string machine) const {
    return held_->subject(std::move(family), std::move(machine));
  }

 private:
  struct any_holder {
    virtual ~any_holder() = default;
    virtual std::size_t size() const = 0;
    virtual std::size_t feature_count() const = 0;
    virtual std::vector<float> features(std::span<const std::uint32_t> points) const = 0;
    virtual double estimate(std::uint32_t point) const = 0;
    virtual std::string text(std::uint32_t point) const = 0;
    virtual std::vector<std::uint32_t> neighbours(std::uint32_t point) const = 0;
    virtual std::optional<std::uint32_t> find(std::string_view words) const = 0;
    virtual model_subject subject(std::string family, std::string machine) const = 0;
  };
  template <class Space, class Text>
  class holder;

  std::shared_ptr<const any_holder> held_;
};

/// A point is kept as its place among all combinations of values. Places ascend, and steps of one parameter are far apart by
/// the same number everywhere.
template <class Space, class Text>
class any_space::holder final : public any_holder {
 public:
  holder(Space space, Text texts) : space_(std::move(space)), texts_(std::move(texts)) {
    std::uint64_t all = 1;
    for (std::size_t i = stride_.size(); i-- > 0;) {
      stride_[i] = all;
      const std::uint64_t count = space_.values(i).size();
      if (count > 1 && all > (std::uint64_t{1} << 63) / count) refuse("its values have too many combinations");
      all *= count;
    }
    enumerate(all);
    if (places_.size() > std::numeric_limits<std::uint32_t>::max()) refuse("it has too many points");
  }

  std::size_t size() const override { return places_.size(); }
  std::size_t feature_count() const override { return Space::feature_names.size(); }
  std::vector<float> features(std::span<const std::uint32_t> points) const override {
    std::vector<float> rows;
    rows.reserve(points.size() * feature_count());
    for (const std::uint32_t number : points) {
      const auto features = space_.features(at(number));
      rows.insert(rows.end(), features.begin(), features.end());
    }
    return rows;
  }
  double estimate(std::uint32_t point) const override { return space_.estimate(at(point)); }
  std::string text(std::uint32_t point) const override { return texts_(space_, at(point)); }

  std::vector<std::uint32_t> neighbours(std::uint32_t point) const override {
    std::vector<std::uint32_t> list;
    const std::uint64_t place = place_at(point);
    for (std::size_t i = 0; i < stride_.size(); ++i) {
      const std::uint64_t count = space_.values(i).size(), here = place / stride_[i] % count;
      const auto add_first = [&](std::uint64_t steps, bool is_up) {
        for (std::uint64_t step = 1; step <= steps; ++step) {
          const std::uint64_t away = step * stride_[i];
          const std::optional<std::uint32_t> found = number_of(is_up ? place + away : place - away);
          if (!found) continue;
          list.push_back(*found);
          return;
        }
      };
      add_first(here, false);
      add_first(count - 1 - here, true);
    }
    return list;
  }

  std::optional<std::uint32_t> find(std::string_view words) const override {
    std::optional<std::uint32_t> found;
    if constexpr (text_reader<Text, Space>) {
      const std::optional<point_of<Space>> point = texts_.parse(space_, words);
      if (!point || !are_listed(*point)) return std::nullopt;
      found = number_of(place_of(*point));
    } else {
      std::call_once(is_indexed_, [&] { make_index(); });
      const auto entry = std::ranges::lower_bound(index_, std::hash<std::string_view>()(words), {},
                                                  &std::pair<std::size_t, std::uint32_t>::first);
      for (auto e = entry; e != index_.end() && e->first == entry->first; ++e)
        if (text(e->second) == words) return e->second;
      return std::nullopt;
    }
    return found && text(*found) == words ? found : std::nullopt;
  }

  model_subject subject(std::string family, std::string machine) const override {
    return subject_of<Space>(std::move(family), std::move(machine));
  }

 private:
  /// As `all_points`, and the places come by counting.
  void enumerate(std::uint64_t all) {
    std::array<std::size_t, Space::parameters.size()> which = {};
    point_of<Space> point = {};
    for (std::size_t i = 0; all > 0 && i < point.size(); ++i) point[i] = space_.values(i).front();
    for (std::uint64_t place = 0; place < all; ++place) {
      if (are_together(space_, point)) places_.push_back(place);
      for (std::size_t i = point.size(); i-- > 0;) {
        const std::span<const int> values = space_.values(i);
        which[i] = which[i] + 1 < values.size() ? which[i] + 1 : 0;
        point[i] = values[which[i]];
        if (which[i] > 0) break;
      }
    }
    places_.shrink_to_fit();
  }

  [[noreturn]] static void refuse(const char* why) {
    throw error(error_kind::unsupported, why, std::string("the space ") + Space::name);
  }

  std::uint64_t place_at(std::uint32_t number) const {
    if (number >= places_.size())
      throw error(error_kind::invalid_argument,
                  "there is no point " + std::to_string(number) + " among " + std::to_string(places_.size()),
                  std::string("the space ") + Space::name);
    return places_[number];
  }
  point_of<Space> at(std::uint32_t number) const {
    const std::uint64_t place = place_at(number);
    point_of<Space> point;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const std::span<const int> values = space_.values(i);
      point[i] = values[static_cast<std::size_t>(place / stride_[i] % values.size())];
    }
    return point;
  }
  bool are_listed(const point_of<Space>& point) const {
    for (std::size_t i = 0; i < point.size(); ++i)
      if (!std::ranges::binary_search(space_.values(i), point[i])) return false;
    return true;
  }
  /// The values of the point are listed.
  std::uint64_t place_of(const point_of<Space>& point) const {
    std::uint64_t place = 0;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const std::span<const int> values = space_.values(i);
      place += stride_[i] * static_cast<std::uint64_t>(std::ranges::lower_bound(values, point[i]) - values.begin());
    }
    return place;
  }
  std::optional<std::uint32_t> number_of(std::uint64_t place) const {
    const auto found = std::ranges::lower_bound(places_, place);
    if (found == places_.end() || *found != place) return std::nullopt;
    return static_cast<std::uint32_t>(found - places_.begin());
  }
  void make_index() const {
    index_.reserve(places_.size());
    for (std::uint32_t i = 0; i < places_.size(); ++i) index_.emplace_back(std::hash<std::string>()(text(i)), i);
    std::ranges::sort(index_);
  }

  Space space_;
  Text texts_;
  std::array<std::uint64_t, Space::parameters.size()> stride_ = {};  ///< between the places of neighbouring values
  std::vector<std::uint64_t> places_;
  mutable std::once_flag is_indexed_;
  mutable std::vector<std::pair<std::size_t, std::uint32_t>> index_;  ///< hashes of texts, and the numbers
};

/// The points, the most promising first. Equal predictions keep the order of the points. Without a model, the closed form decides.
inline std::vector<std::uint32_t> order_of(const any_space& space, std::span<const std::uint32_t> points,
                                           const cost_model* model) {
  std::vector<double> promise;
  promise.reserve(points.size());
  if (model != nullptr) {
    const std::vector<float> predicted = model->predict(space.features(points));
    promise.assign(predicted.begin(), predicted.end());
  } else {
    for (const std::uint32_t point : points) promise.push_back(-space.estimate(point));
  }
  std::vector<std::uint32_t> order;
  for (const std::size_t i : order_by(promise)) order.push_back(points[i]);
  return order;
}

}  // namespace collage::inline v0::tune
