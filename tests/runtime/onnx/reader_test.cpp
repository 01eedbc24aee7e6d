// Reading ONNX files into plain structs: what comes out, what is refused and in which words.
#ifdef COLLAGE_HAS_ONNX
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <collage/error.hpp>
#include <collage/io/onnx/model.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/messages.hpp"
#include "support/own_memory.hpp"
#include "writer.hpp"

namespace onnx_reader_test {

namespace c = collage;
using namespace collage_test;
using namespace std::string_literals;
using c::onnx::attribute_form;
using c::onnx::model_tensor;
using proto::TensorProto;

class onnx_reader : public testing::Test {
 protected:
  template <class Call>
  static std::string refusal(const std::string& path, const Call& call) {
    return sentence_about(path, call, c::error_kind::invalid_argument);
  }
  static std::string refused(const std::string& path, const c::onnx::read_limits& limits = {}) {
    return refusal(path, [&] { (void)c::onnx::read_model(path, limits); });
  }
  static std::string tensor_refused(const std::string& path) {
    return refusal(path, [&] { (void)c::onnx::read_tensor(path); });
  }
  /// What reading a model with this initializer says.
  std::string refused(const TensorProto& tensor) const {
    proto::ModelProto model = new_model();
    add_initializer(*model.mutable_graph(), tensor);
    return refused(files_.write(model));
  }
  model_tensor read(const TensorProto& tensor) const { return c::onnx::read_tensor(files_.write(tensor, "a.pb")); }

  model_folder files_;
};

template <class T>
std::vector<T> elements(const model_tensor& tensor) {
  std::size_t count = 1;
  for (const std::int64_t extent : tensor.extents) count *= static_cast<std::size_t>(extent);
  std::vector<T> list(count);
  if (tensor.bytes == nullptr) ADD_FAILURE() << tensor.name << " has no bytes";
  else if (count != 0) std::memcpy(list.data(), tensor.bytes.get(), count * sizeof(T));
  return list;
}

TEST_F(onnx_reader, a_model_s_own_fields) {
  proto::ModelProto model = new_model(13);
  model.set_producer_version("1.2");
  auto& other = *model.add_opset_import();
  other.set_domain("com.example");
  other.set_version(3);
  auto& entry = *model.add_metadata_props();
  entry.set_key("names");
  entry.set_value("a\nb");
  proto::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x:0", {1, "n", 0, -5, "?"}, TensorProto::INT64);
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim();
  graph.add_input()->set_name("untyped");
  declare(*graph.add_input(), "any rank", {});
  graph.mutable_input(2)->mutable_type()->mutable_tensor_type()->clear_shape();
  graph.add_output()->set_name("list");
  graph.mutable_output(0)->mutable_type()->mutable_sequence_type();
  const c::onnx::model read = c::onnx::read_model(files_.write(model));

  EXPECT_EQ(read.file, files_.path("a.onnx"));
  EXPECT_EQ(read.ir_version, 8);
  EXPECT_EQ(read.producer, "collage's tests 1.2");
  EXPECT_EQ(read.opsets, (std::map<std::string, std::int64_t>{{"", 13}, {"com.example", 3}}));
  ASSERT_EQ(read.metadata.size(), 1U);
  EXPECT_EQ(read.metadata[0], (std::pair<std::string, std::string>{"names", "a\nb"}));
  EXPECT_EQ(read.graph.name, "graph");

  ASSERT_EQ(read.graph.inputs.size(), 3U);
  const c::onnx::model_port& x = read.graph.inputs[0];
  EXPECT_EQ(x.name, "x:0");
  EXPECT_TRUE(x.is_tensor && x.has_shape);
  EXPECT_EQ(x.element_type, TensorProto::INT64);
  const std::vector<std::pair<std::int64_t, std::string>> extents = {{1, ""},  {-1, "n"}, {0, ""},
                                                                     {-1, ""}, {-1, "?"}, {-1, ""}};
  ASSERT_EQ(x.extents.size(), extents.size());
  for (std::size_t i = 0; i < extents.size(); ++i)
    EXPECT_EQ(std::pair(x.extents[i].extent, x.extents[i].symbol), extents[i]) << i;
  EXPECT_TRUE(read.graph.inputs[1].is_tensor);
  EXPECT_FALSE(read.graph.inputs[1].has_shape);
  EXPECT_EQ(read.graph.inputs[1].element_type, 0);
  EXPECT_FALSE(read.graph.inputs[2].has_shape);
  EXPECT_FALSE(read.graph.outputs[0].is_tensor);
}

TEST_F(onnx_reader, nodes_and_every_form_of_attribute) {
  proto::ModelProto model = new_model();
  proto::GraphProto inner;
  inner.set_name("inner");
  add_initializer(inner, tensor_of<float>("deep", {2}, {3, 4}));
  proto::AttributeProto tensors = attribute_header("tensors", proto::AttributeProto::TENSORS);
  for (const std::int64_t i : {5, 6}) *tensors.add_tensors() = tensor_of<std::int64_t>("", {1}, {i});
  proto::AttributeProto graphs = attribute_header("graphs", proto::AttributeProto::GRAPHS);
  *graphs.add_graphs() = inner;
  proto::AttributeProto untold = attribute("untold", 7);
  untold.clear_type();
  proto::AttributeProto referring = attribute_header("referring", proto::AttributeProto::FLOAT);
  referring.set_ref_attr_name("of the call");
  proto::AttributeProto sparse = attribute_header("sparse", proto::AttributeProto::SPARSE_TENSOR);
  sparse.mutable_sparse_tensor()->add_dims(2);
  *sparse.mutable_sparse_tensor()->mutable_values() = tensor_of<float>("", {1}, {9});
  *sparse.mutable_sparse_tensor()->mutable_indices() = tensor_of<std::int64_t>("", {1}, {1});
  proto::NodeProto& node =
      add_node(*model.mutable_graph(), "Some/Op", {"a/b:0", "", "c"}, {"y:0"},
               {attribute("real", 0.5F), attribute("integer", -3), attribute("text", "a"),
                attribute("tensor", tensor_of<float>("", {2, 1}, {1, 2})), attribute("graph", inner),
                attribute("reals", std::vector<float>{1, 2}), attribute("integers", std::vector<std::int64_t>{-1, 9}),
                attribute("texts", std::vector<std::string>{"p", ""}), tensors, graphs, sparse, untold, referring},
               "block/conv:1");
  node.set_domain("ai.onnx");
  node.GetReflection()->MutableUnknownFields(&node)->AddLengthDelimited(8, "second");  // overload, of newer versions
  add_node(*model.mutable_graph(), "Plain", {}, {}).set_domain("com.example");

  const c::onnx::model read = c::onnx::read_model(files_.write(model));
  ASSERT_EQ(read.graph.nodes.size(), 2U);
  const c::onnx::model_node& n = read.graph.nodes[0];
  EXPECT_EQ(n.name, "block/conv:1");
  EXPECT_EQ(n.operator_type, "Some/Op");
  EXPECT_EQ(n.domain, "");
  EXPECT_EQ(n.overload, "second");
  EXPECT_EQ(n.inputs, (std::vector<std::string>{"a/b:0", "", "c"}));
  EXPECT_EQ(n.outputs, (std::vector<std::string>{"y:0"}));
  EXPECT_EQ(read.graph.nodes[1].domain, "com.example");

  ASSERT_EQ(n.attributes.size(), 13U);
  const std::vector<attribute_form> forms = {attribute_form::real,     attribute_form::integer, attribute_form::text,
                                             attribute_form::tensor,   attribute_form::graph,   attribute_form::reals,
                                             attribute_form::integers, attribute_form::texts,   attribute_form::tensors,
                                             attribute_form::graphs,   attribute_form::tensor,  attribute_form::integer,
                                             attribute_form::real};
  for (std::size_t i = 0; i < forms.size(); ++i) EXPECT_EQ(n.attributes[i].form, forms[i]) << n.attributes[i].name;
  EXPECT_EQ(n.attributes[0].real, 0.5);
  EXPECT_EQ(n.attributes[1].integer, -3);
  EXPECT_EQ(n.attributes[2].text, "a");
  EXPECT_EQ(elements<float>(n.attributes[3].tensors.at(0)), (std::vector<float>{1, 2}));
  EXPECT_EQ(elements<float>(n.attributes[4].graphs.at(0)->initializers.at(0)), (std::vector<float>{3, 4}));
  EXPECT_EQ(n.attributes[5].reals, (std::vector<double>{1, 2}));
  EXPECT_EQ(n.attributes[6].integers, (std::vector<std::int64_t>{-1, 9}));
  EXPECT_EQ(n.attributes[7].texts, (std::vector<std::string>{"p", ""}));
  EXPECT_EQ(elements<std::int64_t>(n.attributes[8].tensors.at(1)), (std::vector<std::int64_t>{6}));
  EXPECT_EQ(n.attributes[9].graphs.at(0)->name, "inner");
  EXPECT_EQ(elements<float>(n.attributes[10].tensors.at(0)), (std::vector<float>{0, 9}));
  EXPECT_EQ(n.attributes[11].integer, 7);
  EXPECT_EQ(n.attributes[12].refers_to, "of the call");
}

TEST_F(onnx_reader, functions) {
  proto::ModelProto model = new_model();
  proto::FunctionProto& function = *model.add_functions();
  function.set_domain("ai.onnx");
  function.set_name("Twice");
  function.add_input("x");
  function.add_output("y");
  function.add_attribute("must");
  auto& import = *function.add_opset_import();
  import.set_domain("ai.onnx");
  import.set_version(15);
  add_node(function, "Add", {"x", "x"}, {"y"}, {attribute("w", tensor_of<float>("", {1}, {8}))});
  // attribute_proto and overload, of newer versions than the oldest package we build with
  auto& fields = *function.GetReflection()->MutableUnknownFields(&function);
  fields.AddLengthDelimited(11, attribute("may", 4).SerializeAsString());
  fields.AddLengthDelimited(11, attribute("table", tensor_of<float>("", {1}, {9})).SerializeAsString());
  fields.AddLengthDelimited(13, "o");

  const c::onnx::model read = c::onnx::read_model(files_.write(model));
  ASSERT_EQ(read.functions.size(), 1U);
  const c::onnx::model_function& f = read.functions[0];
  EXPECT_EQ(f.domain, "");
  EXPECT_EQ(f.name, "Twice");
  EXPECT_EQ(f.overload, "o");
  EXPECT_EQ(f.inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(f.outputs, std::vector<std::string>{"y"});
  EXPECT_EQ(f.attributes, std::vector<std::string>{"must"});
  EXPECT_EQ(f.opsets, (std::map<std::string, std::int64_t>{{"", 15}}));
  ASSERT_EQ(f.attribute_defaults.size(), 2U);
  EXPECT_EQ(f.attribute_defaults[0].integer, 4);
  EXPECT_EQ(elements<float>(f.attribute_defaults[1].tensors.at(0)), std::vector<float>{9});
  EXPECT_EQ(elements<float>(f.nodes.at(0).attributes.at(0).tensors.at(0)), std::vector<float>{8});
}

TEST_F(onnx_reader, fields_nobody_knows_are_ignored) {
  proto::ModelProto model = new_model();
  add_node(*model.mutable_graph(), "Op", {"x"}, {"y"}, {attribute("a", tensor_of<float>("", {1}, {2}))});
  add_initializer(*model.mutable_graph(), tensor_of<float>("w", {2}, {1, 2}));
  const auto spoil = [](google::protobuf::Message* message) {
    auto& fields = *message->GetReflection()->MutableUnknownFields(message);
    fields.AddVarint(500, 1);
    fields.AddFixed32(501, 2);
    fields.AddFixed64(502, 3);
    fields.AddLengthDelimited(503, "four");
  };
  spoil(&model);
  spoil(model.mutable_graph());
  spoil(model.mutable_graph()->mutable_initializer(0));
  spoil(model.mutable_graph()->mutable_node(0));
  spoil(model.mutable_graph()->mutable_node(0)->mutable_attribute(0));
  spoil(model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t());
  const c::onnx::model read = c::onnx::read_model(files_.write(model));
  EXPECT_EQ(elements<float>(read.graph.initializers.at(0)), (std::vector<float>{1, 2}));
  EXPECT_EQ(elements<float>(read.graph.nodes.at(0).attributes.at(0).tensors.at(0)), std::vector<float>{2});
}

template <class T>
void comes_back(const model_folder& files, const std::vector<T>& list, c::dtype type) {
  const auto count = static_cast<std::int64_t>(list.size());
  const model_tensor made = c::onnx::read_tensor(files.write(tensor_of<T>("w", {1, count}, list), "a.pb"));
  EXPECT_EQ(made.name, "w");
  EXPECT_EQ(c::onnx::element_type_of(made.element_type), type);
  EXPECT_EQ(made.extents, (std::vector<std::int64_t>{1, count}));
  EXPECT_EQ(elements<T>(made), list);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made.bytes.get()) % 64, 0U);
}

TEST_F(onnx_reader, raw_data_of_every_type) {
  comes_back<float>(files_, {1.5F, -2, std::numeric_limits<float>::infinity()}, c::dtype::f32);
  comes_back<double>(files_, {1.5, -2, 1e300}, c::dtype::f64);
  comes_back<std::int8_t>(files_, {-128, 127, 0}, c::dtype::i8);
  comes_back<std::int16_t>(files_, {-32768, 32767}, c::dtype::i16);
  comes_back<std::int32_t>(files_, {-7, 1 << 30}, c::dtype::i32);
  comes_back<std::int64_t>(files_, {-7, std::int64_t{1} << 62}, c::dtype::i64);
  comes_back<std::uint8_t>(files_, {255}, c::dtype::u8);
  comes_back<std::uint16_t>(files_, {65535, 1}, c::dtype::u16);
  comes_back<std::uint32_t>(files_, {0xFFFFFFFF, 1}, c::dtype::u32);
  comes_back<std::uint64_t>(files_, {~std::uint64_t{0}, 1}, c::dtype::u64);
  // Whatever a file calls true is 1 in memory.
  TensorProto flags = tensor_header("", TensorProto::BOOL, {4});
  flags.set_raw_data("\0\1\2\xFF"s);
  EXPECT_EQ(elements<std::uint8_t>(read(flags)), (std::vector<std::uint8_t>{0, 1, 1, 1}));
  for (const int type : {TensorProto::FLOAT16, TensorProto::BFLOAT16}) {
    TensorProto halves = tensor_header("", type, {2});
    halves.set_raw_data("\1\2\3\4"s);
    EXPECT_EQ(elements<std::uint16_t>(read(halves)), (std::vector<std::uint16_t>{0x0201, 0x0403}));
  }
}

TEST_F(onnx_reader, packed_elements_get_a_byte_each) {
  const auto raw = [&](int type, std::int64_t count, const std::string& data) {
    TensorProto t = tensor_header("", type, {count});
    t.set_raw_data(data);
    return elements<std::int8_t>(read(t));
  };
  using list = std::vector<std::int8_t>;
  EXPECT_EQ(raw(TensorProto::INT8, 1, "\xF1"), (list{-15}));
  // The numbers of types that the messages' version may not know.
  constexpr int e4m3fn = 17, u4 = 21, i4 = 22, e2m1 = 23, e8m0 = 24, u2 = 25, i2 = 26;
  EXPECT_EQ(raw(i4, 3, "\x87\xFA"), (list{7, -8, -6}));
  EXPECT_EQ(raw(u4, 3, "\x87\xFA"), (list{7, 8, 10}));
  EXPECT_EQ(raw(e2m1, 2, "\xC1"), (list{1, 12}));
  EXPECT_EQ(raw(i2, 5, "\x1B\xFE"), (list{-1, -2, 1, 0, -2}));
  EXPECT_EQ(raw(u2, 7, "\x1B\xFE"), (list{3, 2, 1, 0, 2, 3, 3}));
  EXPECT_EQ(raw(e4m3fn, 2, "\xC1\x7F"), (list{-63, 127}));
  EXPECT_EQ(raw(i4, 0, ""), list{});
  std::string packed;
  list wanted;
  for (int i = 0; i < 1001; ++i) wanted.push_back(static_cast<std::int8_t>(i % 13 - 6));
  for (std::size_t i = 0; i < wanted.size(); i += 2)
    packed += static_cast<char>((wanted[i] & 15) | (i + 1 < wanted.size() ? (wanted[i + 1] & 15) << 4 : 0));
  EXPECT_EQ(raw(i4, 1001, packed), wanted);

  const auto entries = [&](int type, std::int64_t count, std::initializer_list<int> data) {
    TensorProto t = tensor_header("w", type, {count});
    for (const int i : data) t.add_int32_data(i);
    return t;
  };
  EXPECT_EQ(elements<std::int8_t>(read(entries(i4, 5, {0x10, 0xC7, 8}))), (list{0, 1, 7, -4, -8}));
  EXPECT_EQ(elements<std::int8_t>(read(entries(e8m0, 2, {0x7F, 0xFF}))), (list{127, -1}));
  EXPECT_EQ(refused(entries(i4, 5, {0x10, 0xC7})), "the initializer `w` has 2 elements of data, and int4[5] takes 3");
  TensorProto wrong = tensor_header("w", u2, {9});
  wrong.set_raw_data("\1\2");
  EXPECT_EQ(refused(wrong), "the initializer `w` has 2 bytes of data, and uint2[9] takes 3");
  files_.write("\x87\xFA"s, "packed.bin");
  EXPECT_EQ(elements<std::int8_t>(read(external_tensor("w", i4, {3}, "packed.bin", "", ""))), (list{7, -8, -6}));
}

TEST_F(onnx_reader, typed_fields_of_every_type) {
  const auto typed = [&](int type, auto fill, std::int64_t count = 3) {
    TensorProto tensor = tensor_header("w", type, {count});
    fill(tensor);
    return read(tensor);
  };
  const auto int32s = [](TensorProto& t) {
    for (const int i : {-1, 0, 70000}) t.add_int32_data(i);
  };
  EXPECT_EQ(elements<float>(typed(TensorProto::FLOAT,
                                  [](TensorProto& t) {
                                    for (const float f : {1.5F, -0.0F, 3.0F}) t.add_float_data(f);
                                  })),
            (std::vector<float>{1.5F, -0.0F, 3.0F}));
  EXPECT_EQ(elements<double>(typed(TensorProto::DOUBLE,
                                   [](TensorProto& t) {
                                     for (const double d : {1.5, -2.0, 1e300}) t.add_double_data(d);
                                   })),
            (std::vector<double>{1.5, -2.0, 1e300}));
  EXPECT_EQ(elements<std::int64_t>(typed(TensorProto::INT64,
                                         [](TensorProto& t) {
                                           for (const std::int64_t i :
                                                {std::int64_t{-1}, std::int64_t{1} << 62, std::int64_t{0}})
                                             t.add_int64_data(i);
                                         })),
            (std::vector<std::int64_t>{-1, std::int64_t{1} << 62, 0}));
  const auto uint64s = [](TensorProto& t) {
    for (const std::uint64_t i : {std::uint64_t{1}, std::uint64_t{0xFFFFFFFF}, std::uint64_t{5}}) t.add_uint64_data(i);
  };
  EXPECT_EQ(elements<std::uint64_t>(typed(TensorProto::UINT64, uint64s)),
            (std::vector<std::uint64_t>{1, 0xFFFFFFFF, 5}));
  EXPECT_EQ(elements<std::uint32_t>(typed(TensorProto::UINT32, uint64s)),
            (std::vector<std::uint32_t>{1, 0xFFFFFFFF, 5}));
  // Of narrower types the low bits are taken.
  EXPECT_EQ(elements<std::int32_t>(typed(TensorProto::INT32, int32s)), (std::vector<std::int32_t>{-1, 0, 70000}));
  EXPECT_EQ(elements<std::int16_t>(typed(TensorProto::INT16, int32s)), (std::vector<std::int16_t>{-1, 0, 4464}));
  EXPECT_EQ(elements<std::uint16_t>(typed(TensorProto::UINT16, int32s)), (std::vector<std::uint16_t>{65535, 0, 4464}));
  EXPECT_EQ(elements<std::uint16_t>(typed(TensorProto::FLOAT16, int32s)), (std::vector<std::uint16_t>{65535, 0, 4464}));
  EXPECT_EQ(elements<std::uint16_t>(typed(TensorProto::BFLOAT16, int32s)),
            (std::vector<std::uint16_t>{65535, 0, 4464}));
  EXPECT_EQ(elements<std::int8_t>(typed(TensorProto::INT8, int32s)), (std::vector<std::int8_t>{-1, 0, 112}));
  EXPECT_EQ(elements<std::uint8_t>(typed(TensorProto::UINT8, int32s)), (std::vector<std::uint8_t>{255, 0, 112}));
  EXPECT_EQ(elements<std::uint8_t>(typed(TensorProto::BOOL, int32s)), (std::vector<std::uint8_t>{1, 0, 1}));
}

/// A field of the format by hand: its tag, then what follows.
std::string field(int number, int wire_type, const std::string& rest) {
  return static_cast<char>(number << 3 | wire_type) + rest;
}

TEST_F(onnx_reader, elements_one_by_one_and_in_pieces) {
  // Writers may give every element a tag of its own, or several lists, or both.
  const std::string header = tensor_header("w", TensorProto::INT64, {7}).SerializeAsString();
  const std::string pieces = field(7, 0, "\x01"s) + field(7, 0, "\xAC\x02"s) + field(7, 2, "\x02\x03\x04"s) +
                             field(7, 2, "\0"s) + field(7, 0, "\x05"s) + field(15, 0, "\x01"s) +
                             field(7, 2, "\x02\x06\x07"s);
  EXPECT_EQ(elements<std::int64_t>(c::onnx::read_tensor(files_.write(header + pieces, "a.pb"))),
            (std::vector<std::int64_t>{1, 300, 3, 4, 5, 6, 7}));
  const std::string floats = tensor_header("w", TensorProto::FLOAT, {3}).SerializeAsString() +
                             field(4, 5, "\0\0\x80\x3F"s) + field(4, 5, "\0\0\0\x40"s) + field(4, 2, "\4\0\0\x40\x40"s);
  EXPECT_EQ(elements<float>(c::onnx::read_tensor(files_.write(floats, "a.pb"))), (std::vector<float>{1, 2, 3}));
  // More than the reader's window, so that elements lie across its edge.
  TensorProto many = tensor_header("w", TensorProto::INT64, {100000});
  std::vector<std::int64_t> list(100000);
  std::mt19937_64 random(7);
  for (std::int64_t& i : list) many.add_int64_data(i = static_cast<std::int64_t>(random() >> (random() % 64)));
  EXPECT_EQ(elements<std::int64_t>(read(many)), list);
}

TEST_F(onnx_reader, scalars_and_tensors_of_no_elements) {
  EXPECT_EQ(elements<float>(read(tensor_of<float>("s", {}, {4}))), std::vector<float>{4});
  for (const auto& extents : std::vector<std::vector<std::int64_t>>{{0}, {2, 0, 3}, {0, std::int64_t{1} << 40}}) {
    const model_tensor made = read(tensor_header("e", TensorProto::FLOAT, extents));
    EXPECT_NE(made.bytes, nullptr);
    EXPECT_EQ(made.extents, extents);
  }
}

TEST_F(onnx_reader, weightless_tensors) {
  const auto filled = [&](const std::string& rule, int type = TensorProto::FLOAT) {
    TensorProto tensor = tensor_header("w", type, {2, 300});
    tensor.set_doc_string(rule);
    return tensor;
  };
  const model_tensor made = read(filled("uniform -0.0416 1e-3"));
  EXPECT_EQ(made.bytes, nullptr);
  ASSERT_TRUE(made.fill.has_value());
  EXPECT_EQ(made.fill->low, -0.0416F);
  EXPECT_EQ(made.fill->high, 1e-3F);
  // Data goes before a rule, and a tensor of no elements needs none.
  TensorProto both = tensor_of<float>("w", {1}, {3});
  both.set_doc_string("uniform 0 1");
  EXPECT_EQ(elements<float>(read(both)), std::vector<float>{3});

  const std::string none =
      "the initializer `w` has no data, and no rule 'uniform LOW HIGH' for float numbers in its doc_string";
  for (const char* rule : {"", "uniform", "uniform 0", "uniform 0 1 2", "uniform 0 x", "uniform 0 1e99",
                           "uniform nan 1", "Uniform 0 1", "normal 0 1"})
    EXPECT_EQ(refused(filled(rule)), none) << rule;
  EXPECT_EQ(refused(filled("uniform 0 1", TensorProto::DOUBLE)), none);
}

TEST_F(onnx_reader, tensors_that_cannot_be_held_are_refused_by_themselves) {
  const auto refusal_of = [&](const TensorProto& tensor) {
    const model_tensor made = read(tensor);
    EXPECT_EQ(made.bytes, nullptr);
    EXPECT_FALSE(made.fill.has_value());
    return made.refusal;
  };
  TensorProto texts = tensor_header("t", TensorProto::STRING, {2});
  texts.add_string_data("a");
  texts.add_string_data("b");
  EXPECT_EQ(refusal_of(texts), "its element type string is not supported");
  for (const auto& [number, name] :
       std::vector<std::pair<int, std::string>>{{14, "complex64"}, {15, "complex128"}, {99, "type 99"}}) {
    TensorProto other = tensor_header("t", number, {2});
    other.set_raw_data("abc");
    EXPECT_EQ(refusal_of(other), "its element type " + name + " is not supported");
  }
  EXPECT_EQ(refusal_of(tensor_of<float>("t", std::vector<std::int64_t>(9, 1), {1})),
            "its rank is 9, and at most 8 is supported");
  TensorProto segment = tensor_of<float>("t", {4}, {1});
  segment.mutable_segment()->set_begin(0);
  EXPECT_EQ(refusal_of(segment), "it is a segment of a larger tensor");

  proto::ModelProto model = new_model();
  auto& sparse = *model.mutable_graph()->add_sparse_initializer();
  *sparse.mutable_values() = tensor_of<float>("s", {1}, {1});
  *sparse.mutable_indices() = tensor_of<std::int64_t>("", {1}, {3});
  sparse.add_dims(5);
  const c::onnx::model read_again = c::onnx::read_model(files_.write(model));
  EXPECT_EQ(read_again.graph.initializers.at(0).name, "s");
  EXPECT_EQ(elements<float>(read_again.graph.initializers.at(0)), (std::vector<float>{0, 0, 0, 1, 0}));
}

TEST_F(onnx_reader, external_data_behind_links_lies_within_the_model_s_folders) {
  // As caches of models are laid out: a snapshot has links to files of one folder.
  for (const char* folder : {"blobs", "blobs/below", "snapshots", "snapshots/one", "elsewhere"})
    std::filesystem::create_directory(files_.path(folder));
  const std::string data = tensor_of<float>("", {2}, {1, 2}).raw_data();
  for (const char* file : {"blobs/d0", "blobs/below/d1", "elsewhere/d2", "snapshots/one/d3"}) files_.write(data, file);
  const auto link = [&](const std::string& to, const std::string& from) {
    std::filesystem::remove(files_.path(from));
    std::filesystem::create_symlink(to, files_.path(from));
  };
  files_.write(external_tensor("w", TensorProto::FLOAT, {2}, "w.data", "", ""), "blobs/m0");
  link("../../blobs/m0", "snapshots/one/w.pb");
  const std::string model = files_.path("snapshots/one/w.pb");
  const auto why = [&] { return collage_test::message_of([&] { (void)c::onnx::read_tensor(model); }, 2); };
  for (const char* target : {"../../blobs/d0", "d3", "../one/d3"}) {
    link(target, "snapshots/one/w.data");
    EXPECT_EQ(elements<float>(c::onnx::read_tensor(model)), (std::vector<float>{1, 2})) << target;
  }
  for (const char* target : {"../../elsewhere/d2", "../../blobs/below/d1", "/etc/passwd"}) {
    link(target, "snapshots/one/w.data");
    EXPECT_NE(why().find("is a link, or lies behind one, and leads out of the model's folder; copy the data into that "
                         "folder"),
              std::string::npos)
        << target << ": " << why();
  }
  link("../../blobs/gone", "snapshots/one/w.data");
  EXPECT_NE(why().find("is a link to a file that does not exist"), std::string::npos) << why();
  // Without links, the blobs of a model that is no link itself are out of reach.
  link("../../blobs/d0", "snapshots/one/w.data");
  files_.write(external_tensor("w", TensorProto::FLOAT, {2}, "w.data", "", ""), "snapshots/one/real.pb");
  EXPECT_NE(collage_test::message_of([&] { (void)c::onnx::read_tensor(files_.path("snapshots/one/real.pb")); }, 2)
                .find("leads out of the model's folder"),
            std::string::npos);
}

TEST_F(onnx_reader, sparse_tensors_become_dense) {
  proto::ModelProto model = new_model();
  auto& sparse = *model.mutable_graph()->add_sparse_initializer();
  const auto set = [&](const std::vector<std::int64_t>& dims, const std::vector<float>& values,
                       const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& indices) {
    sparse.Clear();
    for (const std::int64_t extent : dims) sparse.add_dims(extent);
    *sparse.mutable_values() = tensor_of<float>("s", {static_cast<std::int64_t>(values.size())}, values);
    *sparse.mutable_indices() = tensor_of<std::int64_t>("", extents, indices);
  };
  const auto dense = [&] { return elements<float>(c::onnx::read_model(files_.write(model)).graph.initializers.at(0)); };
  const auto why = [&] { return collage_test::message_of([&] { (void)c::onnx::read_model(files_.write(model)); }, 2); };
  set({2, 3}, {7, 8}, {2}, {1, 5});
  EXPECT_EQ(dense(), (std::vector<float>{0, 7, 0, 0, 0, 8}));
  set({2, 3}, {7, 8}, {2, 2}, {0, 1, 1, 2});
  EXPECT_EQ(dense(), (std::vector<float>{0, 7, 0, 0, 0, 8}));
  set({2}, {}, {0}, {});
  EXPECT_EQ(dense(), (std::vector<float>{0, 0}));
  set({2, 3}, {7, 8}, {2}, {1, 6});
  EXPECT_NE(why().find("the sparse initializer `s` has the index 6, which is outside of it"), std::string::npos);
  set({2, 3}, {7, 8}, {2, 2}, {0, 1, -1, 2});
  EXPECT_NE(why().find("has the index -1, which is outside of it"), std::string::npos);
  set({2, 3}, {7, 8}, {2}, {1, 1});
  EXPECT_NE(why().find("has indices that do not ascend"), std::string::npos);
  set({2, 3}, {7, 8}, {1}, {1});
  EXPECT_NE(why().find("has no int64 index for each of its values"), std::string::npos);
}

TEST_F(onnx_reader, tensors_whose_data_does_not_fit) {
  TensorProto raw = tensor_of<float>("a/w:0", {3}, {1, 2});
  EXPECT_EQ(refused(raw), "the initializer `a/w:0` has 8 bytes of data, and float32[3] takes 12");
  raw.set_dims(0, 1);
  EXPECT_EQ(refused(raw), "the initializer `a/w:0` has 8 bytes of data, and float32[1] takes 4");
  raw.set_dims(0, 0);
  EXPECT_EQ(refused(raw), "the initializer `a/w:0` has 8 bytes of data, and float32[0] takes 0");
  raw.set_dims(0, std::int64_t{1} << 59);
  EXPECT_EQ(refused(raw),
            "the initializer `a/w:0` has 8 bytes of data, and float32[576460752303423488] takes 2305843009213693952");
  for (const auto& extents : std::vector<std::vector<std::int64_t>>{
           {std::int64_t{1} << 62, 2}, {std::int64_t{1} << 32, std::int64_t{1} << 32}, {0, std::int64_t{1} << 62, 2}})
    EXPECT_EQ(refused(tensor_header("w", TensorProto::FLOAT, extents)),
              "the initializer `w` has extents whose product is too large");
  EXPECT_EQ(refused(tensor_header("w", TensorProto::FLOAT, {2, -1})), "the initializer `w` has the extent -1");

  TensorProto typed = tensor_header("w", TensorProto::INT64, {std::int64_t{1} << 40});
  typed.add_int64_data(1);
  EXPECT_EQ(refused(typed), "the initializer `w` has 1 elements of data, and int64[1099511627776] takes 1099511627776");
  typed.set_data_type(TensorProto::FLOAT);
  EXPECT_EQ(refused(typed), "the initializer `w` has its data in int64_data, which is not for float32");
  typed.set_raw_data("1234");
  EXPECT_EQ(refused(typed), "the initializer `w` has data in more than one form");
  EXPECT_EQ(refused(external_tensor("w", TensorProto::FLOAT, {1}, "x")),
            "the initializer `w` has external data in `x`, which does not exist");

  proto::ModelProto model = new_model();
  add_node(*model.mutable_graph(), "Constant", {}, {"y"}, {attribute("value", tensor_of<float>("", {2}, {1}))}, "k");
  EXPECT_EQ(refused(files_.write(model)),
            "the tensor of the attribute `value` of the node `k` has 4 bytes of data, and float32[2] takes 8");
  model.mutable_graph()->mutable_node(0)->clear_name();
  EXPECT_EQ(refused(files_.write(model)),
            "the tensor of the attribute `value` of a node of the operator `Constant` has 4 bytes of data, and "
            "float32[2] takes 8");
  // A name cannot break the sentence.
  EXPECT_EQ(refused(tensor_header("a\nb\0"s + std::string(200, 'x'), TensorProto::FLOAT, {1})),
            "the initializer `a?b?" + std::string(96, 'x') +
                "...` has no data, and no rule 'uniform LOW HIGH' for float numbers in its doc_string");
}

TEST_F(onnx_reader, elements_that_are_damaged) {
  const std::string header = tensor_header("w", TensorProto::INT64, {1}).SerializeAsString();
  EXPECT_NE(tensor_refused(files_.write(header + field(7, 2, "\1\x80"s), "a.pb")).find("has damaged data"),
            std::string::npos);
  EXPECT_NE(tensor_refused(files_.write(header + field(7, 2, "\x0B" + std::string(11, '\xFF')), "a.pb"))
                .find("has damaged data"),
            std::string::npos);
  const std::string floats = tensor_header("w", TensorProto::FLOAT, {1}).SerializeAsString();
  EXPECT_NE(tensor_refused(files_.write(floats + field(4, 2, "\5abcde"s), "a.pb")).find("has damaged data"),
            std::string::npos);
  EXPECT_NE(tensor_refused(files_.write(floats + field(4, 0, "\5"s), "a.pb")).find("another form"), std::string::npos);
}

TEST_F(onnx_reader, external_data) {
  std::filesystem::create_directory(files_.path("sub"));
  files_.write(std::string(8, '\0') + tensor_of<float>("", {3}, {1, 2, 3}).raw_data(), "sub/w.bin");
  const auto external = [](const std::string& location, const std::string& offset = {},
                           const std::string& length = {}) {
    return external_tensor("w", TensorProto::FLOAT, {2}, location, offset, length);
  };
  EXPECT_EQ(elements<float>(read(external("sub/w.bin", "8", "8"))), (std::vector<float>{1, 2}));
  EXPECT_EQ(elements<float>(read(external("./sub//./w.bin", "12"))), (std::vector<float>{2, 3}));
  EXPECT_EQ(elements<float>(read(external("sub/w.bin"))), (std::vector<float>{0, 0}));
  EXPECT_EQ(elements<float>(read(external("sub/w.bin", "8", "0"))), (std::vector<float>{1, 2}));
  // A model's own folder may be reached in any way, and be the working one.
  std::filesystem::create_directory_symlink(files_.path(), files_.path("alias"));
  files_.write(external("sub/w.bin", "8"), "b.pb");
  EXPECT_EQ(elements<float>(c::onnx::read_tensor(files_.path("alias/b.pb"))), (std::vector<float>{1, 2}));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(files_.path());
  EXPECT_EQ(elements<float>(c::onnx::read_tensor("b.pb")), (std::vector<float>{1, 2}));
  std::filesystem::current_path(before);

  std::filesystem::create_symlink("w.bin", files_.path("sub/link.bin"));
  std::filesystem::create_directory_symlink("sub", files_.path("linked"));
  ASSERT_EQ(::mkfifo(files_.path("fifo").c_str(), 0600), 0);
  const auto why = [&](const std::string& location, const std::string& offset = {}, const std::string& length = {}) {
    std::string text = refused(external(location, offset, length));
    const std::string start = "the initializer `w` has external data ";
    EXPECT_TRUE(text.starts_with(start)) << text;
    return text.substr(std::min(text.size(), start.size()));
  };
  EXPECT_EQ(why(""), "in ``, which is not a file name");
  EXPECT_EQ(why("a\0b"s), "in `a?b`, which is not a file name");
  EXPECT_EQ(why("missing.bin"), "in `missing.bin`, which does not exist");
  EXPECT_EQ(why("none/w.bin"), "in `none/w.bin`, which does not exist");
  EXPECT_EQ(why("sub/w.bin/w.bin"), "in `sub/w.bin/w.bin`, which does not exist");
  EXPECT_EQ(why(files_.path("sub/w.bin")),
            "in `" + files_.path("sub/w.bin") + "`, which is an absolute path, which external data may not have");
  for (const std::string location : {"..", "../w.bin", "sub/../sub/w.bin", "sub/.."})
    EXPECT_EQ(why(location), "in `" + location + "`, which contains '..', which external data may not");
  EXPECT_EQ(elements<float>(read(external("sub/link.bin", "8"))), (std::vector<float>{1, 2}));
  EXPECT_EQ(elements<float>(read(external("linked/w.bin", "8"))), (std::vector<float>{1, 2}));
  for (const std::string location : {"sub", "sub/", "."})
    EXPECT_EQ(why(location), "in `" + location + "`, which is a folder");
  EXPECT_EQ(why("fifo"), "in `fifo`, which is not a regular file");
  EXPECT_EQ(why("sub/w.bin", "16"), "in `sub/w.bin`, which ends at byte 20, before 8 bytes from byte 16");
  EXPECT_EQ(why("sub/w.bin", "18446744073709551615"),
            "in `sub/w.bin`, which ends at byte 20, before 8 bytes from byte 18446744073709551615");
  for (const std::string number : {"-1", "x", "1.5", "8 ", "99999999999999999999"}) {
    EXPECT_EQ(why("sub/w.bin", number), "whose offset `" + number + "` is no number");
    EXPECT_EQ(why("sub/w.bin", "0", number), "whose length `" + number + "` is no number");
  }
  EXPECT_EQ(refused(external("sub/w.bin", "0", "12")),
            "the initializer `w` has 12 bytes of external data, and float32[2] takes 8");
  TensorProto both = external("sub/w.bin");
  both.set_raw_data("12345678");
  EXPECT_EQ(refused(both), "the initializer `w` has data both in the file and outside");
  // Nothing of the claimed size is asked for.
  EXPECT_EQ(refused(external_tensor("w", TensorProto::FLOAT, {std::int64_t{1} << 59}, "sub/w.bin")),
            "the initializer `w` has external data in `sub/w.bin`, which ends at byte 20, before 2305843009213693952 "
            "bytes from byte 0");
}

TEST_F(onnx_reader, models_in_memory) {
  const auto bytes_in = [](const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); };
  proto::ModelProto model = new_model();
  add_initializer(*model.mutable_graph(), tensor_of<float>("a", {2}, {1, 2}));
  const std::string whole = model.SerializeAsString();
  const c::onnx::model read = c::onnx::read_model(bytes_in(whole), "bytes");
  EXPECT_EQ(read.file, "bytes");
  ASSERT_EQ(read.graph.initializers.size(), 1U);
  EXPECT_EQ(elements<float>(read.graph.initializers[0]), (std::vector<float>{1, 2}));

  const auto refused_bytes = [&](const std::string& text) {
    return refusal("bytes", [&] { (void)c::onnx::read_model(bytes_in(text), "bytes"); });
  };
  EXPECT_EQ(refused_bytes(""), "is empty");
  EXPECT_TRUE(contains(refused_bytes(whole.substr(0, whole.size() - 3)), "cut short"));
  EXPECT_TRUE(contains(refused_bytes("nothing"), "is not an ONNX model"));
  // A model in memory has no folder: it reaches no file of the working directory.
  add_initializer(*model.mutable_graph(), external_tensor("b", TensorProto::FLOAT, {2}, "weights.bin"));
  EXPECT_EQ(
      refused_bytes(model.SerializeAsString()),
      "the initializer `b` has external data in `weights.bin`, but a model in memory has no folder; load its file");
}

TEST_F(onnx_reader, files_that_are_no_models) {
  EXPECT_EQ(refused(files_.path("missing.onnx")), "does not exist");
  EXPECT_EQ(refused(files_.path()), "is a folder");
  ASSERT_EQ(::mkfifo(files_.path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(refused(files_.path("fifo")), "is not a regular file");
  EXPECT_EQ(refused("/dev/zero"), "is not a regular file");
  EXPECT_EQ(refused(files_.write("", "a.onnx")), "is empty");
  const auto is_no = [](const std::string& text, const std::string& wanted) {
    EXPECT_TRUE(text.starts_with("is not an ONNX " + wanted)) << text;
  };
  for (const std::string& bytes : {"hello, world\n"s, "{\"a\": 1}"s, "PK\3\4 and so on"s, "\x93NUMPY\1\0"s,
                                   "\x7F"
                                   "ELF\2\1\1\0"s,
                                   "\0\0\0\0"s, "\xFF"s, "<?xml version='1.0'?>"s, "\x89PNG\r\n\x1A\n"s}) {
    is_no(refused(files_.write(bytes, "a.onnx")), "model");
    is_no(tensor_refused(files_.write(bytes, "a.pb")), "tensor");
  }
  is_no(refused(files_.write(tensor_of<float>("w", {2}, {1, 2}))), "model");
  is_no(refused(files_.write(tensor_of<float>("", {}, {1}))), "model");
  proto::ModelProto model = new_model();
  is_no(tensor_refused(files_.write(model)), "tensor");
  model.clear_graph();
  EXPECT_EQ(refused(files_.write(model)), "is not an ONNX model: it has no graph");
  EXPECT_EQ(tensor_refused(files_.write(field(1, 0, "\1"), "a.pb")), "is not an ONNX tensor: it has no element type");
}

proto::ModelProto small_model() {
  proto::ModelProto model = new_model();
  proto::GraphProto& graph = *model.mutable_graph();
  proto::GraphProto inner;
  add_initializer(inner, tensor_of<float>("i", {2}, {1, 2}));
  add_input(graph, "x", {1, "n"});
  add_initializer(graph, tensor_of<float>("w", {2}, {1, 2}));
  TensorProto typed = tensor_header("v", TensorProto::INT64, {2});
  typed.add_int64_data(1);
  typed.add_int64_data(300);
  add_initializer(graph, typed);
  add_node(graph, "If", {"x"}, {"y"}, {attribute("then_branch", inner)});
  add_output(graph, "y", {});
  return model;
}

TEST_F(onnx_reader, a_file_cut_short_anywhere) {
  const std::string whole = small_model().SerializeAsString();
  (void)c::onnx::read_model(files_.write(whole, "a.onnx"));
  const std::size_t graph_ends = whole.size() - 6;  // behind it comes the operator set
  testing::internal::CaptureStderr();
  for (std::size_t size = 1; size < graph_ends; ++size) {
    const std::string text = refused(files_.write(whole.substr(0, size), "a.onnx"));
    EXPECT_TRUE(text.starts_with("is ")) << size << ": " << text;
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(refused(files_.write(whole.substr(0, 60), "a.onnx")),
            "is damaged or cut short: the field at byte 19 claims " + std::to_string(graph_ends - 21) +
                " bytes, and there are 39");
}

TEST_F(onnx_reader, lengths_that_lie) {
  const std::string whole = small_model().SerializeAsString();
  testing::internal::CaptureStderr();
  std::size_t refusals = 0;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const std::string& lie : {"\x7F"s, std::string(9, '\xFF') + '\1'}) {
      const std::string path = files_.write(whole.substr(0, at) + lie + whole.substr(at + 1), "a.onnx");
      try {
        (void)c::onnx::read_model(path);
      } catch (const c::error& e) {
        EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
        ++refusals;
      }
    }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(refusals, whole.size());
}

TEST_F(onnx_reader, nesting_is_bounded) {
  const auto nested = [](int levels) {
    proto::ModelProto model = new_model();
    proto::GraphProto* graph = model.mutable_graph();
    for (int i = 0; i < levels; ++i) {
      proto::AttributeProto& body = *add_node(*graph, "If", {}, {}).add_attribute();
      body.set_type(proto::AttributeProto::GRAPH);
      graph = body.mutable_g();
    }
    return model;
  };
  const c::onnx::model read = c::onnx::read_model(files_.write(nested(30)));
  EXPECT_EQ(read.graph.nodes.at(0).attributes.at(0).graphs.size(), 1U);
  const std::string text = refused(files_.write(nested(2000)));
  EXPECT_TRUE(text.starts_with("is damaged or cut short: it is nested deeper than")) << text;
}

TEST_F(onnx_reader, limits) {
  proto::ModelProto model = new_model();
  for (const char* name : {"a", "b"}) add_initializer(*model.mutable_graph(), tensor_of<float>(name, {2}, {1, 2}));
  const std::string path = files_.write(model);
  (void)c::onnx::read_model(path, {.tensor_bytes = 16});
  EXPECT_EQ(refused(path, {.tensor_bytes = 15}),
            "the initializer `b` takes 8 bytes, but the limit load_options::most_bytes leaves only 7");
  // A small file that claims to be filled with much, and one of many small messages.
  TensorProto filled = tensor_header("w", TensorProto::FLOAT, {std::int64_t{1} << 40});
  filled.set_doc_string("uniform 0 1");
  EXPECT_EQ(
      refused(filled),
      "the initializer `w` takes 4398046511104 bytes, but the limit load_options::most_bytes leaves only 68719476736");
  for (int i = 0; i < 1000; ++i) model.mutable_graph()->add_node();
  EXPECT_EQ(refused(files_.write(model), {.fields = 1000}),
            "is damaged or cut short: it has more fields than the limit of its reader allows");
  (void)c::onnx::read_model(files_.write(model), {.fields = 1020});
}

TEST_F(onnx_reader, names_of_element_types) {
  const char* const names[] = {"undefined", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string"};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(c::onnx::element_type_name(i), names[i]);
  EXPECT_EQ(c::onnx::element_type_name(TensorProto::BFLOAT16), "bfloat16");
  EXPECT_EQ(c::onnx::element_type_name(18), "float8e4m3fnuz");
  EXPECT_EQ(c::onnx::element_type_name(19), "float8e5m2");
  EXPECT_EQ(c::onnx::element_type_name(23), "float4e2m1");
  EXPECT_EQ(c::onnx::element_type_name(-1), "type -1");
  EXPECT_EQ(c::onnx::element_type_of(TensorProto::UNDEFINED), std::nullopt);
  EXPECT_EQ(c::onnx::element_type_of(TensorProto::STRING), std::nullopt);
  EXPECT_EQ(c::onnx::element_type_of(-1), std::nullopt);
}

TEST_F(onnx_reader, several_threads_at_once) {
  const std::string path = files_.write(small_model());
  std::vector<std::thread> threads;
  std::array<std::vector<std::int64_t>, 4> found;
  for (auto& list : found)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) list = elements<std::int64_t>(c::onnx::read_model(path).graph.initializers.at(1));
    });
  for (std::thread& t : threads) t.join();
  for (const auto& list : found) EXPECT_EQ(list, (std::vector<std::int64_t>{1, 300}));
}

/// How much the most memory in use grows while a model is read, in a process of its own. 0: it could not be read.
std::size_t growth(const std::string& path) {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  const pid_t child = ::fork();
  if (child == 0) {
    std::size_t grown = 0;
    try {
      const std::size_t before = own_memory("VmRSS");
      const c::onnx::model read = c::onnx::read_model(path);
      grown = own_memory("VmHWM") - before;
    } catch (const c::error&) { grown = 0; }
    ::_exit(::write(ends[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
  }
  std::size_t grown = 0;
  if (::read(ends[0], &grown, sizeof grown) != sizeof grown) grown = 0;
  ::close(ends[0]);
  ::close(ends[1]);
  ::waitpid(child, nullptr, 0);
  return grown;
}

TEST_F(onnx_reader, weights_are_in_memory_once) {
  if (keeps_memory) GTEST_SKIP() << "the address sanitizer keeps memory that was given back";
  constexpr std::size_t bytes = std::size_t{32} << 20;
  const std::vector<std::int64_t> extents = {4, bytes / 16};
  proto::ModelProto model = new_model();
  TensorProto& tensor = add_initializer(*model.mutable_graph(), tensor_header("w", TensorProto::FLOAT, extents));
  tensor.set_raw_data(std::string(bytes, '\1'));
  files_.write(model, "raw.onnx");
  tensor.clear_raw_data();
  tensor.mutable_float_data()->Resize(bytes / 4, 1.5F);
  files_.write(model, "typed.onnx");
  tensor.mutable_float_data()->Clear();
  *model.mutable_graph() = {};
  for (const char* file : {"raw.onnx", "typed.onnx"}) {
    const std::size_t grown = growth(files_.path(file));
    EXPECT_GT(grown, bytes) << file;  // it was read
    EXPECT_LT(grown, bytes + bytes / 4) << file;
  }
}

}  // namespace onnx_reader_test
#endif
