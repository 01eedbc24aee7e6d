// Convolutions by bilinear algorithms on generated kernels, over oneDNN's direct convolution. Those of enlarged images are
// compared with a resize and that convolution, and with a transposed convolution.
//
// Both run in turns, on weights that are not in the caches, as a network leaves them: each call has the next of several
// copies. The ratio is the median over turns. Each family takes its best proposed configuration.
//
// `of_peak` counts the multiplications of the definition, so it may exceed 1. `error` is the largest error over the root mean square
// of the results, for random data and 4,096 results of any place.
//   COLLAGE_THREADS   threads of both (1)
//   COLLAGE_CLOCK     "processor": processor time of the calling thread, for one thread beside other programs
// needs: jit onednn
#include <benchmark/benchmark.h>

#include <algorithm>
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
#include <unordered_map>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "jit/bilinear_convolution.hpp"
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

using tag = dnnl::memory::format_tag;
using dnnl::memory;

/// One way of oneDNN to compute a convolution in one layout, with relu: directly, after a resize where the image is enlarged, or as
/// a transposed convolution of the small image.
class library_way {
 public:
  library_way(const jit::convolution_shape& s, tag layout, bool is_transposed)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const desc small = describe(with_depth(s, {s.batch, s.channels, s.height, s.width}, s.depth), layout);
    const desc large = describe(
        with_depth(s, {s.batch, s.channels, s.height * s.enlargement, s.width * s.enlargement}, s.depth), layout);
    const desc to =
        describe(with_depth(s, {s.batch, s.outputs, s.output_height(), s.output_width()}, s.output_depth()), layout);
    if (is_transposed) {
      add(transposed(s, small, to), {}, made_of(small));
    } else if (s.enlargement == 1) {
      add(direct(s, small, to), {}, made_of(small));
    } else {
      const memory from = made_of(small), between = made_of(large);
      const dnnl::resampling_forward::primitive_desc resize(engine_, dnnl::prop_kind::forward_inference,
                                                            dnnl::algorithm::resampling_nearest, small, large);
      add(direct(s, large, to), {{dnnl::resampling_forward(resize), {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, between}}}},
          between);
    }
  }
  double run() {
    steps_.back().arguments.insert_or_assign(DNNL_ARG_WEIGHTS, weights_[next_++ % weights_.size()]);
    const double begin = now();
    for (const step& s : steps_) s.run.execute(stream_, s.arguments);
    stream_.wait();
    return now() - begin;
  }

 private:
  using desc = memory::desc;
  struct step {
    dnnl::primitive run;
    std::unordered_map<int, memory> arguments;
  };

  /// In three dimensions, a depth comes before the last two.
  static memory::dims with_depth(const jit::convolution_shape& s, memory::dims d, std::int64_t depth) {
    if (s.window_depth > 1) d.insert(d.end() - 2, depth);
    return d;
  }
  static desc describe(const memory::dims& d, tag t) { return {d, memory::data_type::f32, t}; }
  static dnnl::primitive_attr with_relu() {
    dnnl::primitive_attr attributes;
    dnnl::post_ops after;
    after.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(after);
    return attributes;
  }
  dnnl::convolution_forward::primitive_desc direct(const jit::convolution_shape& s, const desc& from, const desc& to) {
    return {engine_,
            dnnl::prop_kind::forward_inference,
            dnnl::algorithm::convolution_direct,
            from,
            describe(with_depth(s, {s.outputs, s.channels, s.window_height, s.window_width}, s.window_depth), tag::any),
            to,
            with_depth(s, {1, 1}, 1),
            with_depth(s, {s.pad_top, s.pad_left}, s.pad_front),
            with_depth(s, {s.pad_bottom, s.pad_right}, s.pad_back),
            with_relu()};
  }
  /// Equal neighbours have one weight, which is a sum.
  dnnl::deconvolution_forward::primitive_desc transposed(const jit::convolution_shape& s, const desc& from,
                                                         const desc& to) {
    const std::int64_t down = s.window_height - 1, across = s.window_width - 1;
    return {engine_,
            dnnl::prop_kind::forward_inference,
            dnnl::algorithm::deconvolution_direct,
            from,
            describe({s.outputs, s.channels, down + s.enlargement, across + s.enlargement}, tag::any),
            to,
            {s.enlargement, s.enlargement},
            {down - s.pad_top, across - s.pad_left},
            {down - s.pad_bottom, across - s.pad_right},
            with_relu()};
  }
  template <class Description>
  void add(const Description& made, std::vector<step> before, const memory& from) {
    steps_ = std::move(before);
    for (std::size_t i = 0; i < copies_of(made.weights_desc().get_size() / 4); ++i)
      weights_.push_back(made_of(made.weights_desc()));
    steps_.push_back({dnnl::primitive(made.get()), {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, made_of(made.dst_desc())}}});
  }
  memory made_of(const desc& d) const {
    const memory made(d, engine_);
    auto* const data = static_cast<float*>(made.get_data_handle());
    for (std::size_t i = 0; i < d.get_size() / 4; ++i) data[i] = static_cast<float>(i % 7) * 0.1F;
    return made;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<step> steps_;
  std::vector<memory> weights_;
  std::size_t next_ = 0;
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
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < jit::image_floats(s.from, s.batch, s.channels, s.height, s.width, s.depth); ++i)
      from_.data()[i] = std::max(normal(engine), 0.0F);
    plain_.resize(static_cast<std::size_t>(s.outputs * s.channels * s.window_depth * s.window_height * s.window_width));
    for (float& x : plain_) x = normal(engine);
    const auto size = static_cast<std::size_t>(jit::weight_bytes(how, s)) / 4;
    for (std::size_t i = 0; i < copies_of(size); ++i) {
      weights_.emplace_back(size);
      if (i == 0) made_.pack(plain_.data(), weights_[0].data());
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
  const float* from() const { return from_.data(); }
  const float* to() const { return to_.data(); }
  const std::vector<float>& plain_weights() const { return plain_; }

 private:
  static jit::epilogue relu() {
    jit::epilogue_maker make;
    make.output(make(collage::ops::relu, {make.product()}));
    return make.finish();
  }
  jit::bilinear_convolution made_;
  floats scratch_, from_, to_;
  std::vector<float> plain_;
  std::vector<floats> weights_;
  std::size_t next_ = 0;
};

/// One result by the definition, with relu. Images are plain.
double exact_result(const bilinear_run& run, const jit::convolution_shape& s, std::int64_t output, std::int64_t z,
                    std::int64_t y, std::int64_t x) {
  double sum = 0;
  for (std::int64_t c = 0; c < s.channels; ++c)
    for (std::int64_t k = 0; k < s.window_depth; ++k)
      for (std::int64_t i = 0; i < s.window_height; ++i)
        for (std::int64_t j = 0; j < s.window_width; ++j) {
          const std::int64_t slice = z + k - s.pad_front, row = y + i - s.pad_top, column = x + j - s.pad_left;
          if (slice < 0 || slice >= s.depth || row < 0 || row >= s.height * s.enlargement || column < 0 ||
              column >= s.width * s.enlargement)
            continue;
          const std::int64_t at =
              ((c * s.depth + slice) * s.height + row / s.enlargement) * s.width + column / s.enlargement;
          const std::int64_t tap =
              (((output * s.channels + c) * s.window_depth + k) * s.window_height + i) * s.window_width + j;
          sum += static_cast<double>(run.from()[at]) *
                 static_cast<double>(run.plain_weights()[static_cast<std::size_t>(tap)]);
        }
  return std::max(sum, 0.0);
}

/// The error does not depend on the layout.
double error_of(const jit::convolution_configuration& how, jit::convolution_shape s) {
  s.from = s.to = jit::image_layout::plain;
  bilinear_run run(how, s);
  run.run();
  std::mt19937_64 engine(2);
  const auto below = [&](std::int64_t end) { return std::uniform_int_distribution<std::int64_t>(0, end - 1)(engine); };
  benchmarks::error_meter error;
  for (int i = 0; i < 4096; ++i) {
    const std::int64_t o = below(s.outputs), z = below(s.output_depth()), y = below(s.output_height()),
                       x = below(s.output_width());
    const std::int64_t at = ((o * s.output_depth() + z) * s.output_height() + y) * s.output_width() + x;
    error.see(static_cast<double>(run.to()[at]), exact_result(run, s, o, z, y, x));
  }
  return error.value();
}

/// Operations of the definition.
double operations_of(const jit::convolution_shape& s) {
  return 2 * static_cast<double>(s.batch * s.outputs * s.output_depth() * s.output_height() * s.output_width()) *
         static_cast<double>(s.channels * s.window_depth * s.window_height * s.window_width);
}

struct layer {
  std::int64_t channels, outputs, size, enlargement = 1;
  std::int64_t depth = 0;  ///< 0: in two dimensions
};

void over_library(benchmark::State& state, const layer& l, std::string_view family, jit::image_layout layout,
                  jit::weight_transform_time weights = jit::weight_transform_time::once) {
  omp_set_num_threads(threads());
  const jit::convolution_shape shape = {.channels = l.channels,
                                        .outputs = l.outputs,
                                        .height = l.size,
                                        .width = l.size,
                                        .pad_top = 1,
                                        .pad_left = 1,
                                        .pad_bottom = 1,
                                        .pad_right = 1,
                                        .depth = std::max<std::int64_t>(l.depth, 1),
                                        .window_depth = l.depth == 0 ? 1 : 3,
                                        .pad_front = l.depth == 0 ? 0 : 1,
                                        .pad_back = l.depth == 0 ? 0 : 1,
                                        .from = layout,
                                        .to = layout,
                                        .enlargement = l.enlargement};
  library_way blocked(shape, l.depth == 0 ? tag::nChw16c : tag::nCdhw16c, false),
      last(shape, l.depth == 0 ? tag::nhwc : tag::ndhwc, false);
  std::unique_ptr<library_way> transposed;
  if (l.enlargement > 1) transposed = std::make_unique<library_way>(shape, tag::nhwc, true);
  const auto turns_of = [&](double wanted) { return std::clamp(static_cast<int>(wanted / blocked.run()), 5, 200); };
  const jit::convolution_machine machine = {.set = jit::refusal_of(jit::instruction_set::avx512).empty()
                                                       ? jit::instruction_set::avx512
                                                       : jit::instruction_set::avx2,
                                            .threads = threads()};
  for (auto _ : state) {
    std::unique_ptr<bilinear_run> best;
    double least = 0;
    jit::convolution_configuration chosen;
    for (const jit::convolution_configuration& c : jit::propose_configurations(shape, machine)) {
      if (c.algorithm().name != family || c.weights != weights) continue;
      auto made = std::make_unique<bilinear_run>(c, shape);
      std::vector<double> times;
      for (int i = turns_of(0.05); i > 0; --i) times.push_back(made->run());
      if (std::getenv("COLLAGE_VERBOSE") != nullptr)
        std::printf("%8.1f us  %s\n", 1e6 * median(times), jit::to_text(c).c_str());
      if (best != nullptr && median(times) >= least) continue;
      least = median(times);
      best = std::move(made);
      chosen = c;
      state.SetLabel(jit::to_text(c));
    }
    if (best == nullptr) return state.SkipWithError("no configuration");
    std::vector<double> ratios, over_transposed, times;
    for (int i = turns_of(0.3); i > 0; --i) {
      const double mine = best->run(), theirs = std::min(blocked.run(), last.run());
      times.push_back(mine);
      ratios.push_back(theirs / mine);
      if (transposed != nullptr) over_transposed.push_back(transposed->run() / mine);
    }
    state.counters["ratio"] = median(ratios);
    if (transposed != nullptr) state.counters["over_transposed"] = median(over_transposed);
    state.counters["microseconds"] = 1e6 * median(times);
    const double peak = benchmarks::measured_peak(machine.set == jit::instruction_set::avx512) * threads();
    state.counters["of_peak"] = operations_of(shape) / median(times) / peak;
    state.counters["error"] = error_of(chosen, shape);
  }
}

[[maybe_unused]] const bool is_registered = [] {
  constexpr layer layers[] = {{64, 64, 224}, {128, 128, 112}, {256, 256, 56}, {512, 512, 28}, {512, 512, 14},
                              {64, 64, 56},  {128, 128, 28},  {256, 256, 14}, {512, 512, 7}};
  // Whose weights are most of what is read.
  constexpr layer few_tiles[] = {{512, 512, 14}, {256, 256, 14}, {512, 512, 7}};
  // Those of resnet50-3d-paper, and of networks for volumes.
  constexpr layer deep[] = {{64, 64, 56, 1, 3},  {128, 128, 28, 1, 2}, {256, 256, 14, 1, 1},  {512, 512, 7, 1, 1},
                            {32, 32, 64, 1, 64}, {64, 64, 32, 1, 32},  {128, 128, 16, 1, 16}, {64, 64, 28, 1, 8}};
  // Of generators: the size is that of the small image.
  constexpr layer enlarged[] = {
      {128, 128, 8, 2}, {128, 128, 16, 2}, {128, 128, 32, 2}, {128, 128, 64, 2}, {128, 64, 128, 2}};
  const auto add = [](const layer& l, const char* family, jit::image_layout layout, const char* name,
                      jit::weight_transform_time weights = jit::weight_transform_time::once) {
    const std::string size =
        (l.depth == 0 ? "" : std::to_string(l.depth) + "x") + std::to_string(l.size) + "x" + std::to_string(l.size);
    const std::string what = l.enlargement == 1 ? std::to_string(l.channels) + "_channels_" + size
                                                : std::to_string(l.channels) + "_to_" + std::to_string(l.outputs) +
                                                      "_channels_" + size + "_enlarged";
    benchmark::RegisterBenchmark((what + "/" + family + "/" + name).c_str(), [=](benchmark::State& state) {
      over_library(state, l, family, layout, weights);
    })->Iterations(1);
  };
  for (const layer& l : layers)
    for (const char* family : {"F(2,3)", "F(4,3)", "F(4,3) accurate", "F(6,3)"})
      add(l, family, jit::image_layout::blocked_16, "blocked");
  for (const layer& l : deep)
    for (const char* family : {"F(2,3)", "F(4,3)", "F(4,3) accurate", "F(6,3)"})
      add(l, family, jit::image_layout::blocked_16, "blocked");
  for (const layer& l : few_tiles)
    for (const char* family : {"F(2,3)", "F(4,3)", "F(4,3) accurate"})
      add(l, family, jit::image_layout::blocked_16, "blocked/on_the_fly", jit::weight_transform_time::on_the_fly);
  for (const layer& l : layers) add(l, "F(4,3)", jit::image_layout::channels_last, "channels_last");
  for (const layer& l : layers) add(l, "F(4,3)", jit::image_layout::plain, "plain");
  for (const layer& l : deep) add(l, "F(4,3)", jit::image_layout::channels_last, "channels_last");
  for (const layer& l : deep) add(l, "F(4,3)", jit::image_layout::plain, "plain");
  for (const layer& l : enlarged)
    for (const char* family : {"up2 F(2,2)", "up2 F(3,2)", "up2 F(4,2)"})
      add(l, family, jit::image_layout::blocked_16, "blocked");
  for (const layer& l : enlarged) add(l, "up2 F(3,2)", jit::image_layout::channels_last, "channels_last");
  for (const layer& l : enlarged) add(l, "up2 F(3,2)", jit::image_layout::plain, "plain");
  return true;
}();

}  // namespace
