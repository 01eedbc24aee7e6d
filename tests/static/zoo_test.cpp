// Every built-in network can be built, and its shapes inferred, in constant evaluation, within the default limits.
#include <collage/zoo/all.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace {

namespace c = collage;

// Counts what a network adds and infers its shapes, without allocating.
struct counter : c::graph_calls<counter> {
  static constexpr std::size_t most_values = 700, most_operands = 8;

  std::uint32_t inputs = 0, constants = 0, nodes = 0, outputs = 0;
  std::uint32_t refused = 0;  // nodes whose shape rule said no
  c::shape result;            // of the last output
  std::uint32_t values = 0;
  c::tensor_type types[most_values] = {};

  constexpr c::value record(const c::tensor_type& type) {
    types[values] = type;
    return {values++};
  }
  constexpr c::value input(const c::label&, const c::tensor_type& type) {
    ++inputs;
    return record(type);
  }
  constexpr c::value constant(const c::label&, const c::tensor_type& type, c::uniform) {
    ++constants;
    return record(type);
  }
  constexpr c::value scalar(const c::label&, double, c::dtype type = c::dtype::f32) {
    ++constants;
    return record({type, {}});
  }
  constexpr void output(const c::label&, c::value v) {
    ++outputs;
    result = types[v.index].dims;
  }
  constexpr c::value add(const c::kind_info& kind, std::span<const c::value> operands, c::attribute_words words,
                         const c::label&) {
    ++nodes;
    c::tensor_type in[most_operands], out[1];
    for (std::size_t i = 0; i < operands.size(); ++i) in[i] = types[operands[i].index];
    c::inference io{.in = std::span<const c::tensor_type>(in, operands.size()), .out = out};
    if (kind.normalise != nullptr) kind.normalise(words, io.in);
    if (!kind.infer(words.list(), io)) ++refused;
    return record(out[0]);
  }
};

struct summary {
  std::uint32_t nodes, constants;
  c::shape result;
  friend constexpr bool operator==(const summary&, const summary&) = default;
};

constexpr summary summary_of(const char* name) {
  counter g;
  if (!c::zoo::build(name, g) || g.refused != 0 || g.inputs != 1 || g.outputs != 1) return {};
  return {g.nodes, g.constants, g.result};
}

// A matmul and an addition stand for each fully connected layer, so some counts exceed those of an ONNX file.
static_assert(summary_of("bert-paper") == summary{232, 99, {1, 64, 256}});
static_assert(summary_of("dcgan-paper") == summary{23, 18, {1, 1}});
static_assert(summary_of("nasnet-a-paper") == summary{376, 238, {1, 1280, 14, 14}});
static_assert(summary_of("resnet50-3d-paper") == summary{116, 52, {1, 2048, 1, 7, 7}});
static_assert(summary_of("resnext50-paper") == summary{116, 52, {1, 2048, 7, 7}});
static_assert(summary_of("resnet50") == summary{123, 55, {1, 1000}});
static_assert(summary_of("mobilenet-v2") == summary{101, 56, {1, 1000}});
static_assert(summary_of("bert-base-128") == summary{396, 150, {1, 128, 768}});
static_assert(summary_of("lenet") == summary{}, "an unknown name builds nothing");

// The same networks without their names, as a program would call them that wants one.
constexpr std::uint32_t nodes_of_mobilenet() {
  counter g;
  c::zoo::mobilenet_v2(g);
  return g.nodes;
}
static_assert(nodes_of_mobilenet() == 101);

// Ranges: a uniform distribution over +-a has the standard deviation a / sqrt(3).
constexpr bool near(double a, double b) { return a - b < 1e-6 && b - a < 1e-6; }
static_assert(near(c::zoo::parts::square_root(2), 1.4142135623730951));
static_assert(near(c::zoo::parts::square_root(3.0 / 52'488), 0.0075601));
static_assert(near(c::zoo::parts::by_fan_in(48, 2).high, 0.5) && near(c::zoo::parts::by_fan_in(48, 2).low, -0.5));

}  // namespace
