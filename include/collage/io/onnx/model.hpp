// An ONNX model in plain structs, as its file has it. The reader returns it, and the importer walks it.
//
// Only the form of the file is checked: names may be undefined, and types may not fit. Weights are in memory already.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::onnx {

/// A tensor of the file: an initializer, an attribute, or the whole contents of the file.
struct model_tensor {
  std::string name;
  int element_type = 0;               ///< TensorProto.DataType
  std::vector<std::int64_t> extents;  ///< none negative; their product does not overflow
  /// The elements, dense and row-major, of size_of(type) bytes each, in memory of allocate_bytes. Null if `fill` or `refusal`
  /// is set.
  std::shared_ptr<const std::byte> bytes;
  std::optional<uniform> fill;  ///< the generator of a tensor without data, from its doc_string
  std::string refusal;          ///< why a correct tensor is not supported, such as its element type or rank
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
  other,  ///< lists of sparse tensors, type descriptions
};

/// One attribute of a node. `form` names the field that is filled.
struct model_attribute {
  std::string name;
  attribute_form form = attribute_form::other;
  std::string refers_to;  ///< inside a function: the attribute of the call that replaces this attribute
  double real = 0;        ///< a float32 in the file
  std::int64_t integer = 0;
  std::string text;
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  std::vector<model_tensor> tensors;                       ///< one for `tensor`; dense also if it is sparse in the file
  std::vector<std::shared_ptr<const model_graph>> graphs;  ///< one for `graph`
};

/// One node. An empty name in `inputs` or `outputs` means that an optional operand or output is left out.
struct model_node {
  std::string name;
  std::string operator_type;
  std::string domain;    ///< empty for ONNX's own ("ai.onnx" is read as empty)
  std::string overload;  ///< selects one of several functions with the same name
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

/// A function that the model defines.
struct model_function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;              ///< attributes that a call must give
  std::vector<model_attribute> attribute_defaults;  ///< attributes that a call may give
  std::vector<model_node> nodes;
  std::map<std::string, std::int64_t> opsets;
};

struct model {
  std::string file;
  std::int64_t ir_version = 0;
  std::string producer;                        ///< name and version of the program that wrote it
  std::map<std::string, std::int64_t> opsets;  ///< by domain, which is empty for ONNX's own
  model_graph graph;
  std::vector<model_function> functions;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// The element type for a number of TensorProto.DataType, if it is supported.
std::optional<dtype> element_type_of(int number);
/// ONNX's name for an element type: "float", "string", "float8e4m3fn"; "type 99" for an unknown number.
std::string element_type_name(int number);

/// Limits of reading, so that a small malformed file cannot exhaust the memory.
struct read_limits {
  std::size_t tensor_bytes = std::size_t{1} << 36;  ///< of all tensors together, also of tensors without data
  /// Fields of the format, except for tensors' data. A node has about ten. Two bytes of a file can become a node of hundreds of
  /// bytes.
  std::size_t fields = std::size_t{1} << 24;
};

/// Reads a file. Throws, and names the file and the part of it that is wrong, for
/// - a file that is missing, empty, cut short or not ONNX,
/// - a tensor whose data is shorter or longer than its extents say,
/// - external data that is too short, lies outside the model's folder or is reached through a link.
model read_model(const std::string& file, const read_limits& limits = {});
/// The same for the contents of a file. Errors name it `name`. External data is refused, because there is no folder.
model read_model(std::span<const std::byte> contents, const std::string& name, const read_limits& limits = {});

/// The paths of the files that hold external data of a model. They are not opened. Throws if the model's file cannot be read.
std::vector<std::string> external_files(const std::string& file, const read_limits& limits = {});

/// Reads a file that holds one tensor (TensorProto), as in ONNX's test data.
model_tensor read_tensor(const std::string& file, const read_limits& limits = {});

}  // namespace collage::inline v0::onnx
