// A backend of your own, from nothing to a plan: a library with one fused kernel, relu of the sum of two tensors.
// needs: eigen
#include <algorithm>
#include <collage/adapter.hpp>
#include <collage/backends/eigen.hpp>
#include <collage/place.hpp>
#include <cstdio>

namespace c = collage;
namespace op = collage::ops;

struct sum_relu : c::pattern<"sum_relu"> {  // a pattern is a type; it reads like what it matches
  static constexpr auto expr = op::relu(op::add(c::any.as<"left">(), c::any.as<"right">()));
};

struct my_library : c::backend<"my_library"> {  // a backend is a type: what it can run, and how to build it
  using patterns = c::patterns<sum_relu>;

  static constexpr c::verdict accepts(const c::match<sum_relu>& m) {  // a refusal says why; `explain` repeats it
    return c::first_failure({
        {m.output().type == c::dtype::f32, "it computes float32 only"},
        {m.get<"left">().out == m.get<"right">().out, "it does not broadcast"},
    });
  }

  // Shapes and element types are fixed here; pointers come with each call.
  static c::kernel build(const c::match<sum_relu>& m, c::build_context&) {
    const auto left = m.in<"left", float>();
    const auto right = m.in<"right", float>();
    const auto sum = m.out<float>();
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    return {"my fused loop", [=](const c::kernel_call& call) {
              const float* const a = left(call);
              const float* const b = right(call);
              float* const y = sum(call);
              for (std::size_t i = 0; i < count; ++i) y[i] = a[i] + b[i] < 0 ? 0.0F : a[i] + b[i];
            }};
  }
};

using backends = c::backend_set<c::eigen, my_library>;

int main() {
  c::graph_builder g;  // a small network: relu(conv(x) + x), twice
  c::value x = g.input("x", {c::dtype::f32, {1, 16, 32, 32}});
  for (int layer = 0; layer < 2; ++layer) {
    const c::value w = g.constant(c::label("weight.") + layer, {c::dtype::f32, {16, 16, 3, 3}}, {-0.1F, 0.1F});
    x = g(op::relu, g(op::add, g(op::conv, x, w, {.pads_begin = {1, 1}, .pads_end = {1, 1}}), x));
  }
  g.output("y", x);
  c::graph network = g.finish();
  c::fill_constants(network);

  const c::placed_plan plan = c::place<backends>(network, {.threads = 1});  // checked, then measured
  for (const c::plan_group& group : plan.chosen.groups)
    std::printf("%-10s %-14s %8.4f ms%s%s\n", group.backend().c_str(), group.pattern().c_str(), group.cost_ms,
                group.runners_up.empty() ? "" : "  runner-up ",
                group.runners_up.empty() ? "" : group.runners_up[0].backend.c_str());
}
