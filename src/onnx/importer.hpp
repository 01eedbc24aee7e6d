// The importer walks a model's nodes in an order in which they can be computed, and passes each to its lowering rule.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/io/onnx.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
#include "staging.hpp"

namespace collage::inline v0::onnx {

/// A graph under construction, and the names that are taken in it.
struct building {
  graph_builder builder;
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, std::size_t> numbered;  ///< by name: the last number appended to it

  /// Takes a name that is still free: this name, or this name with a number.
  std::string name_like(const std::string& wanted);
};

/// The names of one graph of the model. The scope of an inlined graph shares the building of its outer scope. The scope of a
/// subgraph that a node owns has its own building, and takes as inputs the values that the subgraph reads from outside.
struct scope {
  building* into = nullptr;
  scope* outer = nullptr;
  /// A name without a value: its node was refused, and the refusal is reported.
  std::unordered_map<std::string, std::optional<value>> names;
  std::unordered_map<std::string, const model_tensor*> initializers;  ///< added to the graph when first read
  const std::map<std::string, std::int64_t>* opsets = nullptr;
  std::unordered_set<std::string> read = {};  ///< names that some node or the graph's outputs need
};

/// Limits the depth of nested functions and subgraphs, because a malformed file may nest them without end.
struct depth_guard {
  std::size_t& depth;
  depth_guard(std::size_t& d, const std::string& where) : depth(d) {
    if (++depth > 64) {
      --depth;
      throw error(error_kind::invalid_argument, "its functions and subgraphs are nested more than 64 deep", where);
    }
  }
  depth_guard(const depth_guard&) = delete;
  depth_guard& operator=(const depth_guard&) = delete;
  ~depth_guard() { --depth; }
};

/// Sets a member, and puts its old value back at the end of the scope.
template <class T>
struct restore {
  T& place;
  T before;
  restore(T& p, T now) : place(p), before(std::exchange(p, std::move(now))) {}
  restore(const restore&) = delete;
  restore& operator=(const restore&) = delete;
  ~restore() { place = std::move(before); }
};

/// A node that cannot be imported, and why.
struct problem {
  std::string text;
  bool is_mistake = false;  ///< true: the model is wrong; false: it needs something that is not supported
};

/// Throws if a kind has no name in ONNX, owns subgraphs, or shares a name or id with another kind.
void check_kinds(std::span<const kind_info* const> kinds);

/// The names that a graph, with its nodes' subgraphs, reads from outside, in the order of reading.
std::vector<std::string> outer_names(const model_graph& g);

/// The names that a node reads: its inputs, and all that its subgraphs read from outside.
std::vector<std::string> names_read(const model_node& node);

/// The inputs that have no initializer to give their value. Throws for one without a name or declared twice.
std::vector<const model_port*> open_inputs(const model& m);
/// Symbols to which given shapes give two extents, as sentences. Files use symbols loosely, so that this is an error only where the
/// network cannot be made.
std::string contradictions(const model& m, const load_options& options);
/// An error with sentences behind its own.
inline error with_sentences(const error& e, const std::string& more) {
  return more.empty() ? e : error(e.kind(), e.what() + more);
}

/// Why an input cannot be imported; empty if it can.
std::string why_not_supported(const model_port& p);

/// Reports facts about a model.
void describe(const model& m, load_report& found);

/// An error with the text of a file made printable, and with the file's name in front.
error told_of(const error& e, const std::string& file);

struct scan_form;

class importer {
 public:
  /// `stage`: not null to make one stage (import_stages.cpp).
  importer(const model& file, const load_options& options, staging* stage = nullptr)
      : model_(file), options_(options), staging_(stage) {}

  graph run(load_report& report);
  /// Throws if outputs need operators that nothing can import, which is known before shapes are.
  void check_operators();
  /// Makes the stage that was given to the constructor. Throws `begin_again` where another given value has to be known.
  network_stage run_stage();
  /// Results of a node between two stages, by name. Its operands are constants.
  std::vector<tensor> run_late(const model_node& node, const kept_values& operands,
                               std::span<const std::string> results);

  // For `lowering`.
  building& current() { return *scope_->into; }
  graph_builder& builder() { return scope_->into->builder; }
  std::optional<value> find(const std::string& name);
  /// Whether anything needs the output with this name of a node of the current graph.
  bool reads(const std::string& name) const { return scope_->read.count(name) != 0; }
  value operand(const lowering& n, std::size_t i);
  void result(const lowering& n, std::size_t i, value v);
  value add(const kind_info& kind, std::span<const value> operands, const attribute_words& words,
            const std::string& label, std::span<const std::shared_ptr<const graph>> bodies = {});
  value constant(const std::string& label, const tensor_type& type, std::shared_ptr<const std::byte> bytes);
  value constant(const model_tensor& tensor, const std::string& name);
  /// Counts bytes of constants that loading makes. Throws if they exceed load_options::most_bytes.
  void spend(std::size_t bytes);
  const std::string& where() const { return where_; }
  /// Ends the lowering of a node because an operand is not known: by an error, or in a stage by `late_contents`. `why` is a
  /// sentence of the error, which advises to bind the operand.
  [[noreturn]] void needs_contents(const std::string& why, std::size_t operand = late_contents::all_operands) const;
  // For operators that own subgraphs: both are with the control flow.
  void leave_without_values(const model_node& node);
  std::vector<std::optional<value>> inline_graph(const model_graph& g, std::span<const std::optional<value>> given);

 private:
  void bind_inputs(load_report& report);
  std::optional<dtype> supported_type(const model_port& port);
  value declare_input(const model_port& port, const tensor_type& type);
  void declare(scope& s, const model_graph& g);
  void walk(const model_graph& g);
  void walk(std::span<const model_node> nodes, std::span<const std::string> outputs, const std::string& graph_name);
  void import_node(const model_node& node);
  void lower(const model_node& node, std::int64_t opset);
  auto users_rule_of(const model_node& node) const -> decltype(lowering_rule::lower);  ///< null if there is none
  const kind_info* users_kind_of(const model_node& node) const;                        ///< null if there is none
  const model_function* function_of(const model_node& node) const;                     ///< null if there is none
  bool is_known(const model_node& node) const;                 ///< whether anything can import it
  std::string unknown_operator(const model_node& node) const;  ///< the message if nothing can
  void lower_kind(lowering& n, const kind_info& kind);
  void call_function(const model_node& node, const model_function& function);
  void lower_if(lowering& n);
  void lower_loop(lowering& n);
  void lower_scan(lowering& n);
  std::optional<std::vector<value>> unroll_scan(lowering& n, const scan_form& s, std::int64_t batch);

  // Stages (import_stages.cpp).
  bool reads_later(const model_node& node) const;
  void leave_for_later(const model_node& node);
  void set_aside(const model_node& node, std::size_t operand);
  bool decide(const std::string& name, bool also_large);
  void seed();
  void keep(const std::string& name, value v, stage_memory& memory);
  void pass_on(network_stage& stage, stage_memory& memory);
  bool is_top() const { return scope_ == top_ && node_depth_ == 1; }

  /// A subgraph that a node will own.
  struct body_graph {
    std::shared_ptr<const graph> made;          ///< null if one of its nodes was refused
    std::vector<std::optional<value>> outputs;  ///< values of the subgraph
    std::optional<bool> condition;              ///< its first output, if that is a known boolean
    bool passes_condition = false;              ///< whether its first output is its second input
  };
  body_graph build_body(const model_graph& g, std::span<const tensor_type> given,
                        std::span<const std::string> captured);
  value nothing_stacked(lowering& n, const model_graph& body, std::size_t output);
  value stack(lowering& n, std::span<const value> list, std::size_t axis);
  std::vector<std::string> captures_of(std::span<const model_graph* const> bodies);
  bool unroll(lowering& n, const model_graph& body, std::int64_t rounds);

  void report(const model_node& node, std::int64_t opset, const std::string& what, bool is_mistake);
  [[noreturn]] void refuse_all() const;
  bool foldable(const kind_info& kind, std::span<const value> operands, const attribute_words& words);

  const model& model_;
  const load_options& options_;
  staging* staging_;
  scope* top_ = nullptr;  ///< of the model's graph, in a stage
  std::size_t node_depth_ = 0;
  scope* scope_ = nullptr;
  const model_node* node_ = nullptr;  ///< the node being lowered
  std::string where_;                 ///< the current location, for messages
  std::size_t pieces_ = 0;            ///< the number of nodes that it has become so far
  std::size_t spent_ = 0;
  std::size_t walked_ = 0;
  std::size_t depth_ = 0;
  bool unrolling_ = false;
  std::int64_t unroll_left_ = 0;  ///< nodes that the loop being unrolled may still become
  std::vector<problem> problems_;
};

}  // namespace collage::inline v0::onnx
