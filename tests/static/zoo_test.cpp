// Every built-in network is a static graph, within the default limits of the compilers.
#include <collage/zoo/all.hpp>
#include <collage/zoo/statics.hpp>
#include <cstdint>

namespace {

namespace c = collage;
namespace statics = collage::zoo::statics;

// A network of one input and one output.
template <class Network>
constexpr bool is(std::size_t nodes, std::uint32_t constants, const c::shape& result) {
  const auto& graph = Network::graph;
  const c::graph_view g = graph.view();
  std::uint32_t found = 0;
  for (std::uint32_t v = 0; v < g.values.size(); ++v)
    if (g.is_constant(v)) ++found;
  return g.node_count() == nodes && found == constants && graph.inputs().size() == 1 && graph.outputs().size() == 1 &&
         g.values[graph.outputs()[0]].type.dims == result && g.uses.size() == g.operands.size();
}

// A matmul and an addition stand for each fully connected layer, so some counts exceed those of an ONNX file.
static_assert(is<statics::bert_paper>(232, 99, {1, 64, 256}));
static_assert(is<statics::dcgan_paper>(23, 18, {1, 1}));
static_assert(is<statics::nasnet_a_paper>(376, 238, {1, 1280, 14, 14}));
static_assert(is<statics::resnet50_3d_paper>(116, 52, {1, 2048, 1, 7, 7}));
static_assert(is<statics::resnext50_paper>(116, 52, {1, 2048, 7, 7}));
static_assert(is<statics::resnet50>(123, 55, {1, 1000}));
static_assert(is<statics::mobilenet_v2>(101, 56, {1, 1000}));
static_assert(is<statics::bert_base_128>(396, 150, {1, 128, 768}));

// A builder of a program's own takes the same functions; this one counts nodes.
struct counter : c::graph_calls<counter> {
  std::uint32_t nodes = 0;

  constexpr c::value add_input(c::text_ref, const c::tensor_type&) { return {}; }
  constexpr c::value add_constant(c::text_ref, const c::tensor_type&, c::contents_source, c::uniform) { return {}; }
  constexpr c::value add_scalar(c::text_ref, double, c::dtype) { return {}; }
  constexpr void add_output(c::text_ref, c::value) {}
  constexpr c::value add(const c::kind_info&, c::list_view<const c::value>, const c::attribute_words&, c::text_ref) {
    ++nodes;
    return {};
  }
};

constexpr std::uint32_t nodes_of(const char* name) {
  counter g;
  return c::zoo::build(name, g) ? g.nodes : 0;
}
static_assert(nodes_of("mobilenet-v2") == 101 && nodes_of("bert-paper") == 232);
static_assert(nodes_of("lenet") == 0, "an unknown name builds nothing");

// Ranges: a uniform distribution over +-a has the standard deviation a / sqrt(3).
constexpr bool near(double a, double b) { return a - b < 1e-6 && b - a < 1e-6; }
static_assert(near(c::zoo::parts::square_root(2), 1.4142135623730951));
static_assert(near(c::zoo::parts::square_root(3.0 / 52'488), 0.0075601));
static_assert(near(c::zoo::parts::by_fan_in(48, 2).high, 0.5) && near(c::zoo::parts::by_fan_in(48, 2).low, -0.5));

}  // namespace
