// Generated kernels: the part of the processor's peak that they reach from the second-level cache, and the time that
// generating one takes.
//
// The peak is measured beside each kernel, by multiply-adds on registers alone. Both take the best of many short runs, so that
// a busy machine disturbs the ratio little. Bars: at least 97 % of the peak, at most 50 microseconds for a kernel.
// needs: jit
#include <benchmark/benchmark.h>

#include <collage/ops.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "jit/generate.hpp"
#include "jit/product.hpp"
#include "peak.hpp"

namespace {

namespace c = collage;
namespace op = collage::ops;
namespace jit = collage::detail::jit;
using benchmarks::peak_avx2;
using benchmarks::peak_avx512;
using jit::instruction_set;

using seconds = std::chrono::duration<double>;
double now() { return seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A product of one band of rows, which stay in the first-level cache, and 512 KiB of packed B.
void of_peak(benchmark::State& state, const std::string& text, std::int64_t depth) {
  const jit::configuration how = jit::parse_configuration(text);
  if (const std::string why = jit::refusal_of(how.set); !why.empty()) return state.SkipWithError(why.c_str());
  const std::int64_t panel = depth * how.columns() * 4, panels = std::max<std::int64_t>(1, (512 << 10) / panel);
  const jit::product_extents extents{how.rows, panels * how.columns(), depth};
  const std::vector modes = {jit::store_mode::set};
  jit::product made(how, extents, modes, {}, std::make_shared<jit::code_arena>());
  made.bind();
  if (!made.refusal().empty()) return state.SkipWithError(made.refusal().c_str());
  const auto floats = [](std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count), 1.0F); };
  std::vector<float> a = floats(extents.m * depth), b = floats(extents.n * depth), y = floats(extents.m * extents.n);
  std::vector<float> packed(made.packed_size() + 16);
  float* const from = packed.data() + (64 - reinterpret_cast<std::uintptr_t>(packed.data()) % 64) / 4;
  made.pack(b.data(), extents.n, from);
  float* const to[] = {y.data()};
  const jit::product_call call{.a = a.data(), .a_step = depth, .packed = from, .to = to, .to_step = extents.n};
  const double operations =
      2.0 * static_cast<double>(extents.m) * static_cast<double>(extents.n) * static_cast<double>(depth);
  double best = std::numeric_limits<double>::infinity(), peak = 0;
  made.run(call);
  for (auto _ : state) {
    for (int i = 0; i < 8; ++i) {
      const double begin = now();
      made.run(call);
      const double middle = now();
      const double done = how.set == instruction_set::avx512 ? peak_avx512(2000) : peak_avx2(2000);
      const double end = now();
      best = std::min(best, middle - begin);
      peak = std::max(peak, done / (end - middle));
    }
  }
  state.counters["GFLOPS"] = operations / best / 1e9;
  state.counters["peak"] = peak / 1e9;
  state.counters["of_peak"] = operations / best / peak;
}
BENCHMARK_CAPTURE(of_peak, avx512_14x2_memory, "jit1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory", 256);
BENCHMARK_CAPTURE(of_peak, avx512_14x2_register, "jit1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast register", 256);
BENCHMARK_CAPTURE(of_peak, avx512_14x2_prefetch, "jit1 avx512 tile 14x2 unroll 4 prefetch 8 broadcast memory", 256);
BENCHMARK_CAPTURE(of_peak, avx512_9x3_memory, "jit1 avx512 tile 9x3 unroll 4 prefetch 0 broadcast memory", 256);
BENCHMARK_CAPTURE(of_peak, avx512_9x3_register, "jit1 avx512 tile 9x3 unroll 4 prefetch 0 broadcast register", 256);
BENCHMARK_CAPTURE(of_peak, avx512_6x4_register, "jit1 avx512 tile 6x4 unroll 4 prefetch 0 broadcast register", 256);
BENCHMARK_CAPTURE(of_peak, avx512_28x1_memory, "jit1 avx512 tile 28x1 unroll 4 prefetch 0 broadcast memory", 256);
BENCHMARK_CAPTURE(of_peak, avx2_6x2_register, "jit1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast register", 256);
BENCHMARK_CAPTURE(of_peak, avx2_4x3_register, "jit1 avx2 tile 4x3 unroll 4 prefetch 0 broadcast register", 256);

/// x + bias and a residual, then relu.
jit::epilogue bias_residual_relu() {
  jit::epilogue_maker make;
  const auto biased = make(op::add, {make.product(), make.operand(jit::operand_shape::per_column)});
  make.output(make(op::relu, {make(op::add, {biased, make.operand(jit::operand_shape::whole)})}));
  return make.finish();
}
jit::epilogue gelu() {
  jit::epilogue_maker make;
  const auto x = make(op::add, {make.product(), make.operand(jit::operand_shape::per_column)});
  const auto e = make(op::erf, {make(op::mul, {x, make.number(0.70710678118654752)})});
  make.output(make(op::mul, {make(op::mul, {x, make.number(0.5)}), make(op::add, {e, make.number(1)})}));
  return make.finish();
}

/// The time from a plan to code in an arena. `microseconds` is that of the fastest.
void generating(benchmark::State& state, const std::string& text, const jit::epilogue& finish) {
  const jit::configuration how = jit::parse_configuration(text);
  const std::vector modes = {jit::store_mode::set};
  double best = std::numeric_limits<double>::infinity();
  std::size_t bytes = 0;
  for (auto _ : state) {
    jit::code_arena arena;
    for (int i = 0; i < 16; ++i) {
      const double begin = now();
      const jit::tile_plan plan = jit::make_plan(how, how.rows, how.columns() - 3, modes, finish);
      const std::vector<std::uint8_t> code = jit::generate(plan);
      arena.add(code);
      best = std::min(best, now() - begin);
      bytes = code.size();
    }
  }
  state.counters["microseconds"] = best * 1e6;
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK_CAPTURE(generating, avx512_plain, "jit1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory",
                  jit::epilogue());
BENCHMARK_CAPTURE(generating, avx512_bias_residual_relu, "jit1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory",
                  bias_residual_relu());
BENCHMARK_CAPTURE(generating, avx512_bias_gelu, "jit1 avx512 tile 12x2 unroll 4 prefetch 0 broadcast memory", gelu());
BENCHMARK_CAPTURE(generating, avx2_plain, "jit1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast register", jit::epilogue());
BENCHMARK_CAPTURE(generating, avx2_bias_residual_relu, "jit1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast register",
                  bias_residual_relu());

}  // namespace
