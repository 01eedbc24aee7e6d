#include "region_parts.hpp"

#include <collage/op/attributes.hpp>
#include <collage/run/node_group.hpp>

#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

namespace collage::inline v0::report {
namespace {

constexpr std::size_t most_in_one_box = 12;

/// Copies nodes with the values that they read and write. Names stay.
class copier {
 public:
  explicit copier(const graph& from) : from_(from) {}

  /// False if a node cannot be copied.
  bool copy(const node_group& group) {
    for (const std::uint32_t v : group.arguments)
      made_of_[v] = from_.at(v).role == value_role::constant ? to_.constant(from_, v)
                                                             : to_.input(from_.value_name(v), from_.type_of(v));
    for (const std::uint32_t n : group.nodes)
      if (!copy(n)) return false;
    for (const std::uint32_t v : group.outputs) to_.output(from_.value_name(v), made_of_.at(v));
    return true;
  }
  graph finish() { return to_.finish(); }

 private:
  bool copy(std::uint32_t n) {
    const node_record& node = from_.node(n);
    if (node.bodies != 0) return false;
    std::vector<value> operands;
    for (const std::uint32_t v : from_.view().inputs_of(n)) operands.push_back(made_of_.at(v));
    attribute_words words;
    for (const std::uint64_t w : from_.view().words_of(n)) words.word[words.size++] = w;
    const value first = to_.add(*node.kind, operands, words, from_.node_name(n));
    for (std::uint32_t o = 0; o < node.outputs; ++o) {
      const std::uint32_t old = from_.view().output_of(n, o);
      made_of_[old] = {first.index + o};
      if (to_.type_of(made_of_[old]) != from_.type_of(old)) return false;
    }
    return true;
  }

  const graph& from_;
  graph_builder to_;
  std::map<std::uint32_t, value> made_of_;  // by old value
};

}  // namespace

std::optional<region_parts> parts_of(const graph& network, const plan_group& region) {
  if (!std::holds_alternative<group_step>(region.step) || region.nodes.size() <= most_in_one_box) return {};
  copier copied(network);
  if (!copied.copy(group_of(network, region.nodes))) return {};
  region_parts made{copied.finish(), {}};
  for (std::uint32_t n = 0; n < made.network.nodes().size(); ++n) {
    plan_group part;
    part.step = region.step;
    part.kernel = region.kernel;
    part.nodes = {n};
    part.cost_ms = -1;
    made.placed.groups.push_back(std::move(part));
  }
  return made;
}

}  // namespace collage::inline v0::report
