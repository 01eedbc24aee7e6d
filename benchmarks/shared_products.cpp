// Products of one left operand by one kernel, over one kernel for each: the queries, keys and values of attention.
//
// Both run in turns in the same configuration, on weights that are not in the caches: each call has the next of several copies.
// `ratio` is the median over turns. `separate_us` and `shared_us` are medians.
//   COLLAGE_THREADS   threads of both (1)
// needs: jit
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <collage/ops.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "clock.hpp"
#include "jit/product_point.hpp"
#include "jit/scheme_product.hpp"
#include "kernel_times.hpp"

extern "C" void omp_set_num_threads(int count);  // not every compiler that reads this file has omp.h

namespace {

namespace jit = collage::detail::jit;
namespace op = collage::ops;
using jit::scheme_product;

using benchmarks::median;
using benchmarks::now;
using benchmarks::threads;

struct floats : benchmarks::floats {
  explicit floats(std::size_t count) : benchmarks::floats(count, 0.5F) {}
};

jit::epilogue bias() {
  jit::epilogue_maker make;
  make.output(make(op::add, {make.product(), make.operand(jit::operand_shape::per_column)}));
  return make.finish();
}

struct shape {
  std::int64_t rows, depth;
  std::vector<std::int64_t> columns;
};

/// The tile that is proposed first for an algorithm.
jit::configuration tile_for(const shape& s, const std::string& algorithm) {
  const std::vector<jit::product_point> list = jit::promising_points(s.rows, s.columns, s.depth, false);
  const auto found = std::ranges::find(list, algorithm, [](const auto& p) { return p.algorithm->name; });
  return found == list.end() ? list.front().how : found->how;
}

class rivals {
 public:
  rivals(const shape& s, const jit::scheme& algorithm, const jit::configuration& how)
      : a_(static_cast<std::size_t>(s.rows * s.depth)) {
    std::vector<scheme_product::right_operand> rights;
    for (const std::int64_t n : s.columns) rights.push_back({n, bias()});
    together_ = std::make_unique<scheme_product>(algorithm, how, s.rows, s.depth, rights, threads());
    std::size_t workspace = together_->workspace(), packed = 0;
    for (std::size_t i = 0; i < rights.size(); ++i) {
      alone_.push_back(
          std::make_unique<scheme_product>(algorithm, how, s.rows, s.depth, std::array{rights[i]}, threads()));
      workspace = std::max(workspace, alone_.back()->workspace());
      packed += together_->packed_size(i);
      biases_.emplace_back(static_cast<std::size_t>(rights[i].columns));
      results_.emplace_back(static_cast<std::size_t>(s.rows * rights[i].columns));
    }
    workspace_ = std::make_unique<floats>(workspace / 4 + 1);
    const std::size_t copies = std::clamp<std::size_t>((std::size_t{96} << 20) / (4 * packed), 2, 16);
    for (std::size_t copy = 0; copy < copies; ++copy) {
      packed_.emplace_back();
      for (std::size_t i = 0; i < rights.size(); ++i) {
        packed_.back().emplace_back(together_->packed_size(i));
        std::fill_n(packed_.back().back().data(), together_->packed_size(i), 0.01F);
      }
    }
  }

  /// Each takes the next copy of the weights.
  double separately() {
    const std::vector<floats>& weights = next();
    const double begin = now();
    for (std::size_t i = 0; i < alone_.size(); ++i) {
      scheme_product::call c;
      c.a = a_.data();
      c.workspace = workspace_->data();
      c.right[0] = {weights[i].data(), {biases_[i].data()}, {results_[i].data()}};
      alone_[i]->run(c);
    }
    return now() - begin;
  }
  double together() {
    const std::vector<floats>& weights = next();
    const double begin = now();
    scheme_product::call c;
    c.a = a_.data();
    c.workspace = workspace_->data();
    for (std::size_t i = 0; i < alone_.size(); ++i)
      c.right[i] = {weights[i].data(), {biases_[i].data()}, {results_[i].data()}};
    together_->run(c);
    return now() - begin;
  }

 private:
  const std::vector<floats>& next() { return packed_[copy_++ % packed_.size()]; }

  floats a_;
  std::unique_ptr<scheme_product> together_;
  std::vector<std::unique_ptr<scheme_product>> alone_;
  std::vector<floats> biases_, results_;
  std::unique_ptr<floats> workspace_;
  std::vector<std::vector<floats>> packed_;
  std::size_t copy_ = 0;
};

void shared(benchmark::State& state, const shape& s, const std::string& algorithm) {
  omp_set_num_threads(threads());
  rivals both(s, *jit::find_scheme(algorithm), tile_for(s, algorithm));
  std::vector<double> separate, together, ratios;
  for (int i = 0; i < 3; ++i) static_cast<void>(both.separately() + both.together());
  for (auto _ : state)
    for (int turn = 0; turn < 8; ++turn) {
      // Who is first takes turns, too.
      if (turn % 2 == 0) separate.push_back(both.separately());
      together.push_back(both.together());
      if (turn % 2 != 0) separate.push_back(both.separately());
      ratios.push_back(separate.back() / together.back());
    }
  state.counters["ratio"] = median(ratios);
  state.counters["separate_us"] = median(separate) * 1e6;
  state.counters["shared_us"] = median(together) * 1e6;
}

const shape base = {128, 768, {768, 768, 768}};
const shape large = {128, 1024, {1024, 1024, 1024}};
const shape grouped = {128, 1024, {1024, 256, 256}};
const shape paper = {64, 256, {256, 256, 256}};
const shape single_row = {1, 1024, {1024, 1024, 1024}};
BENCHMARK_CAPTURE(shared, 128x768x768_classical, base, "classical");
BENCHMARK_CAPTURE(shared, 128x768x768_strassen, base, "strassen");
BENCHMARK_CAPTURE(shared, 128x768x768_two_strassen, base, "two-strassen");
BENCHMARK_CAPTURE(shared, 128x1024x1024_classical, large, "classical");
BENCHMARK_CAPTURE(shared, 128x1024x1024_strassen, large, "strassen");
BENCHMARK_CAPTURE(shared, 128x1024x1024_two_strassen, large, "two-strassen");
BENCHMARK_CAPTURE(shared, 128x1024_grouped_classical, grouped, "classical");
BENCHMARK_CAPTURE(shared, 128x1024_grouped_strassen, grouped, "strassen");
BENCHMARK_CAPTURE(shared, 64x256x256_classical, paper, "classical");
BENCHMARK_CAPTURE(shared, 64x256x256_strassen, paper, "strassen");
BENCHMARK_CAPTURE(shared, 1x1024x1024_classical, single_row, "classical");

}  // namespace
