// What the engine itself costs per step: a chain of kernels that do nothing.
#include <benchmark/benchmark.h>

#include <collage/collage.hpp>
#include <collage/run/engine.hpp>

namespace {

namespace c = collage;
namespace op = collage::ops;

struct nothing : c::backend<"nothing"> {
  using patterns = c::patterns<c::single<op::relu>>;
  static c::kernel build(const c::match<c::single<op::relu>>&, c::build_context&) {
    return {"nothing", [](const c::kernel_call& call) { benchmark::DoNotOptimize(call.out[0]); }};
  }
};

void steps(benchmark::State& state) {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {16}});
  for (std::int64_t i = 0; i < state.range(0); ++i) x = g(op::relu, x);
  g.output("y", x);
  const c::graph network = g.finish();
  c::plan plan;
  plan.fingerprint = network.fingerprint();
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    c::plan_group group;
    group.step = c::kernel_step{"nothing", "relu"};
    group.nodes = {n};
    plan.chosen.groups.push_back(group);
  }
  c::dynamic_context context = c::engine<c::backend_set<nothing>>(network, plan).context();
  const c::tensor in({c::dtype::f32, {16}});
  const c::tensor out({c::dtype::f32, {16}});
  const c::const_tensor_view inputs[] = {in};
  const c::tensor_view outputs[] = {out};
  for (auto _ : state) context.run(inputs, outputs);
  state.counters["per_step"] = benchmark::Counter(
      static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(steps)->Arg(1)->Arg(100)->Arg(400);

}  // namespace
