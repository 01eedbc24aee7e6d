// An ONNX model as it stands in its file, in plain structs: what the reader answers and the importer walks.
//
// Nothing here is checked beyond the file's own form: names may dangle, types may not fit. Weights are in memory already.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::onnx {

/// A tensor of the file: an initializer, an attribute, or a file of its own.
struct model_tensor {
  std::string name;
  int element_type = 0;               ///< the file's number, TensorProto.DataType
  std::vector<std::int64_t> extents;  ///< none negative; their product does not overflow
  /// Dense, row-major, of size_of(type) bytes each, in memory of allocate_bytes. Null where the tensor has no data and
  /// `fill` says how it is made, and where `refusal` says why it cannot be held.
  std::shared_ptr<const std::byte> bytes;
  std::optional<uniform> fill;  ///< a weightless tensor: the rule of its doc_string
  std::string refusal;          ///< a correct tensor that we have no element type or no rank for
};

struct model_graph;

enum class attribute_form : std::uint8_t {
  real,
  integer,
  text,
  tensor,
  graph,
  reals,
  integers,
  texts,
  tensors,
  graphs,
  other,  ///< sparse tensors, type descriptions
};

/// One attribute of a node; the field that `form` names is filled.
struct model_attribute {
  std::string name;
  attribute_form form = attribute_form::other;
  std::string refers_to;  ///< inside a function: the attribute of the call that stands for this one
  double real = 0;        ///< a float32 in the file
  std::int64_t integer = 0;
  std::string text;
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  std::vector<model_tensor> tensors;                       ///< one for `tensor`
  std::vector<std::shared_ptr<const model_graph>> graphs;  ///< one for `graph`
};

/// One node. An empty name among inputs or outputs leaves an optional one out.
struct model_node {
  std::string name;
  std::string operator_type;
  std::string domain;    ///< empty for ONNX's own ("ai.onnx" is read as empty)
  std::string overload;  ///< which of several functions of one name
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<model_attribute> attributes;
};

/// One extent of a declared type: a number, a symbol, or nothing.
struct model_extent {
  std::int64_t extent = unknown;  ///< negative: not known
  std::string symbol;
};

/// A declared input or output.
struct model_port {
  std::string name;
  bool is_tensor = true;  ///< false: a sequence, a map, an optional or a sparse tensor
  int element_type = 0;   ///< TensorProto.DataType
  bool has_shape = false;
  std::vector<model_extent> extents;
};

struct model_graph {
  std::string name;
  std::vector<model_node> nodes;
  std::vector<model_tensor> initializers;
  std::vector<model_port> inputs;
  std::vector<model_port> outputs;
};

/// A function defined by the model itself.
struct model_function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;              ///< names that a call must give
  std::vector<model_attribute> attribute_defaults;  ///< and those that it may
  std::vector<model_node> nodes;
  std::map<std::string, std::int64_t> opsets;
};

struct model {
  std::string file;
  std::int64_t ir_version = 0;
  std::string producer;                        ///< name and version of the program that wrote it
  std::map<std::string, std::int64_t> opsets;  ///< by domain; ONNX's own is the empty one
  model_graph graph;
  std::vector<model_function> functions;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Our element type for the file's number, if there is one.
std::optional<dtype> element_type_of(int number);
/// The file's word for an element type: "float", "string", "float8e4m3fn"; "type 99" for an unknown number.
std::string element_type_name(int number);

/// Bounds on what reading may take, so that a small wrong file cannot take a machine's memory.
struct read_limits {
  std::size_t tensor_bytes = std::size_t{1} << 36;  ///< of all tensors together, weightless ones included
  /// Fields of the format, tensors' data apart: a node takes about ten. Two bytes of a file can be a node of hundreds.
  std::size_t fields = std::size_t{1} << 24;
};

/// Reads a file. Errors, each naming the file and what in it: missing, empty, cut short, not ONNX; tensors whose data is
/// shorter or longer than their extents say; external data outside the model's folder, through links, or too short.
model read_model(const std::string& file, const read_limits& limits = {});

/// Reads a file that holds one tensor (TensorProto), as the ONNX test data has them.
model_tensor read_tensor(const std::string& file, const read_limits& limits = {});

}  // namespace collage::inline v0::onnx
