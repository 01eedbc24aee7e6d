#include <collage/run/shape_formulas.hpp>

#include <collage/detail/memory_check.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/extents.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

namespace collage::inline v0 {
namespace {

/// factor * floor((x + shift) / divisor) + sum, where 0 <= shift < divisor.
struct formula_of_one {
  std::int64_t factor = 0, shift = 0, divisor = 1, sum = 0;

  std::int64_t floor_of(std::int64_t x) const { return (x + shift) / divisor; }
  std::int64_t operator()(std::int64_t x) const { return factor * floor_of(x) + sum; }
  bool is_constant() const { return factor == 0; }
  /// The greatest common divisor of factor and sum.
  std::int64_t content() const { return std::max<std::int64_t>(std::gcd(factor, sum), 1); }

  /// Without the sum: "2 N", "floor((N + 1) / 2)".
  std::string term(const std::string& name) const {
    std::string text = name;
    if (shift != 0) text += " + " + std::to_string(shift);
    if (divisor != 1) {
      const bool is_ceiling = shift == divisor - 1;
      text = (is_ceiling ? "ceil(" + name : "floor(" + (shift == 0 ? name : "(" + text + ")")) + " / " +
             std::to_string(divisor) + ")";
    }
    return factor == 1 ? text : std::to_string(factor) + " " + text;
  }
  std::string text(const std::string& name) const {
    if (is_constant()) return std::to_string(sum);
    return term(name) + (sum == 0 ? "" : sum > 0 ? " + " + std::to_string(sum) : " - " + std::to_string(-sum));
  }
};

/// An extent at which a dimension was seen, and what it was there.
using sightings = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// The formula with the smallest divisor that holds everywhere; nothing if there is none. One sighting says that nothing varies.
std::optional<formula_of_one> formula_for(const sightings& seen) {
  constexpr std::int64_t most_divisor = 64;
  constexpr std::size_t fewest = 4;  // two points lie on a line in any case
  const bool is_constant = std::ranges::all_of(seen, [&](const auto& s) { return s.second == seen.front().second; });
  if (is_constant) return formula_of_one{0, 0, 1, seen.front().second};
  if (std::ranges::all_of(seen, [](const auto& s) { return s.first == s.second; })) return formula_of_one{1, 0, 1, 0};
  if (seen.size() < fewest) return std::nullopt;
  for (std::int64_t divisor = 1; divisor <= most_divisor; ++divisor)
    for (std::int64_t shift = 0; shift < divisor; ++shift) {
      formula_of_one f{1, shift, divisor, 0};
      const auto& [x, y] = seen.front();
      const auto other =
          std::ranges::find_if(seen, [&](const auto& s) { return f.floor_of(s.first) != f.floor_of(x); });
      if (other == seen.end()) continue;
      const std::int64_t steps = f.floor_of(other->first) - f.floor_of(x), rise = other->second - y;
      if (rise % steps != 0) continue;
      f.factor = rise / steps;
      f.sum = y - f.factor * f.floor_of(x);
      if (f.factor != 0 && std::ranges::all_of(seen, [&](const auto& s) { return f(s.first) == s.second; })) return f;
    }
  return std::nullopt;
}

/// Where an open extent stands in the inputs. Those that vary together are one.
struct open_extent {
  struct place {
    std::size_t input = 0, dimension = 0;
    std::int64_t more = 0;  ///< than the extent
  };
  std::string name;
  std::vector<place> places;
  std::int64_t usual = 0;
};

std::vector<open_extent> open_extents_of(const network_source& source, std::span<const shape> dims) {
  std::vector<open_extent> list;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const open_port& port = source.inputs()[i];
    for (std::size_t d = 0; d < dims[i].size(); ++d) {
      if (port.has_rank && port.dims[d] >= 0) continue;
      const std::string place = port.name + "[" + std::to_string(d) + "]";
      const std::string symbol = d < port.symbols.size() ? port.symbols[d] : "";
      const auto has_name = [&](const open_extent& e) { return !symbol.empty() && e.name == symbol; };
      const auto found = std::ranges::find_if(list, has_name);
      // Files use symbols loosely: the places of one with two extents have names of their own.
      if (found != list.end() && found->usual == dims[i][d]) found->places.push_back({i, d, 0});
      else list.push_back({symbol.empty() || found != list.end() ? place : symbol, {{i, d, 0}}, dims[i][d]});
    }
  }
  return list;
}

/// A network that was made at some extents.
class seen_network {
 public:
  seen_network(const graph& network, const std::vector<std::int64_t>& at) : extents(at) {
    for (const node_record& n : network.nodes()) kinds_.push_back(n.kind);
    for (std::uint32_t v = 0; v < network.values().size(); ++v) {
      dims.push_back(network.type_of(v).dims);
      names.push_back(network.value_name(v));
    }
  }
  bool has_operators_of(const seen_network& other) const {
    return kinds_ == other.kinds_ && std::ranges::equal(dims, other.dims, {}, &shape::rank, &shape::rank);
  }

  std::vector<std::int64_t> extents;  ///< of all that are open
  std::vector<shape> dims;            ///< of all values
  std::vector<std::string> names;

 private:
  std::vector<const kind_info*> kinds_;
};

/// Makes networks of zeros, which need no memory that is touched.
class network_maker {
 public:
  network_maker(const network_source& source, std::span<const shape> dims)
      : open(open_extents_of(source, dims)), source_(source), dims_(dims.begin(), dims.end()) {}

  std::vector<std::int64_t> usual() const {
    std::vector<std::int64_t> list;
    for (const open_extent& e : open) list.push_back(e.usual);
    return list;
  }
  seen_network make(const std::vector<std::int64_t>& extents) {
    std::vector<shape> dims = dims_;
    for (std::size_t i = 0; i < open.size(); ++i)
      for (const open_extent::place& p : open[i].places) dims[p.input][p.dimension] = extents[i] + p.more;
    std::vector<given_value> given;
    std::size_t most = 1;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const open_port& port = source_.inputs()[i];
      given.push_back({port.name, {nullptr, {port.type, dims[i]}}});
      most = std::max(most, given.back().contents.type.bytes());
    }
    detail::check_memory(most, "the zeros of an input");
    const std::unique_ptr<void, void (*)(void*)> zeros(std::calloc(most, 1), &std::free);
    if (zeros == nullptr) throw error(error_kind::environment, "out of memory for the zeros of an input", "shapes");
    for (given_value& g : given) g.contents.data = static_cast<const std::byte*>(zeros.get());
    return {source_.make(nullptr, given).network, extents};
  }
  /// Nothing where no network can be made.
  std::optional<seen_network> try_to_make(const std::vector<std::int64_t>& extents) {
    try {
      return make(extents);
    } catch (const error&) {
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {}
    return std::nullopt;
  }

  std::vector<open_extent> open;

 private:
  const network_source& source_;
  std::vector<shape> dims_;
};

/// The formulas of one dimension in each open extent, while the others are as usual.
class dimension_formula {
 public:
  dimension_formula(std::vector<std::optional<formula_of_one>> each, std::int64_t usual)
      : each_(std::move(each)), usual_(usual) {}

  bool depends_on(std::size_t open) const { return !each_[open] || !each_[open]->is_constant(); }

  /// The text of the formula that holds at all networks that were seen; "?" if none does.
  std::string text(const std::vector<open_extent>& open, const std::vector<std::int64_t>& usual,
                   std::span<const seen_network> together, std::size_t value, std::size_t d) const {
    std::vector<std::size_t> parts;
    for (std::size_t i = 0; i < each_.size(); ++i) {
      if (!each_[i]) return "?";
      if (depends_on(i)) parts.push_back(i);
    }
    const auto is_right = [&](const auto& compute) {
      return std::ranges::all_of(together,
                                 [&](const seen_network& n) { return compute(n.extents) == n.dims[value][d]; });
    };
    if (parts.empty()) return is_right([&](const auto&) { return usual_; }) ? std::to_string(usual_) : "?";
    if (parts.size() == 1) {
      const std::size_t i = parts[0];
      return is_right([&](const auto& at) { return (*each_[i])(at[i]); }) ? each_[i]->text(open[i].name) : "?";
    }
    if (together.empty()) return "?";  // nothing says how they go together
    if (const std::int64_t factor = factor_of(parts, usual);
        factor != 0 && is_right([&](const auto& at) { return product(parts, at, factor); }))
      return product_text(parts, factor, open);
    if (is_right([&](const auto& at) { return sum(parts, at); })) return sum_text(parts, open);
    return "?";
  }

 private:
  /// A formula divided by what its numbers have in common.
  formula_of_one primitive(std::size_t i) const {
    formula_of_one f = *each_[i];
    const std::int64_t content = f.content();
    f.factor /= content;
    f.sum /= content;
    return f;
  }
  /// Nothing if it is too large for a number.
  std::optional<std::int64_t> product(const std::vector<std::size_t>& parts, const std::vector<std::int64_t>& at,
                                      std::int64_t factor) const {
    std::int64_t all = factor;
    for (const std::size_t i : parts)
      if (__builtin_mul_overflow(all, primitive(i)(at[i]), &all)) return std::nullopt;
    return all;
  }
  /// The number by which the product is multiplied; 0 if it is not whole.
  std::int64_t factor_of(const std::vector<std::size_t>& parts, const std::vector<std::int64_t>& usual) const {
    const std::int64_t all = product(parts, usual, 1).value_or(0);
    return all == 0 || usual_ % all != 0 ? 0 : usual_ / all;
  }
  std::int64_t sum(const std::vector<std::size_t>& parts, const std::vector<std::int64_t>& at) const {
    std::int64_t all = usual_;
    for (const std::size_t i : parts) all += (*each_[i])(at[i]) - usual_;
    return all;
  }
  std::string product_text(const std::vector<std::size_t>& parts, std::int64_t factor,
                           const std::vector<open_extent>& open) const {
    std::string text = factor == 1 ? "" : std::to_string(factor);
    for (const std::size_t i : parts) {
      const formula_of_one f = primitive(i);
      const std::string one = f.text(open[i].name);
      text += (text.empty() ? "" : " ") + (f.sum == 0 && f.shift == 0    ? one
                                           : f.sum == 0 && f.divisor > 1 ? one
                                                                         : "(" + one + ")");
    }
    return text;
  }
  std::string sum_text(const std::vector<std::size_t>& parts, const std::vector<open_extent>& open) const {
    std::string text;
    std::int64_t rest = usual_;
    for (const std::size_t i : parts) {
      text += (text.empty() ? "" : " + ") + each_[i]->term(open[i].name);
      rest += each_[i]->sum - usual_;
    }
    return text + (rest == 0 ? "" : rest > 0 ? " + " + std::to_string(rest) : " - " + std::to_string(-rest));
  }

  std::vector<std::optional<formula_of_one>> each_;
  std::int64_t usual_;
};

/// Networks at further extents of one that is open, and of several.
class tried_networks {
 public:
  std::vector<std::vector<seen_network>> of_each;
  std::vector<seen_network> together;
  std::vector<bool> decides_operators;

  tried_networks(network_maker& maker, const seen_network& first, double seconds)
      : maker_(maker),
        first_(first),
        end_(clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds))) {
    vary_each();
    if (join_stuck()) vary_each();
    vary_together();
  }

 private:
  using clock = std::chrono::steady_clock;

  /// A network with the operators of the first; nothing if there is none.
  std::optional<seen_network> look(const std::vector<std::int64_t>& extents, bool& has_others) const {
    if (clock::now() > end_) return std::nullopt;
    std::optional<seen_network> seen = maker_.try_to_make(extents);
    if (!seen || seen->has_operators_of(first_)) return seen;
    has_others = true;
    return std::nullopt;
  }
  void vary_each() {
    constexpr std::int64_t further[] = {1, 2, 3, 32, 5, 64, 8, 16, 33, 7, 31, 13};
    of_each.assign(maker_.open.size(), {});
    decides_operators.assign(maker_.open.size(), false);
    for (std::size_t i = 0; i < maker_.open.size(); ++i) {
      of_each[i].push_back(first_);
      of_each[i].back().extents = maker_.usual();
    }
    for (const std::int64_t more : further)
      for (std::size_t i = 0; i < maker_.open.size(); ++i) {
        std::vector<std::int64_t> at = maker_.usual();
        at[i] += more;
        bool has_others = false;
        if (std::optional<seen_network> seen = look(at, has_others)) of_each[i].push_back(*std::move(seen));
        if (has_others) decides_operators[i] = true;
      }
  }
  /// Makes one of the extents that could not vary alone. False: there are not several.
  bool join_stuck() {
    std::vector<open_extent> joined;
    std::optional<std::size_t> first;
    std::size_t stuck = 0;
    for (std::size_t i = 0; i < maker_.open.size(); ++i) {
      const open_extent& e = maker_.open[i];
      const bool is_stuck = of_each[i].size() == 1 && !decides_operators[i];
      stuck += is_stuck ? 1 : 0;
      if (!is_stuck || !first) {
        if (is_stuck) first = joined.size();
        joined.push_back(e);
        continue;
      }
      for (const open_extent::place& p : e.places)
        joined[*first].places.push_back({p.input, p.dimension, p.more + e.usual - joined[*first].usual});
    }
    if (stuck < 2) return false;
    maker_.open = std::move(joined);
    return true;
  }
  void vary_together() {
    constexpr std::int64_t several[][3] = {{3, 5, 2}, {8, 1, 7},    {16, 9, 4}, {5, 32, 11},
                                           {2, 2, 2}, {16, 16, 16}, {7, 7, 7}};
    if (maker_.open.size() < 2) return;
    for (const auto& more : several) {
      std::vector<std::int64_t> at = maker_.usual();
      for (std::size_t i = 0; i < at.size(); ++i) at[i] += more[i % 3];
      bool has_others = false;
      if (std::optional<seen_network> seen = look(at, has_others)) together.push_back(*std::move(seen));
    }
  }

  network_maker& maker_;
  const seen_network& first_;
  clock::time_point end_;
};

/// Throws if the shapes cannot be those of the inputs.
void check_shapes(const network_source& source, std::span<const shape> dims) {
  bool is_right = dims.size() == source.inputs().size();
  for (const shape& s : dims) is_right = is_right && s.is_concrete() && detail::is_countable(s);
  if (!is_right)
    throw error(error_kind::invalid_argument,
                "needs the shapes of all " + std::to_string(source.inputs().size()) + " inputs", "shape formulas");
}

}  // namespace

shape_formulas shape_formulas_of(const network_source& source, std::span<const shape> dims, double seconds) {
  check_shapes(source, dims);
  network_maker maker(source, dims);
  shape_formulas made;
  if (maker.open.empty()) return made;
  const seen_network first = maker.make(maker.usual());
  const tried_networks tried(maker, first, seconds);
  const std::vector<std::int64_t> usual = maker.usual();
  const std::size_t count = maker.open.size();
  for (std::size_t i = 0; i < count; ++i) {
    made.open.push_back(maker.open[i].name);
    if (tried.decides_operators[i]) made.decides_operators.push_back(maker.open[i].name);
    if (tried.of_each[i].size() == 1) made.only_usual.push_back(maker.open[i].name);
  }
  for (std::size_t v = 0; v < first.dims.size(); ++v) {
    shape_formula& value = made.values.emplace_back(shape_formula{first.names[v]});
    std::vector<bool> is_needed(count);
    for (std::size_t d = 0; d < first.dims[v].size(); ++d) {
      std::vector<std::optional<formula_of_one>> each;
      for (std::size_t i = 0; i < count; ++i) {
        sightings seen;
        for (const seen_network& n : tried.of_each[i]) seen.emplace_back(n.extents[i], n.dims[v][d]);
        each.push_back(formula_for(seen));
      }
      const dimension_formula all(std::move(each), first.dims[v][d]);
      value.extents.push_back(all.text(maker.open, usual, tried.together, v, d));
      // A dimension that varies with several alone does not vary with any.
      bool is_alone = false;
      for (std::size_t i = 0; i < count; ++i) is_alone = is_alone || all.depends_on(i);
      for (std::size_t i = 0; i < count; ++i)
        is_needed[i] = is_needed[i] || all.depends_on(i) || (!is_alone && value.extents.back() == "?");
    }
    for (std::size_t i = 0; i < count; ++i)
      if (is_needed[i]) value.depends_on.push_back(maker.open[i].name);
  }
  return made;
}

}  // namespace collage::inline v0
