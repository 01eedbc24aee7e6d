// Depthwise convolutions of 8-bit values by generated code, beside oneDNN's in float32, 8 bits and bfloat16.
//
// All run in turns, with the images of the turn before in the caches, as a network leaves them. Each has a bias and relu. The image
// is uint8 with the zero point 0, which suits oneDNN best, and lies with channels last. In float32 oneDNN has the faster of this layout
// and its blocked one. Times are medians over turns, and ratios are medians of the ratios of a turn.
//   COLLAGE_THREADS   threads of all (1)
//   COLLAGE_CLOCK     "processor": processor time of the calling thread, for one thread beside other programs
//   COLLAGE_VERBOSE   also the time of each configuration
// needs: jit onednn
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <fstream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "../clock.hpp"
#include "jit/byte_depthwise.hpp"

extern "C" void omp_set_num_threads(int count);

namespace {

namespace jit = collage::detail::jit;
using dnnl::memory;
using tag = memory::format_tag;
using type = memory::data_type;

using benchmarks::now;
using benchmarks::threads;

/// oneDNN's kernel of one element type and layout.
class library_run {
 public:
  library_run(const jit::byte_depthwise_shape& s, type image, tag layout)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const bool is_whole = image == type::u8;
    dnnl::primitive_attr attributes;
    dnnl::post_ops after;
    after.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(after);
    if (is_whole) {
      attributes.set_scales_mask(DNNL_ARG_SRC, 0);
      attributes.set_scales_mask(DNNL_ARG_WEIGHTS, 3);
      attributes.set_scales_mask(DNNL_ARG_DST, 0);
    }
    const memory::desc from({s.batch, s.channels, s.height, s.width}, image, layout);
    const memory::desc to({s.batch, s.channels, s.output_height(), s.output_width()}, image, layout);
    const memory::desc weights({s.channels, 1, 1, s.window_rows, s.window_columns}, is_whole ? type::s8 : image,
                               tag::any);
    const memory::desc bias({s.channels}, type::f32, tag::a);
    const dnnl::convolution_forward::primitive_desc made(
        engine_, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, from, weights, bias, to,
        {s.stride_rows, s.stride_columns}, {s.pad_top, s.pad_left}, {s.pad_bottom, s.pad_right}, attributes);
    name = made.impl_info_str();
    run_ = dnnl::convolution_forward(made);
    for (const auto& [argument, desc] :
         {std::pair(DNNL_ARG_SRC, from), std::pair(DNNL_ARG_WEIGHTS, made.weights_desc()),
          std::pair(DNNL_ARG_BIAS, bias), std::pair(DNNL_ARG_DST, to)})
      arguments_.insert({argument, filled(desc)});
    if (is_whole)
      for (const auto& [argument, count] :
           {std::pair(DNNL_ARG_SRC, std::int64_t{1}), std::pair(DNNL_ARG_WEIGHTS, s.channels),
            std::pair(DNNL_ARG_DST, std::int64_t{1})})
        arguments_.insert({DNNL_ARG_ATTR_SCALES | argument, filled({{count}, type::f32, tag::a})});
  }
  double run() {
    const double begin = now();
    run_.execute(stream_, arguments_);
    stream_.wait();
    return now() - begin;
  }

  std::string name;

 private:
  memory filled(const memory::desc& d) const {
    memory made(d, engine_);
    for (std::size_t i = 0; i < d.get_size(); ++i)
      static_cast<std::uint8_t*>(made.get_data_handle())[i] = static_cast<std::uint8_t>(i % 7);
    if (d.get_data_type() != type::f32) return made;
    for (std::size_t i = 0; i < d.get_size() / 4; ++i)
      static_cast<float*>(made.get_data_handle())[i] = 0.5F + 0.1F * static_cast<float>(i % 7);
    return made;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive run_;
  std::unordered_map<int, memory> arguments_;
};

/// Memory that begins at a cache line.
class lines {
 public:
  explicit lines(std::size_t bytes) : memory_(bytes + 64) {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::uint8_t>(i % 7);
  }
  std::uint8_t* data() { return memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64; }

 private:
  std::vector<std::uint8_t> memory_;
};

/// Our kernel in one configuration.
class byte_run {
 public:
  byte_run(const jit::byte_depthwise_configuration& how, const jit::byte_depthwise_shape& s)
      : weights_(static_cast<std::size_t>(s.channels * s.taps()), 3),
        made_(how, s, terms_of(s), weights_.data(), threads()),
        packed_(jit::byte_depthwise::packed_size(how, s)),
        from_(static_cast<std::size_t>(s.batch * s.height * s.width * s.channels)),
        to_(static_cast<std::size_t>(s.batch * s.output_height() * s.output_width() * s.channels)),
        name(jit::to_text(how)) {
    jit::byte_depthwise::pack(how, s, weights_.data(), reinterpret_cast<std::byte*>(packed_.data()));
  }
  double run() {
    const double begin = now();
    made_.run({from_.data(), reinterpret_cast<const std::byte*>(packed_.data()), to_.data()});
    return now() - begin;
  }

 private:
  static jit::byte_depthwise_terms terms_of(const jit::byte_depthwise_shape& s) {
    jit::byte_depthwise_terms t;
    t.zero = 3;
    t.factor.assign(static_cast<std::size_t>(s.channels), 0.02F);
    t.offset.assign(static_cast<std::size_t>(s.channels), 0.7F);
    t.least = 0;
    return t;
  }
  std::vector<std::int8_t> weights_;
  jit::byte_depthwise made_;
  lines packed_, from_, to_;

 public:
  std::string name;
};

double quantile(std::vector<double> list, double part) {
  std::ranges::sort(list);
  return list[static_cast<std::size_t>(part * static_cast<double>(list.size() - 1))];
}
double median(const std::vector<double>& list) { return quantile(list, 0.5); }

struct layer {
  std::int64_t channels, size, window, stride;
};

jit::byte_depthwise_shape shape_of(const layer& l) {
  const std::int64_t pad = l.window / 2;
  return {.channels = l.channels,
          .height = l.size,
          .width = l.size,
          .window_rows = l.window,
          .window_columns = l.window,
          .stride_rows = l.stride,
          .stride_columns = l.stride,
          .pad_top = pad,
          .pad_left = pad,
          .pad_bottom = pad,
          .pad_right = pad};
}

/// The fastest configuration, by its median of `turns` runs.
std::unique_ptr<byte_run> fastest(const jit::byte_depthwise_shape& s, int turns) {
  std::unique_ptr<byte_run> best;
  double least = 0;
  for (const jit::byte_depthwise_configuration& c : jit::promising_configurations(s)) {
    auto made = std::make_unique<byte_run>(c, s);
    std::vector<double> times;
    for (int i = turns; i > 0; --i) times.push_back(made->run());
    if (std::getenv("COLLAGE_VERBOSE") != nullptr)
      std::printf("%9.2f us  %s\n", 1e6 * median(times), made->name.c_str());
    if (best != nullptr && median(times) >= least) continue;
    least = median(times);
    best = std::move(made);
  }
  return best;
}

void compare(const layer& l) {
  const jit::byte_depthwise_shape s = shape_of(l);
  library_run last(s, type::f32, tag::nhwc), blocked(s, type::f32, tag::nChw16c), bytes(s, type::u8, tag::nhwc);
  std::unique_ptr<library_run> library_brain;
  try {
    library_brain = std::make_unique<library_run>(s, type::bf16, tag::nhwc);
  } catch (const dnnl::error&) {  // the processor has no instructions for it
  }
  const auto turns_of = [&](double wanted) { return std::clamp(static_cast<int>(wanted / last.run()), 15, 2000); };
  const std::unique_ptr<byte_run> best = fastest(s, turns_of(0.01));
  std::vector<double> floats, in_bytes, in_brain, ours, over_floats, over_bytes;
  for (int i = turns_of(0.06); i > 0; --i) {
    floats.push_back(std::min(last.run(), blocked.run()));
    in_bytes.push_back(bytes.run());
    in_brain.push_back(library_brain == nullptr ? 0 : library_brain->run());
    ours.push_back(best->run());
    over_floats.push_back(floats.back() / ours.back());
    over_bytes.push_back(in_bytes.back() / ours.back());
  }
  const auto n = [](std::int64_t x) { return std::to_string(x); };
  const std::string name =
      n(l.channels) + ", " + n(l.size) + "x" + n(l.size) + ", " + n(l.window) + "x" + n(l.window) + ", " + n(l.stride);
  std::printf("| %s | %.1f | %.1f | %.1f | %.1f | %.2f | %.2f to %.2f | %.2f |\n", name.c_str(), 1e6 * median(floats),
              1e6 * median(in_bytes), 1e6 * median(in_brain), 1e6 * median(ours), median(over_floats),
              quantile(over_floats, 0.25), quantile(over_floats, 0.75), median(over_bytes));
  std::fflush(stdout);
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

}  // namespace

int main() {
  omp_set_num_threads(threads());
  std::printf("%s, %d thread%s; medians in microseconds\n\n", processor().c_str(), threads(),
              threads() == 1 ? "" : "s");
  std::printf(
      "| channels, image, window, stride | oneDNN float32 | oneDNN 8 bits | oneDNN bfloat16 | ours | float32 / ours | "
      "quartiles | 8 bits / ours |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
  constexpr layer layers[] = {{32, 112, 3, 1}, {64, 112, 3, 1}, {96, 112, 3, 2},  {144, 56, 3, 1},  {144, 56, 3, 2},
                              {192, 28, 3, 1}, {192, 28, 3, 2}, {32, 28, 3, 1},   {384, 14, 3, 1},  {576, 14, 3, 1},
                              {576, 14, 3, 2}, {960, 7, 3, 1},  {1024, 28, 3, 1}, {1024, 14, 3, 2}, {1024, 7, 3, 1},
                              {32, 112, 5, 1}, {96, 56, 5, 2},  {240, 28, 5, 1},  {240, 28, 5, 2},  {480, 14, 5, 1},
                              {672, 14, 5, 2}, {1024, 7, 5, 1}, {64, 7, 5, 1}};
  for (const layer& l : layers) compare(l);
  return 0;
}
