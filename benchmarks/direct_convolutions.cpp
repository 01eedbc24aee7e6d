// Convolutions by their definition on generated kernels, over oneDNN's direct convolution, where no algorithm with fewer
// multiplications fits: strides, dilations, windows that are not square, one dimension.
//
// Both run in turns, on weights that are not in the caches, as a network leaves them: each call has the next of several copies. The
// ratio is the median over turns, against the faster of oneDNN's layouts. Ours takes the best proposed configuration.
//   COLLAGE_THREADS   threads of both (1)
//   COLLAGE_CLOCK     "processor": processor time of the calling thread, for one thread beside other programs
// needs: jit onednn
#include <benchmark/benchmark.h>

#include <algorithm>
#include <collage/ops.hpp>
#include <cstdint>
#include <dnnl.hpp>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "jit/convolution_point.hpp"
#include "jit/direct_convolution.hpp"
#include "jit/instruction_set.hpp"
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
using dnnl::memory;

/// oneDNN's convolution in one layout, with relu.
class library_convolution {
 public:
  library_convolution(const jit::direct_shape& s, memory::format_tag layout)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const auto two = [](const jit::direct_extent& height, const jit::direct_extent& width, auto member) {
      return memory::dims{height.*member, width.*member};
    };
    using extent = jit::direct_extent;
    const auto describe = [](memory::dims d, memory::format_tag t) {
      return memory::desc(std::move(d), memory::data_type::f32, t);
    };
    dnnl::primitive_attr attributes;
    dnnl::post_ops after;
    after.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(after);
    memory::dims dilations = two(s.height, s.width, &extent::dilation);
    for (std::int64_t& d : dilations) --d;  // oneDNN counts what lies between
    const dnnl::convolution_forward::primitive_desc made(
        engine_, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        describe({s.batch, s.channels, s.height.size, s.width.size}, layout),
        describe({s.outputs, s.channels, s.height.window, s.width.window}, memory::format_tag::any),
        describe({s.batch, s.outputs, s.height.outputs(), s.width.outputs()}, layout),
        two(s.height, s.width, &extent::stride), dilations, two(s.height, s.width, &extent::pad_begin),
        two(s.height, s.width, &extent::pad_end), attributes);
    run_ = dnnl::convolution_forward(made);
    for (std::size_t i = copies_of(made.weights_desc().get_size() / 4); i > 0; --i)
      weights_.push_back(made_of(made.weights_desc()));
    arguments_ = {{DNNL_ARG_SRC, made_of(made.src_desc())}, {DNNL_ARG_DST, made_of(made.dst_desc())}};
  }
  double run() {
    arguments_.insert_or_assign(DNNL_ARG_WEIGHTS, weights_[next_++ % weights_.size()]);
    const double begin = now();
    run_.execute(stream_, arguments_);
    stream_.wait();
    return now() - begin;
  }

 private:
  memory made_of(const memory::desc& d) const {
    const memory made(d, engine_);
    auto* const data = static_cast<float*>(made.get_data_handle());
    for (std::size_t i = 0; i < d.get_size() / 4; ++i) data[i] = static_cast<float>(i % 7) * 0.1F;
    return made;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive run_;
  std::vector<memory> weights_;
  std::unordered_map<int, memory> arguments_;
  std::size_t next_ = 0;
};

/// One configuration of ours, with relu.
class direct_run {
 public:
  direct_run(const jit::direct_configuration& how, const jit::direct_shape& s)
      : made_(how, s, relu(), threads()),
        from_(static_cast<std::size_t>(s.batch * s.depth.size * s.height.size * s.width.size * s.channels), 0.1F),
        to_(static_cast<std::size_t>(s.output_floats())),
        scratch_(made_.scratch_bytes() / 4) {
    const floats plain(static_cast<std::size_t>(s.outputs * s.channels * s.height.window * s.width.window), 0.1F);
    const auto size = static_cast<std::size_t>(jit::weight_bytes(how, s)) / 4;
    for (std::size_t i = 0; i < copies_of(size); ++i) {
      weights_.emplace_back(size);
      made_.pack(plain.data(), weights_[i].data());
    }
  }
  double run() {
    float* const to[] = {to_.data()};
    const double begin = now();
    made_.run({.from = from_.data(),
               .weights = weights_[next_++ % weights_.size()].data(),
               .to = to,
               .scratch = scratch_.data()});
    return now() - begin;
  }

 private:
  static jit::epilogue relu() {
    jit::epilogue_maker make;
    make.output(make(collage::ops::relu, {make.product()}));
    return make.finish();
  }
  jit::direct_convolution made_;
  floats from_, to_, scratch_;
  std::vector<floats> weights_;
  std::size_t next_ = 0;
};

void over_library(benchmark::State& state, const jit::direct_shape& shape) {
  omp_set_num_threads(threads());
  library_convolution last(shape, memory::format_tag::nhwc);
  std::unique_ptr<library_convolution> blocked;  // of few channels it has no fast kernel in blocks
  if (shape.channels >= 16) blocked = std::make_unique<library_convolution>(shape, memory::format_tag::nChw16c);
  const auto turns_of = [&](double wanted) { return std::clamp(static_cast<int>(wanted / last.run()), 5, 200); };
  const jit::convolution_machine here = jit::this_machine();
  for (auto _ : state) {
    std::unique_ptr<direct_run> best;
    double least = 0;
    for (const jit::direct_configuration& c : jit::propose_direct(shape, here.set, here.second_level_bytes, false)) {
      auto made = std::make_unique<direct_run>(c, shape);
      std::vector<double> times;
      for (int i = turns_of(0.05); i > 0; --i) times.push_back(made->run());
      if (best != nullptr && median(times) >= least) continue;
      least = median(times);
      best = std::move(made);
      state.SetLabel(jit::to_text(c));
    }
    std::vector<double> ratios, times;
    for (int i = turns_of(0.3); i > 0; --i) {
      times.push_back(best->run());
      const double plain = last.run();
      ratios.push_back((blocked == nullptr ? plain : std::min(blocked->run(), plain)) / times.back());
    }
    state.counters["ratio"] = median(ratios);
    state.counters["microseconds"] = 1e6 * median(times);
    const double peak = benchmarks::measured_peak(here.set == jit::instruction_set::avx512) * threads();
    state.counters["of_peak"] =
        2 * static_cast<double>(shape.output_floats() * shape.products() * shape.inner()) / median(times) / peak;
  }
}

[[maybe_unused]] const bool is_registered = [] {
  struct layer {
    const char* name;
    jit::direct_shape shape;
  };
  // Extents are: size, window, stride, dilation, pads.
  const layer layers[] = {
      {"stem_7x7_stride_2", {1, 3, 64, {}, {224, 7, 2, 1, 3, 3}, {224, 7, 2, 1, 3, 3}}},
      {"stem_3x3_stride_2", {1, 3, 32, {}, {224, 3, 2, 1, 1, 1}, {224, 3, 2, 1, 1, 1}}},
      {"3x3_stride_2_128_channels_56", {1, 128, 128, {}, {56, 3, 2, 1, 1, 1}, {56, 3, 2, 1, 1, 1}}},
      {"3x3_stride_2_256_channels_28", {1, 256, 256, {}, {28, 3, 2, 1, 1, 1}, {28, 3, 2, 1, 1, 1}}},
      {"3x3_stride_2_512_channels_14", {1, 512, 512, {}, {14, 3, 2, 1, 1, 1}, {14, 3, 2, 1, 1, 1}}},
      {"1x1_stride_2_256_to_512_channels_56", {1, 256, 512, {}, {56, 1, 2}, {56, 1, 2}}},
      {"1x7_192_channels_17", {1, 192, 192, {}, {17}, {17, 7, 1, 1, 3, 3}}},
      {"7x1_192_channels_17", {1, 192, 192, {}, {17, 7, 1, 1, 3, 3}, {17}}},
      {"4x4_stride_4_patches_of_3", {1, 3, 96, {}, {224, 4, 4}, {224, 4, 4}}},
      {"3x3_dilation_2_256_channels_28", {1, 256, 256, {}, {28, 3, 1, 2, 2, 2}, {28, 3, 1, 2, 2, 2}}},
      {"1x5_of_80_features_1500", {1, 80, 512, {}, {1}, {1500, 5, 1, 1, 2, 2}}},
  };
  for (const layer& l : layers)
    benchmark::RegisterBenchmark(l.name, [shape = l.shape](benchmark::State& state) {
      over_library(state, shape);
    })->Iterations(1);
  return true;
}();

}  // namespace
