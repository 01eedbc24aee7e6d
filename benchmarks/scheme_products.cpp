// Products by schemes on generated kernels, over oneDNN's matmul.
//
// Both run in turns, on weights that are not in the caches, as a network leaves them: each call has the next of several copies. Both
// add a bias. The ratio is the median over turns. Each scheme takes its best proposed tile.
//
// `of_peak` counts the multiplications of the definition, so it may exceed 1. `error` is the largest error over the root mean square
// of the results, for random data; `library_error` is that of oneDNN.
//   COLLAGE_THREADS   threads of both (1)
//   COLLAGE_CLOCK     "processor": processor time of the calling thread, for one thread beside other programs
// needs: jit onednn
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <collage/ops.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "jit/product_point.hpp"
#include "jit/scheme_product.hpp"
#include "kernel_times.hpp"
#include "peak.hpp"

extern "C" void omp_set_num_threads(int count);  // not every compiler that reads this file has omp.h

namespace {

namespace jit = collage::detail::jit;

using benchmarks::copies_of;
using benchmarks::floats;
using benchmarks::median;
using benchmarks::now;
using benchmarks::threads;

struct product_shape {
  std::int64_t m, k, n;
};

/// What both read.
struct operands {
  product_shape shape;
  std::vector<float> a, b, bias;

  explicit operands(const product_shape& s)
      : shape(s),
        a(static_cast<std::size_t>(s.m * s.k)),
        b(static_cast<std::size_t>(s.k * s.n)),
        bias(static_cast<std::size_t>(s.n)) {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    for (std::vector<float>* list : {&a, &b, &bias})
      for (float& x : *list) x = normal(engine);
  }

  /// How far a result is from the definition in double precision, at 4,096 places.
  double error_of(const float* result) const {
    std::mt19937_64 engine(2);
    benchmarks::error_meter error;
    for (int i = 0; i < 4096; ++i) {
      const auto row = static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(shape.m));
      const auto column = static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(shape.n));
      double sum = static_cast<double>(bias[static_cast<std::size_t>(column)]);
      for (std::int64_t l = 0; l < shape.k; ++l)
        sum += static_cast<double>(a[static_cast<std::size_t>(row * shape.k + l)]) *
               static_cast<double>(b[static_cast<std::size_t>(l * shape.n + column)]);
      error.see(static_cast<double>(result[row * shape.n + column]), sum);
    }
    return error.value();
  }
};

using dnnl::memory;

/// oneDNN's product, with weights in the layout that it prefers.
class library_product {
 public:
  explicit library_product(const operands& from) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const product_shape& s = from.shape;
    const auto rows = [](std::int64_t m, std::int64_t n) {
      return memory::desc({m, n}, memory::data_type::f32, memory::format_tag::ab);
    };
    const dnnl::matmul::primitive_desc made(engine_, rows(s.m, s.k),
                                            memory::desc({s.k, s.n}, memory::data_type::f32, memory::format_tag::any),
                                            rows(1, s.n), rows(s.m, s.n));
    run_ = dnnl::matmul(made);
    const memory plain = filled(rows(s.k, s.n), from.b);
    result_ = memory(rows(s.m, s.n), engine_);
    for (std::size_t i = copies_of(made.weights_desc().get_size() / 4); i > 0; --i) {
      weights_.emplace_back(made.weights_desc(), engine_);
      dnnl::reorder(plain, weights_.back()).execute(stream_, {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, weights_.back()}});
    }
    stream_.wait();
    arguments_ = {{DNNL_ARG_SRC, filled(rows(s.m, s.k), from.a)},
                  {DNNL_ARG_BIAS, filled(rows(1, s.n), from.bias)},
                  {DNNL_ARG_DST, result_}};
  }
  double run() {
    arguments_.insert_or_assign(DNNL_ARG_WEIGHTS, weights_[next_++ % weights_.size()]);
    const double begin = now();
    run_.execute(stream_, arguments_);
    stream_.wait();
    return now() - begin;
  }
  const float* result() const { return static_cast<const float*>(result_.get_data_handle()); }

 private:
  memory filled(const memory::desc& d, const std::vector<float>& with) const {
    const memory made(d, engine_);
    std::ranges::copy(with, static_cast<float*>(made.get_data_handle()));
    return made;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul run_;
  memory result_;
  std::vector<memory> weights_;
  std::unordered_map<int, memory> arguments_;
  std::size_t next_ = 0;
};

/// One scheme with one tile.
class scheme_run {
 public:
  scheme_run(const jit::product_point& point, const operands& from)
      : from_(from),
        made_(*point.algorithm, point.how, {from.shape.m, from.shape.n, from.shape.k}, bias(), threads()),
        workspace_(made_.workspace() / 4 + 1),
        result_(static_cast<std::size_t>(from.shape.m * from.shape.n)) {
    for (std::size_t i = 0; i < copies_of(made_.packed_size()); ++i) {
      packed_.emplace_back(made_.packed_size());
      if (i == 0) made_.pack(from.b.data(), false, packed_[0].data());
      else std::copy_n(packed_[0].data(), made_.packed_size(), packed_[i].data());
    }
  }
  double run() {
    jit::scheme_product::call c;
    c.a = from_.a.data();
    c.workspace = workspace_.data();
    c.right[0] = {packed_[next_++ % packed_.size()].data(), {from_.bias.data()}, {result_.data()}};
    const double begin = now();
    made_.run(c);
    return now() - begin;
  }
  const float* result() const { return result_.data(); }

 private:
  static jit::epilogue bias() {
    jit::epilogue_maker make;
    make.output(make(collage::ops::add, {make.product(), make.operand(jit::operand_shape::per_column)}));
    return make.finish();
  }
  const operands& from_;
  jit::scheme_product made_;
  floats workspace_, result_;
  std::vector<floats> packed_;
  std::size_t next_ = 0;
};

std::vector<jit::product_point> points_of(const jit::scheme& scheme, const product_shape& s) {
  if (!scheme.is_classical()) return jit::points_with(scheme, s.m, {&s.n, 1}, s.k, false);
  std::vector<jit::product_point> list = jit::promising_points(s.m, s.n, s.k, false);
  std::erase_if(list, [](const jit::product_point& p) { return !p.algorithm->is_classical(); });
  return list;
}

void over_library(benchmark::State& state, const product_shape& s, const jit::scheme& scheme) {
  omp_set_num_threads(threads());
  const operands from(s);
  library_product library(from);
  const auto turns_of = [&](double wanted) { return std::clamp(static_cast<int>(wanted / library.run()), 5, 400); };
  for (auto _ : state) {
    std::unique_ptr<scheme_run> best;
    double least = 0;
    bool is_avx512 = false;
    for (const jit::product_point& p : points_of(scheme, s)) {
      auto made = std::make_unique<scheme_run>(p, from);
      std::vector<double> times;
      for (int i = turns_of(0.05); i > 0; --i) times.push_back(made->run());
      if (std::getenv("COLLAGE_VERBOSE") != nullptr)
        std::printf("%8.1f us  %s\n", 1e6 * median(times), p.text().c_str());
      if (best != nullptr && median(times) >= least) continue;
      least = median(times);
      best = std::move(made);
      is_avx512 = p.how.set == jit::instruction_set::avx512;
      state.SetLabel(p.text());
    }
    if (best == nullptr) return state.SkipWithError("no configuration");
    std::vector<double> ratios, times;
    for (int i = turns_of(0.3); i > 0; --i) {
      // The first of a turn takes turns, too.
      const double before = i % 2 == 0 ? library.run() : 0;
      times.push_back(best->run());
      ratios.push_back((i % 2 == 0 ? before : library.run()) / times.back());
    }
    const double operations = 2 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n);
    state.counters["ratio"] = median(ratios);
    state.counters["microseconds"] = 1e6 * median(times);
    state.counters["of_peak"] = operations / median(times) / (benchmarks::measured_peak(is_avx512) * threads());
    state.counters["error"] = from.error_of(best->result());
    state.counters["library_error"] = from.error_of(library.result());
  }
}

[[maybe_unused]] const bool is_registered = [] {
  // Of attention and its feed-forward parts, and convolutions of 1x1.
  constexpr product_shape shapes[] = {{128, 768, 3072}, {128, 3072, 768},  {128, 768, 768}, {128, 1024, 4096},
                                      {64, 256, 1024},  {196, 1024, 256},  {784, 512, 128}, {3136, 256, 64},
                                      {512, 512, 512},  {1024, 1024, 1024}};
  for (const product_shape& s : shapes)
    for (const jit::scheme& scheme : jit::schemes()) {
      const std::string name =
          std::to_string(s.m) + "x" + std::to_string(s.k) + "x" + std::to_string(s.n) + "/" + scheme.name;
      benchmark::RegisterBenchmark(name.c_str(), [s, &scheme](benchmark::State& state) {
        over_library(state, s, scheme);
      })->Iterations(1);
    }
  return true;
}();

}  // namespace
