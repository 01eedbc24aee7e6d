// Lowering: turns one ONNX operator into nodes of a network.
//
// A lowering rule is a function that takes a `lowering`. Through it, the rule reads one node of the file and adds nodes:
//
//   void lower_gemm(lowering& n) {
//     value y = n(ops::matmul, n.operand(0), n.operand(1), {.transpose_a = n.integer("transA", 0) != 0});
//     if (n.has(2)) y = n(ops::add, y, n.operand(2));
//     n.result(0, y);
//   }
//
// A node whose operands are all constants is computed at once and becomes a constant. So a rule can build shape arithmetic
// from nodes. An error that a rule throws is collected with its node, and loading continues, so that it reports all errors.
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

/// One node of the file, as the rule that lowers it sees it.
class lowering : public node_calls<lowering> {
 public:
  lowering(importer& into, const model_node& node, std::int64_t opset) : into_(&into), node_(&node), opset_(opset) {}

  const model_node& node() const { return *node_; }
  /// The version of the node's operator set that the model imports, for operators that differ between versions.
  std::int64_t opset() const { return opset_; }

  // Operands and outputs, by position. `has` and `wants` are false for an optional operand or output that is left out.
  std::size_t operands() const { return node_->inputs.size(); }
  bool has(std::size_t i) const { return i < node_->inputs.size() && !node_->inputs[i].empty(); }
  value operand(std::size_t i) const;  ///< throws if it is left out
  std::size_t outputs() const { return node_->outputs.size(); }
  bool wants(std::size_t i) const;  ///< also false if nothing reads the output
  /// Sets the value of an output. A rule sets every wanted output.
  void result(std::size_t i, value v);

  // Types and contents of values.
  const tensor_type& type_of(value v) const;
  const shape& dims_of(value v) const { return type_of(v).dims; }
  dtype element_type_of(value v) const { return type_of(v).type; }
  std::size_t rank_of(value v) const { return type_of(v).rank(); }
  /// Whether the contents are known while loading. Constants that `fill_constants` fills later are not.
  bool is_known(value v) const;
  /// The contents of operand i as integers or numbers, whatever its element type. Throws if they are not known. The error calls
  /// the operand `what` ("its starts") and advises the user to bind it.
  std::vector<std::int64_t> integers_of(std::size_t i, const char* what) const;
  std::vector<double> numbers_of(std::size_t i, const char* what) const;
  std::int64_t integer_of(std::size_t i, const char* what) const;  ///< throws unless there is one element
  double number_of(std::size_t i, const char* what) const;
  /// The contents of operand i, for operators that must be computed while loading, because the shape of their output depends
  /// on their data. Throws as above.
  oracle_value contents_of(std::size_t i, const char* what) const;

  // Attributes. `otherwise` is the default that the operator's definition gives. An attribute of another form is an error.
  bool has_attribute(const char* name) const { return find(name) != nullptr; }
  std::int64_t integer(const char* name, std::int64_t otherwise) const;
  double real(const char* name, double otherwise) const;
  std::string text(const char* name, const char* otherwise) const;
  std::vector<std::int64_t> integers(const char* name, std::vector<std::int64_t> otherwise = {}) const;
  std::vector<double> reals(const char* name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> texts(const char* name, std::vector<std::string> otherwise = {}) const;
  const model_tensor* tensor_attribute(const char* name) const;  ///< null if it is left out
  const model_graph* graph_attribute(const char* name) const;
  /// A list as a shape. Throws if it is longer than shape::max_rank; the error calls it `what` ("its pads").
  shape to_shape(std::span<const std::int64_t> list, const char* what) const;
  /// An axis as an index in [0, rank). A negative axis counts from the end. Throws if it is outside [-rank, rank).
  std::int64_t axis(std::int64_t given, std::size_t rank) const;

  // Building: the calls of node_calls, as in n(ops::add, x, y), and constants. A call returns the first output of its node, y,
  // and `y[1]` is the second.
  value add_node(const kind_info& kind, std::span<const value> operands, const attribute_words& attributes);
  value scalar(double number, dtype type);
  /// A constant of rank 1 and type int64.
  value integers_constant(std::span<const std::int64_t> list);
  /// A constant with the type and contents given, type.bytes() bytes.
  value constant(const tensor_type& type, std::shared_ptr<const std::byte> bytes);
  value constant(const oracle_value& contents);
  /// A constant from a tensor of the model. Throws if its element type or rank is not supported.
  value constant(const model_tensor& tensor);
  /// A constant of this type whose elements all have one value.
  value filled(const tensor_type& type, double number);
  /// x with other extents. Returns x if they are the same.
  value reshape(value x, const shape& dims);
  /// Concatenates any number of values along an axis. A kernel takes 72 operands at most, so more values become a tree of nodes.
  value concatenate(std::vector<value> parts, std::int64_t axis);
  /// x in another element type. Returns x if it has that type.
  value cast(value x, dtype to);

  /// Refuses the node: `what` is what is not supported, as in "an antialiased resize". The message adds " is not supported".
  [[noreturn]] void unsupported(const std::string& what) const;
  /// Refuses the node for a reason that is a whole sentence, as in "its branches return different types".
  [[noreturn]] void refuse(const std::string& why) const;
  /// Rejects the node as wrong: `what` as in "its axis is 7, but its input has rank 4".
  [[noreturn]] void invalid(const std::string& what) const;

  importer& driver() const { return *into_; }

 private:
  const model_attribute* find(const char* name) const;
  const model_attribute* find(const char* name, attribute_form form, const char* form_name) const;

  importer* into_;
  const model_node* node_;
  std::int64_t opset_;
};

/// The function that lowers one operator. `domain` is empty for ONNX's own operators.
struct lowering_rule {
  const char* domain = "";
  const char* operator_type = "";
  void (*lower)(lowering& node) = nullptr;
};

}  // namespace collage::inline v0::onnx
