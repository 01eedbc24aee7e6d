// ONNX files for tests, made with protobuf: a few words for what its setters take many for.
//
//   proto::ModelProto model = new_model();
//   add_input(*model.mutable_graph(), "x", {1, "n"});
//   add_initializer(*model.mutable_graph(), tensor_of<float>("w", {2}, {1, 2}));
//   add_node(*model.mutable_graph(), "Concat", {"x", "w"}, {"y"}, {attribute("axis", 0)});
//   add_output(*model.mutable_graph(), "y", {});
//   model_folder folder;
//   load(folder.write(model, "a.onnx"));
#pragma once

#include <google/protobuf/message.h>
#include <onnx/onnx_pb.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "support/files.hpp"

namespace collage_test {

namespace proto = ::onnx;

/// A folder of the test's own for models.
class model_folder : public temporary_folder {
 public:
  using temporary_folder::write;
  std::string write(const google::protobuf::Message& message, const std::string& name = "a.onnx") const {
    return write(message.SerializeAsString(), name);
  }
};

/// One extent of a declared type: a number, or a symbol.
struct declared_extent {
  std::int64_t extent = 0;
  std::string symbol;

  template <std::integral Int>
  declared_extent(Int number) : extent(number) {}
  declared_extent(const char* name) : symbol(name) {}
};

inline proto::ModelProto new_model(std::int64_t opset = 17) {
  proto::ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("collage's tests");
  auto& import = *model.add_opset_import();
  import.set_domain("");
  import.set_version(opset);
  model.mutable_graph()->set_name("graph");
  return model;
}

/// Fills in a declared input or output.
inline void declare(proto::ValueInfoProto& port, const std::string& name, const std::vector<declared_extent>& extents,
                    int type = proto::TensorProto::FLOAT) {
  port.set_name(name);
  auto& tensor = *port.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (const declared_extent& e : extents)
    if (auto& dim = *tensor.mutable_shape()->add_dim(); e.symbol.empty()) dim.set_dim_value(e.extent);
    else dim.set_dim_param(e.symbol);
}
inline void add_input(proto::GraphProto& graph, const std::string& name, const std::vector<declared_extent>& extents,
                      int type = proto::TensorProto::FLOAT) {
  declare(*graph.add_input(), name, extents, type);
}
inline void add_output(proto::GraphProto& graph, const std::string& name, const std::vector<declared_extent>& extents,
                       int type = proto::TensorProto::FLOAT) {
  declare(*graph.add_output(), name, extents, type);
}

/// The format's number of a C++ type.
template <class T>
constexpr int element_number() {
  if constexpr (std::is_same_v<T, float>) return proto::TensorProto::FLOAT;
  else if constexpr (std::is_same_v<T, double>) return proto::TensorProto::DOUBLE;
  else if constexpr (std::is_same_v<T, bool>) return proto::TensorProto::BOOL;
  else if constexpr (std::is_same_v<T, std::int8_t>) return proto::TensorProto::INT8;
  else if constexpr (std::is_same_v<T, std::int16_t>) return proto::TensorProto::INT16;
  else if constexpr (std::is_same_v<T, std::int32_t>) return proto::TensorProto::INT32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return proto::TensorProto::INT64;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return proto::TensorProto::UINT8;
  else if constexpr (std::is_same_v<T, std::uint16_t>) return proto::TensorProto::UINT16;
  else if constexpr (std::is_same_v<T, std::uint32_t>) return proto::TensorProto::UINT32;
  else return proto::TensorProto::UINT64;
}

/// A tensor's name, type and extents, without data.
inline proto::TensorProto tensor_header(const std::string& name, int type, const std::vector<std::int64_t>& extents) {
  proto::TensorProto tensor;
  if (!name.empty()) tensor.set_name(name);
  tensor.set_data_type(type);
  tensor.mutable_dims()->Add(extents.begin(), extents.end());
  return tensor;
}
/// A tensor with its data in raw_data.
template <class T>
proto::TensorProto tensor_of(const std::string& name, const std::vector<std::int64_t>& extents,
                             const std::vector<T>& elements) {
  proto::TensorProto tensor = tensor_header(name, element_number<T>(), extents);
  std::string bytes;
  for (const T element : elements) {
    char raw[sizeof element];
    std::memcpy(raw, &element, sizeof element);
    bytes.append(raw, sizeof element);
  }
  tensor.set_raw_data(bytes);
  return tensor;
}
/// A tensor with its data in another file, of which `offset` and `length` may be given.
inline proto::TensorProto external_tensor(const std::string& name, int type, const std::vector<std::int64_t>& extents,
                                          const std::string& location, const std::string& offset = {},
                                          const std::string& length = {}) {
  proto::TensorProto tensor = tensor_header(name, type, extents);
  tensor.set_data_location(proto::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& text) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(text);
  };
  add("location", location);
  if (!offset.empty()) add("offset", offset);
  if (!length.empty()) add("length", length);
  return tensor;
}
inline proto::TensorProto& add_initializer(proto::GraphProto& graph, const proto::TensorProto& tensor) {
  return *graph.add_initializer() = tensor;
}

// Attributes, of the form that their value has.
inline proto::AttributeProto attribute_header(const std::string& name, proto::AttributeProto::AttributeType type) {
  proto::AttributeProto made;
  made.set_name(name);
  made.set_type(type);
  return made;
}
template <std::integral Int>
proto::AttributeProto attribute(const std::string& name, Int number) {
  proto::AttributeProto made = attribute_header(name, proto::AttributeProto::INT);
  made.set_i(static_cast<std::int64_t>(number));
  return made;
}
inline proto::AttributeProto attribute(const std::string& name, float number) {
  proto::AttributeProto made = attribute_header(name, proto::AttributeProto::FLOAT);
  made.set_f(number);
  return made;
}
inline proto::AttributeProto attribute(const std::string& name, const char* text) {
  proto::AttributeProto made = attribute_header(name, proto::AttributeProto::STRING);
  made.set_s(text);
  return made;
}
inline proto::AttributeProto attribute(const std::string& name, const std::vector<std::int64_t>& list) {
  proto::AttributeProto made = attribute_header(name, proto::AttributeProto::INTS);
  made.mutable_ints()->Add(list.begin(), list.end());
  return made;
}
inline proto::AttributeProto attribute(const std::string& name, const std::vector<float>& list) {
  proto::AttributeProto made = attribute_header(name, proto::AttributeProto::FLOATS);
  made.mutable_floats()->Add(list.begin(), list.end());
  return made;
}
inline proto::AttributeProto attribute(const std::string& name, const std::vector<std::string>& list) {
  proto::AttributeProto made = attribute_header(name, proto::AttributeProto::STRINGS);
  for (const std::string& text : list) made.add_strings(text);
  return made;
}
inline proto::AttributeProto attribute(const std::string& name, const proto::TensorProto& tensor) {
  proto::AttributeProto made = attribute_header(name, proto::AttributeProto::TENSOR);
  *made.mutable_t() = tensor;
  return made;
}
inline proto::AttributeProto attribute(const std::string& name, const proto::GraphProto& graph) {
  proto::AttributeProto made = attribute_header(name, proto::AttributeProto::GRAPH);
  *made.mutable_g() = graph;
  return made;
}

/// Fills in a node of a graph or a function.
template <class Owner>
proto::NodeProto& add_node(Owner& owner, const std::string& operator_type, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs,
                           const std::vector<proto::AttributeProto>& attributes = {}, const std::string& name = {}) {
  proto::NodeProto& node = *owner.add_node();
  node.set_op_type(operator_type);
  if (!name.empty()) node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  for (const proto::AttributeProto& a : attributes) *node.add_attribute() = a;
  return node;
}

}  // namespace collage_test
