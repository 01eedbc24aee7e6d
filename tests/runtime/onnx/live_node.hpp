// A model of one node whose operands are inputs, so that their contents are known only while running.
#pragma once

#include <collage/io/onnx.hpp>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "support/reference_check.hpp"
#include "writer.hpp"

namespace collage_test {

struct live_node {
  proto::ModelProto model;
  std::vector<collage::oracle_value> given;
  std::vector<std::string> operands;

  explicit live_node(std::int64_t opset) : model(new_model(opset)) {}
  live_node(std::int64_t opset, std::initializer_list<collage::oracle_value> list) : live_node(opset) {
    for (const collage::oracle_value& x : list) add(x);
  }

  void add(const collage::oracle_value& x) {
    const std::string name = "x" + std::to_string(operands.size());
    const int type = x.type.type == collage::dtype::f64       ? proto::TensorProto::DOUBLE
                     : x.type.type == collage::dtype::boolean ? proto::TensorProto::BOOL
                     : x.type.type == collage::dtype::f32     ? proto::TensorProto::FLOAT
                                                              : proto::TensorProto::INT64;
    add_input(*model.mutable_graph(), name, {x.type.dims.begin(), x.type.dims.end()}, type);
    operands.push_back(name);
    given.push_back(x);
  }
  void leave_out() { operands.push_back(""); }

  proto::NodeProto& finish(const std::string& operator_type, int outputs,
                           const std::vector<proto::AttributeProto>& attributes) {
    std::vector<std::string> names;
    for (int i = 0; i < outputs; ++i) {
      names.push_back("y" + std::to_string(i));
      add_output(*model.mutable_graph(), names.back(), {}, proto::TensorProto::DOUBLE);
    }
    return add_node(*model.mutable_graph(), operator_type, operands, names, attributes);
  }

  std::vector<collage::oracle_value> computed() const {
    const model_folder folder;
    const collage::graph network = collage::onnx::load(folder.write(model));
    std::vector<std::shared_ptr<const std::byte>> bytes;
    std::vector<collage::const_tensor_view> views;
    for (const collage::oracle_value& x : given) {
      bytes.push_back(reference::bytes_of(x));
      views.push_back({bytes.back().get(), x.type});
    }
    return collage::evaluate(network, views);
  }
  std::string refusal() const {
    const model_folder folder;
    return message_of([&] { (void)collage::onnx::load(folder.write(model)); });
  }
};

}  // namespace collage_test
