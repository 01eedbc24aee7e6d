// Convolutions by bilinear algorithms on generated kernels, over oneDNN's direct convolution.
//
// Both run in turns, on weights that are not in the caches, as a network leaves them: each call has the next of several
// copies. The ratio is the median over turns. Each family takes its best proposed configuration.
//   COLLAGE_THREADS   threads of both (1)
// needs: jit onednn
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <collage/ops.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "jit/bilinear_convolution.hpp"

extern "C" void omp_set_num_threads(int count);  // not every compiler that reads this file has omp.h

namespace {

namespace jit = collage::detail::jit;

using seconds = std::chrono::duration<double>;
double now() { return seconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int threads() {
  const char* text = std::getenv("COLLAGE_THREADS");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

/// Floats that begin at a cache line.
class floats {
 public:
  explicit floats(std::size_t count) : memory_(count + 16) {
    data_ = memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) / 4;
  }
  float* data() const { return data_; }

 private:
  std::vector<float> memory_;
  float* data_;
};

/// Copies of weights, more than the last-level cache holds; small ones are copied at most 16 times.
std::size_t copies_of(std::size_t floats_of_one) {
  return std::clamp<std::size_t>((48 << 20) / (4 * floats_of_one), 1, 16);
}

using tag = dnnl::memory::format_tag;
using dnnl::memory;

/// oneDNN's direct convolution in one layout, with relu.
class direct_convolution {
 public:
  direct_convolution(const jit::convolution_shape& s, tag layout)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const auto describe = [](memory::dims d, tag t) { return memory::desc(d, memory::data_type::f32, t); };
    dnnl::primitive_attr attributes;
    dnnl::post_ops after;
    after.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(after);
    const bool is_deep = s.window_depth > 1;
    // A depth comes before the last two dimensions.
    const auto with_depth = [&](memory::dims d, std::int64_t depth) {
      if (is_deep) d.insert(d.end() - 2, depth);
      return d;
    };
    const dnnl::convolution_forward::primitive_desc made(
        engine_, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        describe(with_depth({s.batch, s.channels, s.height, s.width}, s.depth), layout),
        describe(with_depth({s.outputs, s.channels, s.window_height, s.window_width}, s.window_depth), tag::any),
        describe(with_depth({s.batch, s.outputs, s.output_height(), s.output_width()}, s.output_depth()), layout),
        with_depth({1, 1}, 1), with_depth({s.pad_top, s.pad_left}, s.pad_front),
        with_depth({s.pad_bottom, s.pad_right}, s.pad_back), attributes);
    from_ = memory(made.src_desc(), engine_);
    to_ = memory(made.dst_desc(), engine_);
    fill(from_);
    for (std::size_t i = 0; i < copies_of(made.weights_desc().get_size() / 4); ++i) {
      weights_.emplace_back(made.weights_desc(), engine_);
      fill(weights_.back());
    }
    run_ = dnnl::convolution_forward(made);
  }
  double run() {
    memory& weights = weights_[next_++ % weights_.size()];
    const double begin = now();
    run_.execute(stream_, {{DNNL_ARG_SRC, from_}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, to_}});
    stream_.wait();
    return now() - begin;
  }

 private:
  static void fill(memory& m) {
    auto* const data = static_cast<float*>(m.get_data_handle());
    for (std::size_t i = 0; i < m.get_desc().get_size() / 4; ++i) data[i] = static_cast<float>(i % 7) * 0.1F;
  }
  dnnl::engine engine_;
  dnnl::stream stream_;
  memory from_, to_;
  std::vector<memory> weights_;
  std::size_t next_ = 0;
  dnnl::convolution_forward run_;
};

/// One configuration, with relu.
class bilinear_run {
 public:
  bilinear_run(const jit::convolution_configuration& how, const jit::convolution_shape& s)
      : made_(how, s, relu(), std::make_shared<jit::code_arena>()),
        scratch_(static_cast<std::size_t>(jit::scratch_bytes(how, s, threads())) / 4),
        from_(static_cast<std::size_t>(jit::image_floats(s.from, s.batch, s.channels, s.height, s.width, s.depth))),
        to_(static_cast<std::size_t>(
            jit::image_floats(s.to, s.batch, s.outputs, s.output_height(), s.output_width(), s.output_depth()))) {
    made_.bind();
    const std::vector<float> weights(
        static_cast<std::size_t>(s.outputs * s.channels * s.window_depth * s.window_height * s.window_width), 0.1F);
    const auto size = static_cast<std::size_t>(jit::weight_bytes(how, s)) / 4;
    for (std::size_t i = 0; i < copies_of(size); ++i) {
      weights_.emplace_back(size);
      if (i == 0) made_.pack(weights.data(), weights_[0].data());
      else std::copy_n(weights_[0].data(), size, weights_[i].data());
    }
  }
  double run() {
    float* const to[] = {to_.data()};
    const double begin = now();
    made_.run({.from = from_.data(),
               .weights = weights_[next_++ % weights_.size()].data(),
               .to = to,
               .scratch = scratch_.data(),
               .threads = threads()});
    return now() - begin;
  }

 private:
  static jit::epilogue relu() {
    jit::epilogue_maker make;
    make.output(make(collage::ops::relu, {make.product()}));
    return make.finish();
  }
  jit::bilinear_convolution made_;
  floats scratch_, from_, to_;
  std::vector<floats> weights_;
  std::size_t next_ = 0;
};

double median(std::vector<double> list) {
  std::ranges::sort(list);
  return list[list.size() / 2];
}

/// `depth` 0: in two dimensions.
void over_direct(benchmark::State& state, std::int64_t channels, std::int64_t depth, std::int64_t size,
                 std::string_view family, jit::image_layout layout) {
  omp_set_num_threads(threads());
  const jit::convolution_shape shape = {.channels = channels,
                                        .outputs = channels,
                                        .height = size,
                                        .width = size,
                                        .pad_top = 1,
                                        .pad_left = 1,
                                        .pad_bottom = 1,
                                        .pad_right = 1,
                                        .depth = std::max<std::int64_t>(depth, 1),
                                        .window_depth = depth == 0 ? 1 : 3,
                                        .pad_front = depth == 0 ? 0 : 1,
                                        .pad_back = depth == 0 ? 0 : 1,
                                        .from = layout,
                                        .to = layout};
  direct_convolution blocked(shape, depth == 0 ? tag::nChw16c : tag::nCdhw16c),
      last(shape, depth == 0 ? tag::nhwc : tag::ndhwc);
  const auto turns_of = [&](double wanted) { return std::clamp(static_cast<int>(wanted / blocked.run()), 5, 200); };
  const jit::convolution_machine machine = {.set = jit::refusal_of(jit::instruction_set::avx512).empty()
                                                       ? jit::instruction_set::avx512
                                                       : jit::instruction_set::avx2,
                                            .threads = threads()};
  for (auto _ : state) {
    std::unique_ptr<bilinear_run> best;
    double least = 0;
    for (const jit::convolution_configuration& c : jit::propose_configurations(shape, machine)) {
      if (c.algorithm().name != family) continue;
      auto made = std::make_unique<bilinear_run>(c, shape);
      std::vector<double> times;
      for (int i = turns_of(0.05); i > 0; --i) times.push_back(made->run());
      if (std::getenv("COLLAGE_VERBOSE") != nullptr)
        std::printf("%8.1f us  %s\n", 1e6 * median(times), jit::to_text(c).c_str());
      if (best != nullptr && median(times) >= least) continue;
      least = median(times);
      best = std::move(made);
      state.SetLabel(jit::to_text(c));
    }
    if (best == nullptr) return state.SkipWithError("no configuration");
    std::vector<double> ratios, times;
    for (int i = turns_of(0.3); i > 0; --i) {
      const double mine = best->run(), theirs = std::min(blocked.run(), last.run());
      times.push_back(mine);
      ratios.push_back(theirs / mine);
    }
    state.counters["ratio"] = median(ratios);
    state.counters["microseconds"] = 1e6 * median(times);
  }
}

[[maybe_unused]] const bool is_registered = [] {
  struct layer {
    std::int64_t channels, size, depth = 0;
  };
  constexpr layer layers[] = {{64, 224}, {128, 112}, {256, 56}, {512, 28}, {512, 14},
                              {64, 56},  {128, 28},  {256, 14}, {512, 7}};
  // Those of resnet50-3d-paper, and of networks for volumes.
  constexpr layer deep_layers[] = {{64, 56, 3},  {128, 28, 2}, {256, 14, 1},  {512, 7, 1},
                                   {32, 64, 64}, {64, 32, 32}, {128, 16, 16}, {64, 28, 8}};
  const auto add = [](const layer& l, const char* family, jit::image_layout layout, const char* name) {
    const std::string text = std::to_string(l.channels) + "_channels_" +
                             (l.depth == 0 ? "" : std::to_string(l.depth) + "x") + std::to_string(l.size) + "x" +
                             std::to_string(l.size) + "/" + family + "/" + name;
    benchmark::RegisterBenchmark(text.c_str(), [=](benchmark::State& state) {
      over_direct(state, l.channels, l.depth, l.size, family, layout);
    })->Iterations(1);
  };
  for (const layer& l : layers)
    for (const char* family : {"F(2,3)", "F(4,3)", "F(4,3) accurate", "F(6,3)"})
      add(l, family, jit::image_layout::blocked_16, "blocked");
  for (const layer& l : deep_layers)
    for (const char* family : {"F(2,3)", "F(4,3)", "F(4,3) accurate", "F(6,3)"})
      add(l, family, jit::image_layout::blocked_16, "blocked");
  for (const layer& l : layers) add(l, "F(4,3)", jit::image_layout::channels_last, "channels_last");
  for (const layer& l : layers) add(l, "F(4,3)", jit::image_layout::plain, "plain");
  for (const layer& l : deep_layers) {
    add(l, "F(4,3)", jit::image_layout::channels_last, "channels_last");
    add(l, "F(4,3)", jit::image_layout::plain, "plain");
  }
  return true;
}();

}  // namespace
