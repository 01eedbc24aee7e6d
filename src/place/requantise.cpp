// Requantising: passes around the removal of quantisation, and ranges by the names of values.
#include <collage/place/requantise.hpp>

#include <algorithm>
#include <collage/error.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/pool.hpp>
#include <collage/pass/fold_constants.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/pass/remove_dead.hpp>
#include <collage/pass/remove_quantisation.hpp>
#include <collage/run/views.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace {

/// The kinds of the nodes that compute and read a value, and the operands of the first by name.
struct surroundings {
  std::uint64_t producer = 0;
  std::set<std::uint64_t> readers = {};
  std::set<std::string> operands = {}, constants = {};

  surroundings(const graph& network, std::uint32_t v) {
    const graph_view view = network.view();
    if (const std::int32_t node = network.at(v).producer; node >= 0) {
      producer = view.kind_id_of(static_cast<std::uint32_t>(node));
      for (const std::uint32_t x : view.inputs_of(static_cast<std::uint32_t>(node))) {
        operands.insert(network.value_name(x));
        if (network.at(x).role == value_role::constant) constants.insert(network.value_name(x));
      }
    }
    for (const use& reader : view.uses_of(v)) readers.insert(view.kind_id_of(reader.node));
  }
  /// Whether passes left the numbers of a value of this name as they were. `fold_scales` moves factors into the weights of a product, which
  /// get another name, and leaves that of the product.
  bool has_become(const surroundings& now) const {
    if (producer != now.producer) return false;
    return producer != kind_id<struct ops::matmul> ||
           (readers == now.readers && std::ranges::includes(operands, now.constants));
  }
};

class range_list {
 public:
  explicit range_list(const graph& network) : network_(network) {}

  void set(std::uint32_t v, const interval& of, std::optional<std::uint32_t> same_as = {}) {
    value_range r;
    r.value = v;
    r.name = network_.value_name(v);
    r.seen = r.kept = of;
    r.how = quantisation_of(of, quantisation_schema::asymmetric);
    r.same_as = same_as;
    found_.emplace(v, std::move(r));
  }
  /// Gives operators that move or pick numbers the same range before and after, where the file has only one of them.
  void spread() {
    const graph_view view = network_.view();
    const auto nodes = static_cast<std::uint32_t>(network_.nodes().size());
    for (std::uint32_t n = nodes; n-- > 0;) {
      if (!keeps_all(n)) continue;
      const std::uint32_t x = view.inputs_of(n)[0], y = view.output_of(n);
      if (network_.at(x).uses == 1 && !network_.at(x).is_output && has(y) && !has(x)) set(x, found_.at(y).kept);
    }
    for (std::uint32_t n = 0; n < nodes; ++n) {
      if (!detail::moves_or_picks(view, n)) continue;
      const std::uint32_t x = view.inputs_of(n)[0], y = view.output_of(n);
      if (has(x) && !has(y)) set(y, found_.at(x).kept, x);
    }
  }
  std::vector<value_range> list() && {
    std::vector<value_range> all;
    for (auto& [v, range] : found_) all.push_back(std::move(range));
    return all;
  }

 private:
  bool has(std::uint32_t v) const { return found_.contains(v); }
  /// Whether a range of the result is one of the operand as well: smaller numbers than its low end are as good as this end.
  bool keeps_all(std::uint32_t n) const {
    const std::uint64_t id = network_.view().kind_id_of(n);
    return id == kind_id<struct ops::max_pool> || id == kind_id<struct ops::reshape> ||
           id == kind_id<struct ops::transpose>;
  }

  const graph& network_;
  std::map<std::uint32_t, value_range> found_;
};

}  // namespace

requantised_network requantise(const graph& quantised) {
  const unquantised_network made = remove_quantisation(remove_dead(fold_constants(quantised)));
  if (made.intervals.empty())
    throw error(error_kind::invalid_argument, "no value is quantised to 8 bits by one known scale and zero point",
                "requantise", "take the network as it is");
  std::map<std::string, surroundings> before;
  for (std::uint32_t v = 0; v < made.network.values().size(); ++v)
    if (made.intervals.contains(made.network.value_name(v)))
      before.emplace(made.network.value_name(v), surroundings(made.network, v));
  requantised_network result;
  // Whatever their size, weights are no integers any more.
  result.network = optimise(
      fold_constants(made.network, {.largest = std::numeric_limits<std::size_t>::max(), .leaves_weights = false}));
  range_list ranges(result.network);
  for (std::uint32_t v = 0; v < result.network.values().size(); ++v) {
    const auto known = made.intervals.find(result.network.value_name(v));
    if (known == made.intervals.end() || result.network.at(v).role == value_role::constant ||
        !before.at(known->first).has_become(surroundings(result.network, v)))
      continue;
    ranges.set(v, {known->second.low, known->second.high});
  }
  ranges.spread();
  result.ranges.fingerprint = result.network.fingerprint();
  result.ranges.top.values = std::move(ranges).list();
  return result;
}

}  // namespace collage::inline v0
