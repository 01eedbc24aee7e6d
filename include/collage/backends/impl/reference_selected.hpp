// The reference for selected elements: each value between is computed only where another element needs it.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_selected_nodes.hpp>
#include <collage/backends/reference.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/kind.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {

/// One evaluation: which elements of which values are computed, and how.
class selected_evaluation {
 public:
  selected_evaluation(const graph& network, std::span<const std::uint32_t> nodes, std::span<const known_value> known)
      : network_(network), group_(nodes.begin(), nodes.end()) {
    for (const known_value& k : known) {
      if (k.elements.stored != form() || !(k.elements.type == network.type_of(k.value)))
        throw error(error_kind::invalid_argument, "the elements given for it have another type, shape or layout",
                    "value " + network.value_name(k.value));
      known_[k.value] = k.elements;
    }
  }

  /// Finds what has to be computed. Returns false if a kind is not among those known here, or too much would be read.
  bool plan(std::span<const selected_elements> wanted, double most_reads) {
    for (const selected_elements& w : wanted)
      for (const std::int64_t element : w.at) add(w.value, element);
    std::vector<std::uint32_t> nodes(group_.begin(), group_.end());
    std::ranges::sort(nodes, std::greater());
    for (const std::uint32_t n : nodes)
      if (is_needed(n) && !plan_node(n, most_reads)) return false;
    return true;
  }

  void run() {
    for (auto at = steps_.rbegin(); at != steps_.rend(); ++at) {
      std::vector<element_source> in;
      for (const std::uint32_t v : network_.view().inputs_of(at->first)) in.push_back(source_of(v));
      selected_value& result = values_.at(network_.node(at->first).first_output);
      result.computed = element_list_of(network_.type_of(network_.node(at->first).first_output).type, result.at.size());
      if (!result.at.empty()) at->second->compute(result.at, in, result.computed);
    }
  }

  /// How many elements `run` reads, at most.
  double reads() const { return reads_; }

  oracle_value elements_of(const selected_elements& wanted) const {
    oracle_value list = element_list_of(network_.type_of(wanted.value).type, wanted.at.size());
    const element_source from = source_of(wanted.value);
    for (std::size_t i = 0; i < wanted.at.size(); ++i) from.copy(wanted.at[i], list, i);
    return list;
  }

 private:
  bool is_computed(std::uint32_t value) const {
    const std::int32_t producer = network_.at(value).producer;
    return known_.count(value) == 0 && producer >= 0 && group_.count(static_cast<std::uint32_t>(producer)) != 0;
  }
  element_set& set_of(std::uint32_t value) {
    const auto found = values_.find(value);
    if (found != values_.end()) return found->second.which;
    element_set none(network_.type_of(value).dims.elements());
    return values_.emplace(value, selected_value{std::move(none), {}, {}}).first->second.which;
  }
  void add(std::uint32_t value, std::int64_t element) {
    if (is_computed(value)) set_of(value).add(element);
  }
  bool is_needed(std::uint32_t node) const {
    for (std::uint32_t i = 0; i < network_.node(node).outputs; ++i)
      if (values_.count(network_.node(node).first_output + i) != 0) return true;
    return false;
  }

  /// Adds what a node reads for the elements that are needed of it.
  bool plan_node(std::uint32_t node, double most_reads) {
    const node_record& record = network_.node(node);
    if (record.outputs != 1 || record.bodies != 0) return false;
    const graph_view view = network_.view();
    std::vector<reference_tensor> in;
    for (const std::uint32_t v : view.inputs_of(node)) in.push_back({network_.type_of(v), {}, {}});
    const reference_tensor out[] = {{network_.type_of(record.first_output), {}, {}}};
    const auto words = view.words_of(node);
    std::unique_ptr<selected_node> made = make_selected(*record.kind, {words.data(), words.size()}, {in, out});
    if (made == nullptr) return false;
    selected_value& value = values_.at(record.first_output);
    value.at = value.which.seal();
    reads_ += static_cast<double>(value.at.size()) * std::max(made->reads(), 1.0);
    if (reads_ > most_reads) return false;
    for (std::size_t k = 0; k < in.size(); ++k) {
      const std::uint32_t operand = view.inputs_of(node)[k];
      if (!is_computed(operand)) continue;
      element_set& set = set_of(operand);
      for (const std::int64_t element : value.at) made->add_reads(element, k, set);
    }
    steps_.emplace_back(node, std::move(made));
    return true;
  }

  element_source source_of(std::uint32_t value) const {
    const tensor_type& type = network_.type_of(value);
    if (is_computed(value)) return {const_tensor_view(nullptr, type), &values_.at(value)};
    if (const auto found = known_.find(value); found != known_.end()) return {found->second, nullptr};
    if (network_.at(value).role != value_role::constant)
      throw error(error_kind::invalid_argument, "it is read, but it is neither given nor computed",
                  "value " + network_.value_name(value));
    return {const_tensor_view(network_.bytes_of(value).data(), type), nullptr};
  }

  const graph& network_;
  std::unordered_set<std::uint32_t> group_;
  std::unordered_map<std::uint32_t, const_tensor_view> known_;
  std::map<std::uint32_t, selected_value> values_;
  std::vector<std::pair<std::uint32_t, std::unique_ptr<selected_node>>> steps_;  // the last node first
  double reads_ = 0;
};

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

std::vector<oracle_value> evaluate_elements(const graph& network, std::span<const std::uint32_t> nodes,
                                            std::span<const known_value> known,
                                            std::span<const selected_elements> wanted) {
  detail::selected_evaluation evaluation(network, nodes, known);
  if (!evaluation.plan(wanted, std::numeric_limits<double>::infinity()))
    throw error(error_kind::unsupported, "some of its elements cannot be computed without the others", "reference",
                "compute the whole group");
  evaluation.run();
  std::vector<oracle_value> results;
  for (const selected_elements& w : wanted) results.push_back(evaluation.elements_of(w));
  return results;
}

std::optional<double> reads_of_elements(const graph& network, std::span<const std::uint32_t> nodes,
                                        std::span<const selected_elements> wanted, double most) {
  detail::selected_evaluation evaluation(network, nodes, {});
  if (!evaluation.plan(wanted, most)) return {};
  return evaluation.reads();
}

}  // namespace collage::inline v0
