// ONNX files to plain structs: collage/io/onnx/model.hpp.
#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include <collage/error.hpp>
#include <collage/io/onnx/model.hpp>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader_file.hpp"
#include "reader_tensor.hpp"
#include "reader_wire.hpp"

namespace collage::inline v0::onnx {

namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw error(error_kind::invalid_argument, what, file);
}

/// "ai.onnx" and nothing are two names of one domain.
std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

template <class Strings>
std::vector<std::string> list_of(const Strings& strings) {
  return {strings.begin(), strings.end()};
}

template <class Message>
std::map<std::string, std::int64_t> opsets_of(const Message& from) {
  std::map<std::string, std::int64_t> made;
  for (const auto& entry : from.opset_import()) made[domain_of(entry.domain())] = entry.version();
  return made;
}

// Fields that are younger than the oldest ONNX package we build with: it keeps them as unknown ones.
template <class Message>
std::string overload_of(const Message& from, [[maybe_unused]] int number) {
  if constexpr (requires { from.overload(); }) {
    return from.overload();
  } else {
    const google::protobuf::UnknownFieldSet& fields = from.unknown_fields();
    for (int i = fields.field_count(); i-- > 0;)
      if (const auto& field = fields.field(i);
          field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
        return field.length_delimited();
    return {};
  }
}
template <class Message>
std::vector<::onnx::AttributeProto> attribute_defaults_of(const Message& from, const std::string& file) {
  std::vector<::onnx::AttributeProto> made;
  if constexpr (requires { from.attribute_proto(); }) {
    made.assign(from.attribute_proto().begin(), from.attribute_proto().end());
  } else {
    constexpr int number = 11;
    const google::protobuf::UnknownFieldSet& fields = from.unknown_fields();
    for (int i = 0; i < fields.field_count(); ++i)
      if (const auto& field = fields.field(i);
          field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
        if (!made.emplace_back().ParseFromString(field.length_delimited()))
          refuse(file, "an attribute of the function " + detail::quoted(from.name()) + " is damaged");
  }
  return made;
}

attribute_form form_of(const ::onnx::AttributeProto& from) {
  using proto = ::onnx::AttributeProto;
  switch (from.type()) {
    case proto::FLOAT: return attribute_form::real;
    case proto::INT: return attribute_form::integer;
    case proto::STRING: return attribute_form::text;
    case proto::TENSOR:
    case proto::SPARSE_TENSOR: return attribute_form::tensor;
    case proto::GRAPH: return attribute_form::graph;
    case proto::FLOATS: return attribute_form::reals;
    case proto::INTS: return attribute_form::integers;
    case proto::STRINGS: return attribute_form::texts;
    case proto::TENSORS: return attribute_form::tensors;
    case proto::GRAPHS: return attribute_form::graphs;
    case proto::UNDEFINED: break;
    default: return attribute_form::other;
  }
  // Files of the first versions do not say which.
  if (from.has_f()) return attribute_form::real;
  if (from.has_i()) return attribute_form::integer;
  if (from.has_s()) return attribute_form::text;
  if (from.has_t()) return attribute_form::tensor;
  if (from.has_g()) return attribute_form::graph;
  if (from.floats_size() != 0) return attribute_form::reals;
  if (from.ints_size() != 0) return attribute_form::integers;
  if (from.strings_size() != 0) return attribute_form::texts;
  if (from.tensors_size() != 0) return attribute_form::tensors;
  if (from.graphs_size() != 0) return attribute_form::graphs;
  return attribute_form::other;
}

/// From protobuf's messages to our structs.
class converter {
 public:
  converter(const std::string& file, detail::tensor_reader& tensors) : file_(&file), tensors_(&tensors) {}

  model_graph graph_of(const ::onnx::GraphProto& from) {
    model_graph made;
    made.name = from.name();
    made.nodes.reserve(static_cast<std::size_t>(from.node_size()));
    for (const auto& node : from.node()) made.nodes.push_back(node_of(node));
    for (const auto& tensor : from.initializer())
      made.initializers.push_back(tensors_->read(tensor, "the initializer " + detail::quoted(tensor.name())));
    for (const auto& tensor : from.sparse_initializer())
      made.initializers.push_back(
          tensors_->read(tensor, "the sparse initializer " + detail::quoted(tensor.values().name())));
    for (const auto& port : from.input()) made.inputs.push_back(port_of(port));
    for (const auto& port : from.output()) made.outputs.push_back(port_of(port));
    return made;
  }

  model_function function_of(const ::onnx::FunctionProto& from) {
    model_function made;
    made.domain = domain_of(from.domain());
    made.name = from.name();
    made.overload = overload_of(from, 13);
    made.inputs = list_of(from.input());
    made.outputs = list_of(from.output());
    made.attributes = list_of(from.attribute());
    for (const auto& attribute : attribute_defaults_of(from, *file_))
      made.attribute_defaults.push_back(attribute_of(attribute, "the function " + detail::quoted(from.name())));
    for (const auto& node : from.node()) made.nodes.push_back(node_of(node));
    made.opsets = opsets_of(from);
    return made;
  }

 private:
  model_node node_of(const ::onnx::NodeProto& from) {
    model_node made;
    made.name = from.name();
    made.operator_type = from.op_type();
    made.domain = domain_of(from.domain());
    made.overload = overload_of(from, 8);
    made.inputs = list_of(from.input());
    made.outputs = list_of(from.output());
    if (from.attribute_size() == 0) return made;
    const std::string called = from.name().empty() ? "a node of the operator " + detail::quoted(from.op_type())
                                                   : "the node " + detail::quoted(from.name());
    for (const auto& attribute : from.attribute()) made.attributes.push_back(attribute_of(attribute, called));
    return made;
  }

  model_attribute attribute_of(const ::onnx::AttributeProto& from, const std::string& owner) {
    model_attribute made;
    made.name = from.name();
    made.form = form_of(from);
    made.refers_to = from.ref_attr_name();
    made.real = from.f();
    made.integer = from.i();
    made.text = from.s();
    made.reals.assign(from.floats().begin(), from.floats().end());
    made.integers.assign(from.ints().begin(), from.ints().end());
    made.texts = list_of(from.strings());
    if (!made.refers_to.empty()) return made;

    const auto add = [&](const auto& tensor) {
      made.tensors.push_back(
          tensors_->read(tensor, "the tensor of the attribute " + detail::quoted(from.name()) + " of " + owner));
    };
    if (from.has_sparse_tensor() && made.form == attribute_form::tensor) add(from.sparse_tensor());
    else if (made.form == attribute_form::tensor) add(from.t());
    if (made.form == attribute_form::tensors)
      for (const auto& tensor : from.tensors()) add(tensor);
    if (made.form == attribute_form::graph) made.graphs.push_back(std::make_shared<model_graph>(graph_of(from.g())));
    if (made.form == attribute_form::graphs)
      for (const auto& graph : from.graphs()) made.graphs.push_back(std::make_shared<model_graph>(graph_of(graph)));
    return made;
  }

  static model_port port_of(const ::onnx::ValueInfoProto& from) {
    model_port made;
    made.name = from.name();
    const ::onnx::TypeProto& type = from.type();
    made.is_tensor = type.has_tensor_type() || type.value_case() == ::onnx::TypeProto::VALUE_NOT_SET;
    if (!type.has_tensor_type()) return made;
    made.element_type = type.tensor_type().elem_type();
    made.has_shape = type.tensor_type().has_shape();
    for (const auto& dim : type.tensor_type().shape().dim()) {
      model_extent& extent = made.extents.emplace_back();
      if (dim.has_dim_value()) extent.extent = dim.dim_value() < 0 ? unknown : dim.dim_value();
      else extent.symbol = dim.dim_param();
    }
    return made;
  }

  const std::string* file_;
  detail::tensor_reader* tensors_;
};

struct opened {
  detail::input_file file;
  detail::stripped_file parts;
};

detail::input_file open(const std::string& path) {
  std::string why;
  detail::input_file file = detail::input_file::open(path, why);
  if (!file) refuse(path, why);
  return file;
}

/// Walks a file. `wanted` is what it should be: "an ONNX model".
opened walk(const std::string& path, detail::input_file file, detail::message_kind kind, const char* wanted,
            const read_limits& limits) {
  opened made;
  made.file = std::move(file);
  if (made.file.size() == 0) refuse(path, "is empty");
  try {
    made.parts = detail::strip(made.file, kind, limits.fields);
  } catch (const detail::damage& found) {
    refuse(path, found.inside_graph ? "is damaged or cut short: " + found.what
                                    : std::string("is not ") + wanted + ", or is cut short: " + found.what);
  }
  return made;
}

/// protobuf's turn. The copy is let go at once.
template <class Message>
void parse(const std::string& path, opened& from, const char* wanted, Message& message) {
  const std::string bytes = std::move(from.parts.message);
  from.parts.message = {};
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    refuse(path, std::string("is not ") + wanted + ", or is damaged: protobuf cannot parse it");
}

/// The model's message, without the data of tensors.
opened parse_model(const std::string& file, detail::input_file contents, const read_limits& limits,
                   ::onnx::ModelProto& proto) {
  constexpr const char* wanted = "an ONNX model";
  opened from = walk(file, std::move(contents), detail::message_kind::model, wanted, limits);
  parse(file, from, wanted, proto);
  return from;
}

/// Collects the locations of external data.
class location_finder {
 public:
  std::set<std::string> found;

  void add(const ::onnx::GraphProto& from) {
    for (const auto& t : from.initializer()) add(t);
    for (const auto& t : from.sparse_initializer()) add(t);
    add(from.node());
  }
  void add(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes) {
    for (const auto& node : nodes)
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_t()) add(attribute.t());
        if (attribute.has_sparse_tensor()) add(attribute.sparse_tensor());
        if (attribute.has_g()) add(attribute.g());
        for (const auto& t : attribute.tensors()) add(t);
        for (const auto& t : attribute.sparse_tensors()) add(t);
        for (const auto& g : attribute.graphs()) add(g);
      }
  }

 private:
  void add(const ::onnx::TensorProto& from) {
    for (const auto& entry : from.external_data())
      if (entry.key() == "location") found.insert(entry.value());
  }
  void add(const ::onnx::SparseTensorProto& from) {
    add(from.values());
    add(from.indices());
  }
};

model model_of(const std::string& file, detail::input_file contents, const read_limits& limits) {
  ::onnx::ModelProto proto;
  const opened from = parse_model(file, std::move(contents), limits, proto);
  if (!proto.has_graph()) refuse(file, "is not an ONNX model: it has no graph");

  detail::tensor_reader tensors(file, from.file, from.parts, limits.tensor_bytes);
  converter convert(file, tensors);
  model made;
  made.file = file;
  made.ir_version = proto.ir_version();
  made.producer = proto.producer_name();
  if (!proto.producer_version().empty()) made.producer += (made.producer.empty() ? "" : " ") + proto.producer_version();
  made.opsets = opsets_of(proto);
  made.graph = convert.graph_of(proto.graph());
  for (const auto& function : proto.functions()) made.functions.push_back(convert.function_of(function));
  for (const auto& entry : proto.metadata_props()) made.metadata.emplace_back(entry.key(), entry.value());
  return made;
}

}  // namespace

model read_model(const std::string& file, const read_limits& limits) { return model_of(file, open(file), limits); }

model read_model(std::span<const std::byte> contents, const std::string& name, const read_limits& limits) {
  return model_of(name, detail::input_file::in_memory(contents), limits);
}

std::vector<std::string> external_files(const std::string& file, const read_limits& limits) {
  ::onnx::ModelProto proto;
  (void)parse_model(file, open(file), limits, proto);
  location_finder all;
  all.add(proto.graph());
  for (const auto& function : proto.functions()) all.add(function.node());
  std::vector<std::string> paths;
  for (const std::string& location : all.found) paths.push_back(detail::folder_of(file) + "/" + location);
  return paths;
}

model_tensor read_tensor(const std::string& file, const read_limits& limits) {
  constexpr const char* wanted = "an ONNX tensor";
  opened from = walk(file, open(file), detail::message_kind::tensor, wanted, limits);
  ::onnx::TensorProto proto;
  parse(file, from, wanted, proto);
  if (proto.data_type() == ::onnx::TensorProto::UNDEFINED)
    refuse(file, "is not an ONNX tensor: it has no element type");
  detail::tensor_reader tensors(file, from.file, from.parts, limits.tensor_bytes);
  return tensors.read(proto, "its tensor");
}

}  // namespace collage::inline v0::onnx
