// Evaluating networks and groups of nodes with the reference.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_elementwise.hpp>
#include <collage/backends/reference.hpp>
#include <collage/graph/detail/signatures.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {

/// Runs the subgraphs of one node; each call is a separate evaluation.
struct body_evaluation {
  std::span<const std::shared_ptr<const graph>> bodies;

  static void run(void* state, std::size_t which, list_view<const reference_tensor> in,
                  list_view<const reference_tensor> out);
  body_caller caller() { return {this, run}; }
};

void run_kind(const kind_info& kind, std::span<const std::uint64_t> words, const reference_call& call,
              const std::string& where) {
  if (kind.reference != nullptr) kind.reference(words, call);
  else if (kind.body != nullptr) run_body(*kind.body, words, call);
  else
    throw error(error_kind::unsupported, "its kind has no reference", where,
                "declare static void reference(const attributes&, const reference_call&) in the kind");
}

/// One evaluation: the nodes to run, the values alive, and the number of reads left of each.
class evaluation {
 public:
  explicit evaluation(const graph& network) : network_(&network) {}

  /// Sets a value to elements in the reference's own form.
  void know(std::uint32_t value, const reference_tensor& elements) {
    if (!(elements.type == network_->type_of(value)))
      throw error(error_kind::invalid_argument, "the elements given for it have another type or shape",
                  describe(value));
    oracle_value& own = alive_[value];
    own.type = elements.type;
    own.real.assign(elements.real.begin(), elements.real.end());
    own.integer.assign(elements.integer.begin(), elements.integer.end());
    known_[value] = {};
  }

  void know(std::uint32_t value, const const_tensor_view& elements) {
    if (!(elements.type == network_->type_of(value)))
      throw error(error_kind::invalid_argument, "the elements given for it have another type or shape",
                  describe(value));
    known_[value] = elements;
  }

  /// Finds the nodes to run for the wanted values. Only nodes for which may_run(node) holds may run.
  template <class MayRun>
  void plan(std::span<const std::uint32_t> wanted, const MayRun& may_run) {
    std::vector<std::uint32_t> open;
    const auto read = [&](std::uint32_t value) {
      if (++readings_[value] == 1) open.push_back(value);
    };
    std::unordered_set<std::uint32_t> seen;
    for (const std::uint32_t value : wanted) {
      if (value >= network_->values().size())
        throw error(error_kind::invalid_argument, "the network has no value " + std::to_string(value), "reference");
      read(value);
    }
    while (!open.empty()) {
      const std::uint32_t value = open.back();
      open.pop_back();
      const value_record& record = network_->at(value);
      if (known_.count(value) != 0 || record.role == value_role::constant) continue;
      if (record.producer < 0 || !may_run(static_cast<std::uint32_t>(record.producer)))
        throw error(error_kind::invalid_argument, "it is read, but it is neither given nor computed", describe(value));
      const auto node = static_cast<std::uint32_t>(record.producer);
      if (!seen.insert(node).second) continue;
      nodes_.push_back(node);
      for (const std::uint32_t operand : network_->view().inputs_of(node)) read(operand);
    }
    std::sort(nodes_.begin(), nodes_.end());  // nodes are numbered in a topological order
  }

  std::vector<oracle_value> run(std::span<const std::uint32_t> wanted, const value_observer& observer) {
    for (const std::uint32_t node : nodes_) run_node(node, observer);
    std::vector<oracle_value> results;
    for (const std::uint32_t value : wanted) {
      oracle_value& alive = get(value);
      if (--readings_[value] == 0) results.push_back(std::move(alive));
      else results.push_back(alive);
    }
    return results;
  }

 private:
  std::string describe(std::uint32_t value) const { return "value " + network_->value_name(value); }

  /// Returns a value that is alive. A known value or a constant comes alive at its first read.
  oracle_value& get(std::uint32_t value) {
    const auto found = alive_.find(value);
    if (found != alive_.end()) return found->second;
    const auto known = known_.find(value);
    const const_tensor_view elements =
        known != known_.end() ? known->second
                              : const_tensor_view(network_->bytes_of(value).data(), network_->type_of(value));
    return alive_.emplace(value, to_oracle(elements)).first->second;
  }

  void run_node(std::uint32_t node, const value_observer& observer) {
    const graph_view view = network_->view();
    const node_record& record = view.nodes[node];
    std::vector<reference_tensor> in, out;
    for (const std::uint32_t operand : view.inputs_of(node)) in.push_back(get(operand).view());
    std::vector<oracle_value> results;
    for (std::uint32_t i = 0; i < record.outputs; ++i) results.emplace_back(network_->type_of(record.first_output + i));
    for (oracle_value& result : results) out.push_back(result.view());
    reference_call call{in, out};
    const signatures_of_bodies signatures(network_->bodies_of(node));
    body_evaluation bodies{network_->bodies_of(node)};
    const body_caller caller = bodies.caller();
    if (record.bodies != 0) {
      call.signatures = signatures.list;
      call.bodies = &caller;
    }
    run_kind(*record.kind, view.words_of(node), call, "node " + network_->node_name(node));
    for (const std::uint32_t operand : view.inputs_of(node))
      if (--readings_[operand] == 0) alive_.erase(operand);
    for (std::uint32_t i = 0; i < record.outputs; ++i) {
      const std::uint32_t value = record.first_output + i;
      if (observer) observer(value, results[i]);
      // A given value keeps its elements, even where its node runs for another output.
      if (readings_.count(value) != 0 && known_.count(value) == 0)
        alive_.insert_or_assign(value, std::move(results[i]));
    }
  }

  const graph* network_;
  std::vector<std::uint32_t> nodes_;
  std::unordered_map<std::uint32_t, const_tensor_view> known_;
  std::unordered_map<std::uint32_t, std::int64_t> readings_;
  std::unordered_map<std::uint32_t, oracle_value> alive_;
};

inline void body_evaluation::run(void* state, std::size_t which, list_view<const reference_tensor> in,
                                 list_view<const reference_tensor> out) {
  const graph& body = *static_cast<body_evaluation*>(state)->bodies[which];
  evaluation evaluation(body);
  for (std::size_t i = 0; i < in.size(); ++i) evaluation.know(body.inputs()[i], in[i]);
  evaluation.plan(body.outputs(), [](std::uint32_t) { return true; });
  const std::vector<oracle_value> results = evaluation.run(body.outputs(), {});
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::copy(results[i].real.begin(), results[i].real.end(), out[i].real.begin());
    std::copy(results[i].integer.begin(), results[i].integer.end(), out[i].integer.begin());
  }
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

std::vector<oracle_value> evaluate(const graph& network, std::span<const const_tensor_view> inputs) {
  return evaluate(network, inputs, network.outputs());
}

std::vector<oracle_value> evaluate(const graph& network, std::span<const const_tensor_view> inputs,
                                   std::span<const std::uint32_t> wanted, const value_observer& observer) {
  if (inputs.size() != network.inputs().size())
    throw error(error_kind::invalid_argument,
                "the network has " + std::to_string(network.inputs().size()) + " inputs, but " +
                    std::to_string(inputs.size()) + " were given",
                "reference");
  detail::evaluation evaluation(network);
  for (std::size_t i = 0; i < inputs.size(); ++i) evaluation.know(network.inputs()[i], inputs[i]);
  evaluation.plan(wanted, [](std::uint32_t) { return true; });
  return evaluation.run(wanted, observer);
}

std::vector<oracle_value> evaluate_group(const graph& network, std::span<const std::uint32_t> nodes,
                                         std::span<const known_value> known, std::span<const std::uint32_t> wanted,
                                         const value_observer& observer) {
  detail::evaluation evaluation(network);
  for (const known_value& k : known) evaluation.know(k.value, k.elements);
  const std::unordered_set<std::uint32_t> group(nodes.begin(), nodes.end());
  evaluation.plan(wanted, [&](std::uint32_t node) { return group.count(node) != 0; });
  return evaluation.run(wanted, observer);
}

std::vector<oracle_value> evaluate_node(const kind_info& kind, std::span<const std::uint64_t> words,
                                        std::span<oracle_value> in) {
  if (kind.bodies != 0)
    throw error(error_kind::unsupported, "an operator kind with subgraphs can be evaluated only in a graph", kind.name,
                "build a graph of one node");
  std::vector<tensor_type> in_types, out_types(kind.output_count(words));
  std::vector<list_view<const std::int64_t>> contents;
  std::vector<reference_tensor> operands, outputs;
  for (oracle_value& value : in) {
    in_types.push_back(value.type);
    contents.push_back(value.type.type == dtype::i64 ? list_view<const std::int64_t>(value.integer)
                                                     : list_view<const std::int64_t>{});
    operands.push_back(value.view());
  }
  if (in.size() < kind.inputs.least || in.size() > kind.inputs.most)
    throw error(error_kind::invalid_argument, "it has a wrong number of operands", kind.name);
  inference io{in_types, out_types, contents};
  if (const verdict v = kind.infer(words, io); !v) throw error(error_kind::invalid_argument, v.rule, kind.name);
  std::vector<oracle_value> results;
  for (const tensor_type& type : out_types) results.emplace_back(type);
  for (oracle_value& result : results) outputs.push_back(result.view());
  detail::run_kind(kind, words, {operands, outputs}, kind.name);
  return results;
}

}  // namespace collage::inline v0
