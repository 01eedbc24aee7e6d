// Files that are almost right: whatever they hold, loading answers a graph or one clear error, soon and in little memory.
#ifdef COLLAGE_HAS_ONNX
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <collage/error.hpp>
#include <collage/io/onnx.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "mutation.hpp"
#include "support/own_memory.hpp"
#include "support/random_graph.hpp"
#include "support/random_numbers.hpp"
#include "writer.hpp"

namespace onnx_mutation_test {

using namespace collage_test;
using proto::TensorProto;
using integers = std::vector<std::int64_t>;

TensorProto floats(const std::string& name, const integers& extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  std::vector<float> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back(0.25F * static_cast<float>(i % 7) - 0.5F);
  return tensor_of<float>(name, extents, list);
}
TensorProto list_of(const std::string& name, const integers& list) {
  return tensor_of<std::int64_t>(name, {static_cast<std::int64_t>(list.size())}, list);
}
void constants(proto::GraphProto& graph, const std::vector<TensorProto>& tensors) {
  for (const TensorProto& tensor : tensors) add_initializer(graph, tensor);
}

proto::ModelProto layers() {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {1, 4, 12, 12});
  constants(g, {floats("w", {8, 2, 3, 3}), floats("b", {8}), floats("scale", {8}), floats("t", {8, 4, 2, 2}),
                floats("m", {6, 4}), floats("slope", {4, 1, 1}), list_of("sizes", {1, 4, 9, 11})});
  TensorProto weightless = tensor_header("filled", TensorProto::FLOAT, {4, 10});
  weightless.set_doc_string("uniform -0.5 0.5");
  TensorProto variance = floats("var", {8});
  variance.set_raw_data(std::string(32, '\x3F'));
  constants(g, {weightless, variance});
  add_node(g, "Conv", {"x", "w", "b"}, {"c"},
           {attribute("group", 2), attribute("pads", integers{1, 1, 1, 1}), attribute("strides", integers{2, 2}),
            attribute("dilations", integers{1, 1}), attribute("kernel_shape", integers{3, 3})});
  add_node(g, "BatchNormalization", {"c", "scale", "b", "b", "var"}, {"n"}, {attribute("epsilon", 1e-5F)});
  add_node(g, "Relu", {"n"}, {"r"});
  add_node(
      g, "MaxPool", {"r"}, {"p"},
      {attribute("kernel_shape", integers{2, 2}), attribute("strides", integers{2, 2}), attribute("ceil_mode", 1)});
  add_node(g, "ConvTranspose", {"p", "t"}, {"u"},
           {attribute("strides", integers{2, 2}), attribute("output_padding", integers{1, 1})});
  add_node(g, "PRelu", {"u", "slope"}, {"q"});
  add_node(g, "Resize", {"q", "", "", "sizes"}, {"z"},
           {attribute("mode", "linear"), attribute("coordinate_transformation_mode", "half_pixel")});
  add_node(g, "AveragePool", {"z"}, {"a"},
           {attribute("kernel_shape", integers{3, 2}), attribute("auto_pad", "SAME_UPPER")});
  add_node(g, "GlobalAveragePool", {"a"}, {"s"});
  add_node(g, "Flatten", {"s"}, {"f"}, {attribute("axis", 1)});
  add_node(g, "Gemm", {"f", "m"}, {"h"}, {attribute("transB", 1), attribute("alpha", 0.5F)});
  add_node(g, "MatMul", {"f", "filled"}, {"k"});
  add_node(g, "Concat", {"h", "k"}, {"l"}, {attribute("axis", -1)});
  add_node(g, "LayerNormalization", {"l", "ones", "ones"}, {"o"}, {attribute("axis", -1)});
  constants(g, {floats("ones", {16})});
  add_node(g, "Softmax", {"o"}, {"y"}, {attribute("axis", 1)});
  add_output(g, "y", {1, 16});
  return model;
}

proto::ModelProto shapes() {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {2, 3, 4});
  constants(g,
            {list_of("minus", {-1}), list_of("zero", {0}), list_of("one", {1}), list_of("two", {2}),
             list_of("repeats", {1, 2, 1}), list_of("pads", {0, 1, 0, 0, 0, 2}), list_of("wide", {5, 1, 4, 4}),
             list_of("split", {1, 3}), list_of("picked", {2, 0, -1}), tensor_of<std::int64_t>("places", {2, 1}, {1, 0}),
             floats("updates", {2, 3, 4}), tensor_of<std::int64_t>("start", {}, {1}),
             tensor_of<std::int64_t>("limit", {}, {9}), tensor_of<std::int64_t>("step", {}, {2}),
             tensor_of<std::int64_t>("k", {1}, {2}), tensor_of<bool>("mask", {3, 1}, {true, false, true})});
  add_node(g, "Shape", {"x"}, {"s"});
  add_node(g, "Gather", {"s", "picked"}, {"sg"}, {attribute("axis", 0)});
  add_node(g, "Mul", {"sg", "two"}, {"sm"});
  add_node(g, "ReduceSum", {"sm", "zero"}, {"sr"}, {attribute("keepdims", 1)});
  add_node(g, "Div", {"sr", "two"}, {"sd"});
  add_node(g, "Slice", {"s", "zero", "two", "zero", "one"}, {"ss"});
  add_node(g, "Concat", {"ss", "minus"}, {"sc"}, {attribute("axis", 0)});
  add_node(g, "Reshape", {"x", "sc"}, {"r"});
  add_node(g, "Transpose", {"r"}, {"t"}, {attribute("perm", integers{0, 2, 1})});
  add_node(g, "Unsqueeze", {"t", "one"}, {"u"});
  add_node(g, "Squeeze", {"u", "one"}, {"q"});
  add_node(g, "Tile", {"x", "repeats"}, {"ti"});
  add_node(g, "Pad", {"ti", "pads"}, {"p"}, {attribute("mode", "reflect")});
  add_node(g, "Slice", {"p", "minus", "zero", "two", "minus"}, {"ps"});
  add_node(g, "Unsqueeze", {"x", "zero"}, {"xu"});
  add_node(g, "ConstantOfShape", {"s"}, {"cs"}, {attribute("value", tensor_of<float>("", {1}, {2}))});
  add_node(g, "Add", {"x", "cs"}, {"xa"});
  add_node(g, "Split", {"xa", "split"}, {"s1", "s2"}, {attribute("axis", 2)});
  add_node(g, "ScatterND", {"xa", "places", "updates"}, {"sn"});
  add_node(g, "Where", {"mask", "sn", "x"}, {"w"});
  add_node(g, "Range", {"start", "limit", "step"}, {"range"});
  add_node(g, "Cast", {"range"}, {"rf"}, {attribute("to", 1)});
  add_node(g, "Add", {"rf", "x"}, {"ra"});
  add_node(g, "TopK", {"w", "k"}, {"tv", "tix"}, {attribute("axis", 1)});
  add_node(g, "CumSum", {"x", "start"}, {"cu"});
  add_node(g, "Einsum", {"x", "cu"}, {"e"}, {attribute("equation", "abc,abd->acd")});
  add_node(g, "DepthToSpace", {"d4"}, {"d"}, {attribute("blocksize", 2)});
  constants(g, {floats("d4", {1, 4, 2, 2})});
  add_node(g, "NonZero", {"d4"}, {"nz"});
  add_node(g, "ReduceMax", {"ra"}, {"rm"}, {attribute("axes", integers{-1}), attribute("keepdims", 0)});
  add_node(g, "Expand", {"one", "wide"}, {"ex"});
  for (const char* name : {"q", "ps", "xu", "s1", "s2", "tv", "tix", "e", "d", "rm", "ex", "nz", "sd"})
    add_output(g, name, {});
  return model;
}

proto::ModelProto control() {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {2, 3});
  add_input(g, "flag", {1}, TensorProto::BOOL);
  add_input(g, "rounds", {}, TensorProto::INT64);
  constants(g, {tensor_of<std::int64_t>("three", {}, {3}), tensor_of<bool>("yes", {}, {true})});

  const auto branch = [](const char* operator_type, const char* inner) {
    proto::GraphProto made;
    made.set_name(inner);
    constants(made, {floats("k", {3})});
    add_node(made, operator_type, {"x", "k"}, {inner});
    add_output(made, inner, {2, 3});
    return made;
  };
  proto::GraphProto outer = branch("Sub", "deep");
  outer.clear_output();
  add_node(outer, "If", {"yes"}, {"deeper"},
           {attribute("then_branch", branch("Mul", "d1")), attribute("else_branch", branch("Div", "d2"))});
  add_output(outer, "deeper", {2, 3});
  add_node(g, "If", {"flag"}, {"y"}, {attribute("then_branch", branch("Add", "t")), attribute("else_branch", outer)},
           "choose");

  proto::GraphProto body;
  add_input(body, "i", {}, TensorProto::INT64);
  add_input(body, "go", {}, TensorProto::BOOL);
  add_input(body, "state", {2, 3});
  add_node(body, "Add", {"state", "x"}, {"next"});
  add_node(body, "Identity", {"go"}, {"goes"});
  add_node(body, "Relu", {"next"}, {"stacked"});
  add_output(body, "goes", {}, TensorProto::BOOL);
  add_output(body, "next", {2, 3});
  proto::GraphProto short_body = body;
  add_output(short_body, "stacked", {2, 3});
  add_node(g, "Loop", {"three", "yes", "y"}, {"z", "all"}, {attribute("body", short_body)}, "unrolled");
  add_node(g, "Loop", {"rounds", "", "z"}, {"w"}, {attribute("body", body)}, "running");

  proto::GraphProto step;
  add_input(step, "sum", {3});
  add_input(step, "row", {3});
  add_node(step, "Add", {"sum", "row"}, {"total"});
  add_node(step, "Identity", {"total"}, {"kept"});
  add_output(step, "total", {3});
  add_output(step, "kept", {3});
  constants(g, {floats("none", {3})});
  add_node(g, "Scan", {"none", "w"}, {"last", "sums"}, {attribute("num_scan_inputs", 1), attribute("body", step)});
  for (const char* name : {"w", "all", "last", "sums"}) add_output(g, name, {});
  return model;
}

proto::ModelProto functions() {
  proto::ModelProto model = new_model();
  auto& import = *model.add_opset_import();
  import.set_domain("own");
  import.set_version(1);
  const auto function = [&](const char* name) -> proto::FunctionProto& {
    proto::FunctionProto& f = *model.add_functions();
    f.set_domain("own");
    f.set_name(name);
    f.add_input("a");
    f.add_input("b");
    f.add_output("c");
    for (const char* domain : {"", "own"}) {
      auto& own = *f.add_opset_import();
      own.set_domain(domain);
      own.set_version(domain[0] == '\0' ? 17 : 1);
    }
    return f;
  };
  proto::FunctionProto& inner = function("Scaled");
  inner.add_attribute("slope");
  proto::AttributeProto slope = attribute_header("alpha", proto::AttributeProto::FLOAT);
  slope.set_ref_attr_name("slope");
  add_node(inner, "LeakyRelu", {"a"}, {"l"}, {slope});
  add_node(inner, "Mul", {"l", "b"}, {"c"}, {}, "mul");
  proto::FunctionProto& outer = function("Twice");
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"a", "m"}, {"m", "c"}})
    add_node(outer, "Scaled", {from, "b"}, {to}, {attribute("slope", 0.25F)}).set_domain("own");

  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {2, 3});
  constants(g, {external_tensor("w", TensorProto::FLOAT, {2, 3}, "w.bin", "8", "24")});
  add_node(g, "Twice", {"x", "w"}, {"y"}).set_domain("own");
  add_node(g, "Scaled", {"y", "w"}, {"z"}, {attribute("slope", 2.0F)}).set_domain("own");
  add_output(g, "z", {2, 3});
  return model;
}

proto::ModelProto numbers() {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {5, 2, 4});
  TensorProto steps = tensor_header("step", TensorProto::FLOAT, {});
  steps.add_float_data(0.05F);
  TensorProto zero = tensor_header("zero", TensorProto::UINT8, {});
  zero.add_int32_data(128);
  TensorProto half = tensor_header("half", TensorProto::FLOAT16, {4});
  for (const int bits : {0x3C00, 0x4000, 0, 0xC000}) half.add_int32_data(bits);
  TensorProto wide = tensor_header("wide", TensorProto::INT64, {4});
  for (const std::int64_t i : {1, 2, 3, 4}) wide.add_int64_data(i);
  constants(g, {steps, zero, half, wide, floats("w", {1, 12, 4}), floats("r", {1, 12, 3}), floats("b", {1, 24}),
                floats("lw", {2, 12, 4}), floats("lr", {2, 12, 3})});
  add_node(g, "QuantizeLinear", {"x", "step", "zero"}, {"q"});
  add_node(g, "DequantizeLinear", {"q", "step", "zero"}, {"d"});
  add_node(g, "Cast", {"half"}, {"hf"}, {attribute("to", 1)});
  add_node(g, "Cast", {"wide"}, {"wf"}, {attribute("to", 1)});
  add_node(g, "Mul", {"d", "hf"}, {"m"});
  add_node(g, "Pow", {"m", "wf"}, {"p"});
  add_node(g, "Clip", {"p", "step", ""}, {"c"});
  add_node(g, "LSTM", {"c", "w", "r", "b"}, {"s", "h", "cell"}, {attribute("hidden_size", 3)});
  add_node(g, "LSTM", {"c", "lw", "lr"}, {"bs"},
           {attribute("hidden_size", 3), attribute("direction", "bidirectional")});
  add_node(g, "GRU", {"c", "gw", "gr"}, {"gs"}, {attribute("hidden_size", 2), attribute("direction", "reverse")});
  constants(g, {floats("gw", {1, 6, 4}), floats("gr", {1, 6, 2})});
  add_node(g, "ReduceLogSumExp", {"x"}, {"e"}, {attribute("axes", integers{0, -1})});
  add_node(g, "ArgMax", {"x"}, {"a"}, {attribute("axis", 1), attribute("keepdims", 0)});
  add_node(g, "LogSoftmax", {"x"}, {"ls"}, {attribute("axis", 0)});
  for (const char* name : {"s", "h", "cell", "bs", "gs", "e", "a", "ls"}) add_output(g, name, {});
  return model;
}

proto::ModelProto decoder() {
  proto::ModelProto model = new_model(27);
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {2, 3, 8});
  add_input(g, "k", {2, 3, 4});
  add_input(g, "positions", {2, 3}, TensorProto::INT64);
  add_input(g, "mask", {1, 1, 5}, TensorProto::BOOL);
  add_input(g, "places", {2}, TensorProto::INT64);
  constants(g, {floats("cosine", {9, 2}), floats("sine", {9, 2}), floats("past", {2, 1, 2, 4}),
                floats("cache", {2, 1, 6, 4}), floats("depthwise", {3, 1, 4}), list_of("axis", {1})});
  add_node(g, "RotaryEmbedding", {"x", "cosine", "sine", "positions"}, {"q"},
           {attribute("num_heads", 2), attribute("interleaved", 1)});
  add_node(g, "Attention", {"q", "k", "k", "mask", "past", "past"}, {"a", "pk", "pv", "qk"},
           {attribute("q_num_heads", 2), attribute("kv_num_heads", 1), attribute("is_causal", 1),
            attribute("softcap", 3.0F), attribute("softmax_precision", 1), attribute("qk_matmul_output_mode", 3)});
  add_node(g, "TensorScatter", {"cache", "pk", "places"}, {"c"}, {attribute("mode", "circular")});
  add_node(g, "Attention", {"past", "c", "c", "", "", "", "places"}, {"b"},
           {attribute("left_window_size", 2), attribute("scale", 0.5F)});
  add_node(g, "LinearAttention", {"x", "k", "k", "", "k", "k"}, {"l", "state"},
           {attribute("q_num_heads", 8), attribute("kv_num_heads", 4)});
  add_node(g, "CausalConvWithState", {"x", "depthwise"}, {"v", "last"}, {attribute("activation", "silu")});
  add_node(g, "CumProd", {"v", "axis"}, {"cp"}, {attribute("exclusive", 1)});
  for (const char* name : {"a", "qk", "b", "l", "state", "last", "cp"}) add_output(g, name, {});
  return model;
}

/// What a message must be: lines without control characters, about the file.
::testing::AssertionResult is_clear(const std::string& text, const std::string& path) {
  if (!text.starts_with(path)) return ::testing::AssertionFailure() << "it does not name the file: " << text;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == 127)
      return ::testing::AssertionFailure() << "it has control characters: " << text;
  return ::testing::AssertionSuccess();
}

void load_spoilt_files(std::size_t count) {
  const std::vector<proto::ModelProto> models = {layers(), shapes(), control(), functions(), numbers(), decoder()};
  collage::onnx::load_options options;
  options.most_bytes = std::size_t{256} << 20;
  options.most_nodes = 10000;
  const std::uint64_t seed = fresh_seed();
  const model_folder folder;
  folder.write(std::string(64, '\x3F'), "w.bin");
  for (const proto::ModelProto& model : models) (void)collage::onnx::load(folder.write(model), options);

  const std::size_t before = own_memory("VmHWM");
  std::size_t loaded = 0;
  double longest = 0;
  for (std::size_t i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    mutator random(seed + i * 0x9E3779B97F4A7C15);
    const std::size_t which = random.pick(models.size());
    // One file, overwritten: where loading ends the process, the one at fault is left behind.
    const std::string path =
        folder.write(random.spoilt(models[which], models[random.pick(models.size())]), "spoilt.onnx");
    const auto start = std::chrono::steady_clock::now();
    try {
      (void)collage::onnx::load(path, options);
      ++loaded;
    } catch (const collage::error& e) {
      EXPECT_TRUE(is_clear(e.what(), path)) << "file " << i;
    } catch (const std::exception& e) {
      ADD_FAILURE() << "file " << i << " of model " << which << " threw something else: " << e.what();
    }
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    longest = std::max(longest, took);
    EXPECT_LT(took, 60) << "it hangs with file " << i << " of model " << which;
  }
  const std::size_t grown = own_memory("VmHWM") - before;
  std::cout << loaded << " of " << count << " loaded, the longest took " << longest << " s, memory grew by "
            << (grown >> 20U) << " MiB\n";
  if (!keeps_memory) EXPECT_LT(grown, std::size_t{1} << 30);
  // Mutations that spoil nothing, or everything, test nothing.
  EXPECT_GT(loaded, count / 50);
  EXPECT_LT(loaded, count * 9 / 10);
}

TEST(onnx_mutation, a_graph_or_a_clear_error) { load_spoilt_files(1000); }
TEST(onnx_mutation_long, a_graph_or_a_clear_error) { load_spoilt_files(10000); }

}  // namespace onnx_mutation_test
#endif
