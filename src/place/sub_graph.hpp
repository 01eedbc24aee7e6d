// A group of nodes as a network of its own.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/kind.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/measuring.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/node_group.hpp>
#include <collage/set/candidate.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "wire.hpp"

namespace collage::inline v0::detail {

/// A network whose nodes are those of a group. Values from outside are its inputs and constants, and values that are read outside
/// are its outputs.
struct sub_graph {
  graph network;
  place_candidates candidates;  ///< the candidates to measure, all for this group
  std::vector<std::uint32_t> asked;
};

/// Extracts the group of the candidates from its network. Values and nodes keep their order and names. `make` returns nothing if a
/// request cannot describe the whole group, or if a candidate would compute something else there; `why_not` then says why.
class sub_graph_maker {
 public:
  sub_graph_maker(const graph& from, backend_table backends, const place_candidates& candidates,
                  std::span<const std::uint32_t> asked)
      : from_(from), backends_(backends), candidates_(candidates), asked_(asked), new_of_(from.values().size(), none) {}

  std::optional<sub_graph> make() {
    nodes_ = candidates_.groups[candidates_.list[asked_.front()].group].nodes;
    if (!copy_values() || !copy_candidates()) return std::nullopt;
    return std::move(made_);
  }
  const std::string& why_not() const { return why_not_; }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  bool refuse(const std::string& why) {
    why_not_ = why;
    return false;
  }

  bool is_inside(std::uint32_t v) const {
    const std::int32_t producer = from_.at(v).producer;
    return producer >= 0 && std::ranges::binary_search(nodes_, static_cast<std::uint32_t>(producer));
  }

  bool copy_values() {
    const graph_view view = from_.view();
    std::vector<std::uint32_t> values;  // values read from outside, and the first output of each node
    for (const std::uint32_t n : nodes_) {
      values.push_back(view.output_of(n));
      for (const std::uint32_t v : view.inputs_of(n))
        if (!is_inside(v)) values.push_back(v);
    }
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    graph_builder to;
    for (const std::uint32_t v : values) {
      const value_record& r = from_.at(v);
      if (is_inside(v)) {
        if (!copy_node(to, static_cast<std::uint32_t>(r.producer))) return false;
      } else if (r.role != value_role::constant) {
        new_of_[v] = to.input(from_.value_name(v), r.type).index;
      } else {
        const constant_data& data = from_.constant(v);
        if (data.bytes == nullptr) return refuse("constant " + from_.value_name(v) + " has no contents");
        new_of_[v] = to.constant(from_, v).index;
        graph_builder trial;
        if (r.has_scalar !=
            (data.source == contents_source::given && trial.at(trial.constant("trial", r.type, data.bytes)).has_scalar))
          return refuse("constant " + from_.value_name(v) +
                        " cannot be copied: the copy would have another known value");
      }
    }
    for (const std::uint32_t n : nodes_)
      for (std::uint32_t i = 0; i < from_.node(n).outputs; ++i) {
        const std::uint32_t v = view.output_of(n, i);
        const auto readers = view.uses_of(v);
        if (from_.at(v).is_output || std::any_of(readers.begin(), readers.end(), [&](const use& u) {
              return !std::ranges::binary_search(nodes_, u.node);
            }))
          to.output({new_of_[v]});
      }
    made_.network = to.finish();
    return true;
  }

  bool copy_node(graph_builder& to, std::uint32_t n) {
    const node_record& node = from_.node(n);
    if (node.bodies != 0) return refuse("node " + from_.node_name(n) + " owns subgraphs");
    std::vector<value> operands;
    for (const std::uint32_t v : from_.view().inputs_of(n)) {
      if (new_of_[v] == none) return refuse("the network's values are not in topological order");
      operands.push_back({new_of_[v]});
    }
    attribute_words words;
    for (const std::uint64_t w : from_.view().words_of(n)) words.word[words.size++] = w;
    const value first = to.add(*node.kind, operands, words, from_.node_name(n));
    new_node_.push_back(n);
    for (std::uint32_t i = 0; i < node.outputs; ++i) {
      const std::uint32_t v = from_.view().output_of(n, i);
      new_of_[v] = first.index + i;
      if (new_of_[v] >= first.index + node.outputs || to.type_of({new_of_[v]}) != from_.type_of(v))
        return refuse("node " + from_.node_name(n) + " gets another shape when it is copied alone");
    }
    return true;
  }

  /// The number of an old node in the new graph; `none` if the new graph does not have it.
  std::uint32_t node_of(std::uint32_t old) const {
    const auto at = std::ranges::find(new_node_, old);
    return at == new_node_.end() ? none : static_cast<std::uint32_t>(at - new_node_.begin());
  }

  bool are_same(list_view<const std::uint32_t> old, list_view<const std::uint32_t> made) const {
    if (old.size() != made.size()) return false;
    for (std::size_t i = 0; i < old.size(); ++i)
      if (new_of_[old.data()[i]] != made.data()[i]) return false;
    return true;
  }

  bool copy_candidates() {
    place_candidates& to = made_.candidates;
    to.groups.emplace_back();
    to.groups[0].nodes.resize(nodes_.size());
    std::iota(to.groups[0].nodes.begin(), to.groups[0].nodes.end(), 0U);
    to.structures.push_back({0, "group", 1});
    for (const std::uint32_t i : asked_) {
      place_candidate c = candidates_.list[i];
      const node_group old = values_of(from_, backends_, candidates_, c);
      c.group = 0;
      if (c.is_by_rule()) c.root = 0;
      else if (c.root = node_of(c.root); c.root == none) return refuse("the root of the match is outside the group");
      match_record record;
      if (!c.is_by_rule() &&
          (!match_at(made_.network.view(), backends_[c.backend].patterns[c.pattern].nodes, c.root, record) ||
           record.nodes != nodes_.size()))
        return refuse(otherwise(c));
      const node_group made = values_of(made_.network, backends_, to, c);
      if (!are_same(old.arguments, made.arguments) || !are_same(old.outputs, made.outputs)) return refuse(otherwise(c));
      made_.asked.push_back(static_cast<std::uint32_t>(to.list.size()));
      to.list.push_back(c);
    }
    return true;
  }
  std::string otherwise(const place_candidate& c) const {
    return "pattern " + std::string(pattern_name(backends_, c.backend, c.pattern)) + " of backend " +
           backends_[c.backend].name + " matches differently when the group is copied alone";
  }

  const graph& from_;
  backend_table backends_;
  const place_candidates& candidates_;
  std::span<const std::uint32_t> asked_;
  std::vector<std::uint32_t> nodes_;
  std::vector<std::uint32_t> new_of_;    // by old value
  std::vector<std::uint32_t> new_node_;  // the old nodes, in the new order
  sub_graph made_;
  std::string why_not_;
};

}  // namespace collage::inline v0::detail
