// Operators of your own, from their description to a plan. They are used in a static network, in an ONNX file and in patterns.
// A backend of your own runs them, and they are checked against their reference.
// needs: onnx
#include <algorithm>
#include <cmath>
#include <collage/backends/portable.hpp>
#include <collage/collage.hpp>
#include <collage/graph/print.hpp>
#include <collage/io/onnx.hpp>
#include <collage/place.hpp>
#include <collage/run/verify.hpp>
#include <collage/set/coverage.hpp>
#include <collage/set/covers.hpp>
#include <cstdio>

namespace c = collage;
namespace op = collage::ops;

// The contents of a header of yours ------------------------------------------------------------------------------------

namespace my {

struct snake_attributes {
  double alpha = 1;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {  // the only list of the fields
    visitor("alpha", self.alpha);
  }
};

/// snake(x) = x + sin(alpha x)^2 / alpha. Elementwise: the body is the whole description.
inline constexpr struct snake : c::elementwise_kind<snake, 1> {
  static constexpr char name[] = "snake";
  static constexpr c::onnx_name onnx{"com.example", "Snake"};  // what models call it
  using attributes = snake_attributes;
  static constexpr auto body(auto x, auto alpha) {
    const auto wave = c::math::sin(alpha * x);
    return x + wave * wave / alpha;
  }
} snake{};

struct energy_attributes {
  std::int64_t frame = 16;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("frame", self.frame);
  }
};

/// energy(x): the mean square of each frame of the last dimension. It is not elementwise, so it states the shape of its result,
/// its cost and, in double precision, its values.
inline constexpr struct energy : c::kind<energy> {
  static constexpr char name[] = "energy";
  static constexpr c::onnx_name onnx{"com.example", "Energy"};
  static constexpr c::fusion_kind fusion = c::fusion_kind::reduction;
  using attributes = energy_attributes;

  static constexpr c::verdict infer(const attributes& a, c::inference& io) {
    c::tensor_type out = io.in[0];
    if (!c::is_floating(out.type) || out.rank() == 0) return {false, "it takes signals of a floating-point type", 0};
    std::int64_t& samples = out.dims[out.rank() - 1];
    if (a.frame < 1 || samples % a.frame != 0) return {false, "its last dimension must be whole frames", 0};
    samples /= a.frame;
    io.out[0] = out;
    return {};
  }
  static constexpr c::work count(const attributes&, const c::inference& io) {
    return {2.0 * static_cast<double>(io.in[0].dims.elements())};
  }
  static void reference(const attributes& a, const c::reference_call& call) {
    const auto frame = static_cast<std::size_t>(a.frame);
    for (std::size_t i = 0; i < call.out[0].real.size(); ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < frame; ++k) sum += call.in[0].real[i * frame + k] * call.in[0].real[i * frame + k];
      call.out[0].real[i] = sum / static_cast<double>(frame);
    }
  }
} energy{};

}  // namespace my

// A backend for them: energy alone, and both operators in one loop ----------------------------------------------------

struct energy_of_snake : c::pattern<"energy_of_snake"> {
  static constexpr auto expr = my::energy(my::snake(c::any));
};

struct mine : c::backend<"mine"> {
  using patterns = c::patterns<energy_of_snake, c::single<my::energy>>;

  template <class P>
  static constexpr c::verdict accepts(const c::match<P>& m) {
    return {m.output().type == c::dtype::f32, "it computes float32 only"};
  }
  static c::kernel build(const c::match<energy_of_snake>& m, c::build_context&) {
    const auto alpha = static_cast<float>(m[my::snake].alpha);
    return mean_square("energy of waves", m, [alpha](float x) {
      const float wave = std::sin(alpha * x);
      return x + wave * wave / alpha;
    });
  }
  static c::kernel build(const c::match<c::single<my::energy>>& m, c::build_context&) {
    return mean_square("energy", m, [](float x) { return x; });
  }

  template <class Match, class F>
  static c::kernel mean_square(const char* name, const Match& m, F f) {
    const auto frame = static_cast<std::size_t>(m[my::energy].frame);
    const auto frames = static_cast<std::size_t>(m.output().out.elements());
    return {name, [=](const c::kernel_call& call) {
              const auto* x = static_cast<const float*>(call.in[0]);
              auto* y = static_cast<float*>(call.out[0]);
              for (std::size_t i = 0; i < frames; ++i) {
                float sum = 0;
                for (std::size_t k = 0; k < frame; ++k) {
                  const float sample = f(x[i * frame + k]);
                  sum += sample * sample;
                }
                y[i] = sum / static_cast<float>(frame);
              }
            }};
  }
};

using backends = c::backend_set<mine, c::portable>;  // `portable` runs every operator, yours by their descriptions

// A static network ----------------------------------------------------------------------------------------------------

struct listener {
  static constexpr auto graph = c::define([](auto& g) {
    const auto sound = g.input("sound", {1, 1, 4096});
    const auto filters = g.constant("filters", {8, 1, 9}, {-0.3F, 0.3F});
    const auto heard = g(op::conv, sound, filters, {.pads_begin = {4}, .pads_end = {4}});
    g.output("energy", g(my::energy, g(my::snake, heard, {.alpha = 2}), {.frame = 64}));
  });
};
static_assert(c::covers<backends, listener>);  // the compiler knows the shapes, and that nothing is left over

/// Places a network by measuring, and shows which kernel runs which nodes. Then compares every output with the reference.
bool place_and_verify(const char* title, c::graph network) {
  c::fill_constants(network);
  const c::plan plan = c::place<backends>(network, {.network = title, .threads = 1});
  std::printf("%s\n", title);
  for (const c::plan_group& group : plan.chosen.groups)
    std::printf("  %-10s %-10s %-20s %8.4f ms\n", network.node_name(group.nodes.back()).c_str(),
                group.backend().c_str(), group.kernel.c_str(), group.cost_ms);
  const c::verification found = c::verify<backends>(network, plan);
  for (const c::verified_placement& p : found.placements)
    std::printf("  %-10s differs from the reference by %.1e\n", p.name.c_str(), p.worst_relative());
  if (!found) std::printf("  %s\n", found.why().c_str());
  return static_cast<bool>(found);
}

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: own_operator MODEL.onnx\n"), 2;
  std::printf("%s\n", c::coverage_text<backends>.c_str());
  bool good = place_and_verify("static network", listener{});

  // examples/own_operator.onnx: an initializer through Snake, added to the input, Snake, Energy.
  const c::graph model = c::onnx::load(argv[1], {.kinds = c::onnx::kinds<my::snake, my::energy>});
  std::printf("\n%s\n", c::to_string(model).c_str());
  good = place_and_verify("model", model) && good;
  return good ? 0 : 1;
} catch (const c::error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return e.exit_code();
}
