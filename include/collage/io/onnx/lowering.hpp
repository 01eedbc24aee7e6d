// Lowering: how one ONNX operator becomes nodes of ours.
//
// A rule is a function over `lowering`, which shows it one node of the file and takes what it builds:
//
//   void lower_gemm(lowering& n) {
//     value y = n(ops::matmul, n.operand(0), n.operand(1), {.transpose_a = n.integer("transA", 0) != 0});
//     if (n.has(2)) y = n(ops::add, y, n.operand(2));
//     n.result(0, y);
//   }
//
// Nodes all of whose operands are constants are computed at once and become constants, so that a rule may build shape
// arithmetic like any other. What a rule throws is collected with the node it is about; loading goes on to find the rest.
#pragma once

#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/onnx/model.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {

class importer;

/// One node on its way into the graph.
class lowering : public node_calls<lowering> {
 public:
  lowering(importer& into, const model_node& node, std::int64_t opset) : into_(&into), node_(&node), opset_(opset) {}

  const model_node& node() const { return *node_; }
  /// The version of the node's operator set that the model imports: rules that differ between versions ask it.
  std::int64_t opset() const { return opset_; }

  // Operands and outputs, by position. `has` and `wants` are false for optional ones left out.
  std::size_t operands() const { return node_->inputs.size(); }
  bool has(std::size_t i) const { return i < node_->inputs.size() && !node_->inputs[i].empty(); }
  value operand(std::size_t i) const;  ///< an error where it is left out
  std::size_t outputs() const { return node_->outputs.size(); }
  bool wants(std::size_t i) const;  ///< false too where nobody reads it
  /// What an output of the node is. Every wanted output needs one.
  void result(std::size_t i, value v);

  // Types and contents of values.
  const tensor_type& type_of(value v) const;
  const shape& dims_of(value v) const { return type_of(v).dims; }
  dtype element_type_of(value v) const { return type_of(v).type; }
  std::size_t rank_of(value v) const { return type_of(v).rank(); }
  /// Whether the contents are known now (weights that are filled by a rule later are constants, and not known).
  bool is_known(value v) const;
  /// The contents of operand i as integers or numbers, whatever its element type. Where it is not constant, an error
  /// that calls it `what` ("its starts") and tells the user to bind it.
  std::vector<std::int64_t> integers_of(std::size_t i, const char* what) const;
  std::vector<double> numbers_of(std::size_t i, const char* what) const;
  std::int64_t integer_of(std::size_t i, const char* what) const;  ///< exactly one element
  double number_of(std::size_t i, const char* what) const;
  /// All of operand i, for operators whose output's shape depends on their data and which are therefore computed while
  /// loading. Where it is not constant, an error as above.
  oracle_value contents_of(std::size_t i, const char* what) const;

  // Attributes, with what the operator's definition takes where they are left out. An attribute of another form is an
  // error.
  bool has_attribute(const char* name) const { return find(name) != nullptr; }
  std::int64_t integer(const char* name, std::int64_t otherwise) const;
  double real(const char* name, double otherwise) const;
  std::string text(const char* name, const char* otherwise) const;
  std::vector<std::int64_t> integers(const char* name, std::vector<std::int64_t> otherwise = {}) const;
  std::vector<double> reals(const char* name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> texts(const char* name, std::vector<std::string> otherwise = {}) const;
  const model_tensor* tensor_attribute(const char* name) const;  ///< null where it is left out
  const model_graph* graph_attribute(const char* name) const;
  /// A list as a shape, an error where it is longer than shape::max_rank. `what` is "its pads".
  shape to_shape(std::span<const std::int64_t> list, const char* what) const;
  /// An axis counted from the end if negative; an error where it is outside [-rank, rank).
  std::int64_t axis(std::int64_t given, std::size_t rank) const;

  // Building. The calls of node_calls, as in n(ops::add, x, y), and constants. A node answers its first output; `y[1]` is
  // the second.
  value add_node(const kind_info& kind, std::span<const value> operands, const attribute_words& attributes);
  value scalar(double number, dtype type);
  /// A constant of rank 1 and type int64.
  value integers_constant(std::span<const std::int64_t> list);
  /// A constant of any type and contents (type.bytes() bytes).
  value constant(const tensor_type& type, std::shared_ptr<const std::byte> bytes);
  value constant(const oracle_value& contents);
  /// A constant of a model's tensor; an error where we have no type for it.
  value constant(const model_tensor& tensor);
  /// A constant of this type whose elements all have one value.
  value filled(const tensor_type& type, double number);
  /// x with other extents; nothing is added where they are the same.
  value reshape(value x, const shape& dims);
  /// Any number of values one behind the other: a kernel takes 72 operands at most, so that many become a tree.
  value concatenate(std::vector<value> parts, std::int64_t axis);
  /// x in another element type; nothing is added where it has that type.
  value cast(value x, dtype to);

  /// Refuses the node: `what` as in "an antialiased resize is not supported".
  [[noreturn]] void unsupported(const std::string& what) const;
  /// The node cannot be right: `what` as in "its axis is 7, but its input has rank 4".
  [[noreturn]] void invalid(const std::string& what) const;

  importer& driver() const { return *into_; }

 private:
  const model_attribute* find(const char* name) const;
  const model_attribute* find(const char* name, attribute_form form, const char* form_name) const;

  importer* into_;
  const model_node* node_;
  std::int64_t opset_;
};

/// How one operator is lowered. `domain` is empty for ONNX's own.
struct lowering_rule {
  const char* domain = "";
  const char* operator_type = "";
  void (*lower)(lowering& node) = nullptr;
};

}  // namespace collage::inline v0::onnx
