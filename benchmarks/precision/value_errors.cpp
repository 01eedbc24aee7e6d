// Which value hurts: the error at the outputs that storing one value or constant as bfloat16 or in 8 bits causes, largest first
// (docs/errors-of-values.md).
//
// usage: value_errors [OPTIONS] FILE.onnx|NAME      prints tables in Markdown; NAME is a built-in network
//   --samples N        how many (4)                  --threads N   of the kernels (1)
//   --seconds S        for measuring each rounding (600)   --memory MB   for values (256)
//   --top N            rows of a table (12)          --subsets N   that are rounded at once, to compare with sums (10)
//   --most PERCENT     values that err more stay in float32 there (5)
//   --except TEXT      leaves out values with TEXT in their names
//   --shape NAME=1x2   of an open input; repeatable  --value NAME=N   an input that is one int64 number; repeatable
//   --npy FILE         samples of the first input, along the first dimension; others, and without it all, are random
//   --bytes FOLDER     each file's first and last bytes are a sample of the first input, of int32
// needs: place io onnx onednn openblas eigen stacked portable
#include <collage/calibrate/confirm.hpp>
#include <collage/calibrate/ranges.hpp>
#include <collage/calibrate/rounded_run.hpp>
#include <collage/calibrate/value_errors.hpp>
#include <collage/io/npy.hpp>
#include <collage/io/onnx.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../placing.hpp"

namespace {

namespace c = collage;
using benchmarks::all_backends;

struct study {
  c::graph network;
  c::sample_source samples;
  c::placement separate;
  std::vector<std::uint32_t> values, weights;
  std::vector<std::int32_t> axes;  // of the weights: the dimension with a scale for each index
  int threads = 1;
  std::size_t count = 4, top = 12, subsets = 10;
  double most = 0.05;
  std::string except;
  c::value_error_options options;
};

std::int64_t whole(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size())
    throw c::error(c::error_kind::invalid_argument, "is not a whole number", std::string(text));
  return number;
}

/// "NAME=TEXT" in two.
std::pair<std::string, std::string> assignment(const std::string& word) {
  const std::size_t at = word.find('=');
  if (at == std::string::npos) throw c::error(c::error_kind::invalid_argument, "is not NAME=VALUE", word);
  return {word.substr(0, at), word.substr(at + 1)};
}

c::graph load(benchmarks::command_line& line) {
  c::onnx::load_options how;
  std::vector<std::int64_t> numbers(64);
  for (std::string word = line.text("--shape", ""); !word.empty(); word = line.text("--shape", "")) {
    auto [name, text] = assignment(word);
    c::shape dims;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('x', at), text.size());
      dims.extent[dims.rank++] = whole(std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
    how.shapes.push_back({name, dims});
  }
  for (std::string word = line.text("--value", ""); !word.empty(); word = line.text("--value", "")) {
    const auto [name, text] = assignment(word);
    std::int64_t& number = numbers.at(how.values.size()) = whole(text);
    how.values.push_back({name, {&number, {c::dtype::i64, {}}}});
  }
  const std::string what = line.rest().at(0);
  if (!what.ends_with(".onnx")) return benchmarks::network_called(what);
  c::graph network = c::onnx::load(what, how);
  c::fill_constants(network);
  return c::optimise(network);
}

// ---- Samples ---------------------------------------------------------------------------------------------------------

/// All inputs at random; then the first one as `fill` says, which returns false where it has no such sample.
template <class Fill>
c::sample_source samples_by(std::size_t count, Fill fill) {
  return [count, fill](std::size_t which, std::span<const c::tensor_view> inputs) {
    std::mt19937_64 random(which + 1);
    for (const c::tensor_view& in : inputs) {
      const c::tensor made(in.type);
      c::fill_random(made, random);
      if (made.bytes() != 0) std::memcpy(in.data, made.data(), made.bytes());
    }
    return which < count && fill(which, inputs[0]);
  };
}

c::sample_source samples_of_array(std::size_t count, const std::string& file) {
  auto all = std::make_shared<c::tensor>(c::load_npy(file));
  return samples_by(count, [all, file](std::size_t which, const c::tensor_view& in) {
    const std::size_t bytes = in.type.bytes();
    if (all->type().type != in.type.type || all->bytes() % bytes != 0)
      throw c::error(c::error_kind::invalid_argument, "does not hold samples of the first input", file);
    if ((which + 1) * bytes > all->bytes()) return false;
    std::memcpy(in.data, all->data() + which * bytes, bytes);
    return true;
  });
}

c::sample_source samples_of_files(std::size_t count, const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.file_size() >= 64) files.push_back(entry.path().string());
  std::ranges::sort(files);
  std::ranges::shuffle(files, std::mt19937_64(1));
  return samples_by(count, [files](std::size_t which, const c::tensor_view& in) {
    if (which >= files.size()) return false;
    std::ifstream from(files[which], std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(from)), {});
    const auto all = static_cast<std::size_t>(in.type.dims.elements()), half = all / 2;
    auto* to = static_cast<std::int32_t*>(in.data);
    std::fill_n(to, all, 256);  // what Magika takes for no byte
    const std::size_t many = std::min(half, bytes.size());
    for (std::size_t i = 0; i < many; ++i) {
      to[i] = static_cast<unsigned char>(bytes[i]);
      to[all - many + i] = static_cast<unsigned char>(bytes[bytes.size() - many + i]);
    }
    return true;
  });
}

// ---- Requests --------------------------------------------------------------------------------------------------------

/// Weights of convolutions and products, with the dimension of their output channels; -1: none.
std::int32_t channel_axis(const c::graph& network, std::uint32_t value) {
  for (const c::use& u : network.view().uses_of(value)) {
    const auto rank = static_cast<std::int32_t>(network.type_of(value).rank());
    if (c::is_kind(network, u.node, c::ops::conv) && u.operand == 1) return 0;
    if (c::is_kind(network, u.node, c::ops::conv_transpose) && u.operand == 1) return 1;
    if (c::is_kind(network, u.node, c::ops::matmul) && u.operand == 1 && rank >= 2) return rank - 1;
  }
  return -1;
}

void find_values(study& s) {
  for (std::uint32_t v = 0; v < s.network.values().size(); ++v) {
    const c::value_record& r = s.network.at(v);
    if (r.type.type != c::dtype::f32 || r.type.dims.elements() < 2 || (r.uses == 0 && !r.is_output)) continue;
    if (!s.except.empty() && s.network.value_name(v).find(s.except) != std::string::npos) continue;
    if (r.role == c::value_role::constant) {
      const std::int32_t axis = channel_axis(s.network, v);
      if (axis < 0) continue;
      s.weights.push_back(v);
      s.axes.push_back(axis);
    } else if (r.producer >= 0 && !c::is_alias(s.network.view(), static_cast<std::uint32_t>(r.producer))) {
      s.values.push_back(v);
    }
  }
}

/// The smallest and largest number of each value, over all samples.
std::vector<c::interval> ranges_of(const study& s, const c::dynamic_engine& engine) {
  struct observed {
    const study* of;
    const c::dynamic_engine* engine;
    std::vector<c::interval> ranges;
  } seen{&s, &engine, {}};
  seen.ranges.resize(s.network.values().size());
  c::run_buffers memory(s.network);
  const std::vector<c::tensor_view> inputs(memory.in.begin(), memory.in.end());
  c::dynamic_context context = engine.context();
  const auto note = [](void* data, std::size_t step, const c::dynamic_context& at) {
    auto& to = *static_cast<observed*>(data);
    for (const std::uint32_t n : to.engine->steps()[step].nodes) {
      const std::uint32_t v = to.of->network.view().output_of(n);
      const void* const from = at.data_of(v);
      if (from == nullptr || to.of->network.type_of(v).type != c::dtype::f32) continue;
      for (const float x : c::const_tensor_view(from, to.of->network.type_of(v)).as<float>()) {
        to.ranges[v].low = std::min(to.ranges[v].low, x);
        to.ranges[v].high = std::max(to.ranges[v].high, x);
      }
    }
  };
  for (std::size_t i = 0; s.samples(i, inputs); ++i)
    context.run(memory.inputs, memory.outputs, c::step_observer{.data = &seen, .after = note});
  return seen.ranges;
}

std::vector<c::value_rounding> requests_of(const study& s, bool is_bf16, const std::vector<c::interval>& ranges) {
  std::vector<c::value_rounding> list;
  for (std::size_t i = 0; i < s.weights.size(); ++i) {
    const std::uint32_t v = s.weights[i];
    const auto bytes = s.network.bytes_of(v);
    const std::span contents(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
    list.push_back({v, is_bf16
                           ? c::rounding_to(c::dtype::bf16)
                           : c::rounding_to(c::weight_quantisation(contents, s.network.type_of(v).dims, s.axes[i]))});
  }
  for (const std::uint32_t v : s.values) {
    const c::interval r = ranges[v];
    if (is_bf16) list.push_back({v, c::rounding_to(c::dtype::bf16)});
    else if (r.low != r.high && std::isfinite(r.low) && std::isfinite(r.high))
      list.push_back({v, c::rounding_to(c::quantisation_of(r, c::quantisation_schema::asymmetric))});
  }
  return list;
}

// ---- Tables ----------------------------------------------------------------------------------------------------------

double squared(const c::confirmation& found) { return found.value * found.value; }

void print_table(const study& s, const c::value_errors& found, double sum) {
  std::vector<c::value_error> list = found.list;
  std::ranges::stable_sort(list, std::greater(), &c::value_error::nmse);
  std::printf("| value | of | error %% | share of the sum %% | error of the value %% |\n|---|---|--:|--:|--:|\n");
  for (std::size_t i = 0; i < std::min(list.size(), s.top); ++i) {
    const c::value_error& e = list[i];
    const std::int32_t producer = s.network.at(e.value).producer;
    const char* const kind = producer < 0 ? "weights" : s.network.node(static_cast<std::uint32_t>(producer)).kind->name;
    std::printf("| %s | %s | %.4f%s | %.1f | %.3f |\n", s.network.value_name(e.value).c_str(), kind,
                100 * std::sqrt(e.nmse), e.is_estimate ? " (estimate)" : "", 100 * e.nmse / sum,
                100 * std::sqrt(e.own));
  }
}

/// All that errs little alone at once, and random halves of it, beside the sums of the errors alone.
void compare_sums(const study& s, const c::dynamic_engine& exact, const std::vector<c::value_rounding>& requests,
                  const c::value_errors& found) {
  std::mt19937_64 random(1);
  std::vector<double> factors;
  for (std::size_t i = 0; i <= s.subsets; ++i) {
    std::vector<c::value_rounding> part;
    double expected = 0;
    for (std::size_t r = 0; r < requests.size(); ++r)
      if (found.list[r].nmse <= s.most * s.most && (i == 0 || random() % 2 == 0)) {
        part.push_back(requests[r]);
        expected += found.list[r].nmse;
      }
    const c::confirmation found_now =
        c::confirm(s.network, c::run_of(exact),
                   c::run_with_roundings(s.network, s.separate, c::table_of<all_backends>, part, s.threads), s.samples);
    const double together = squared(found_now);
    if (i != 0) factors.push_back(together / expected);
    else
      std::printf(
          "\n%zu requests, each below %.0f %%, at once: %.4f %%, of one sample at most %.4f %%. Of the sum, "
          "squared: %.2f times.\n",
          part.size(), 100 * s.most, 100 * std::sqrt(together),
          100 * std::sqrt(*std::ranges::max_element(found_now.each)), together / expected);
  }
  std::ranges::sort(factors);
  if (!factors.empty())
    std::printf("Random halves, squared, over their sums: least %.2f, median %.2f, most %.2f.\n", factors.front(),
                factors[factors.size() / 2], factors.back());
}

void measure_rounding(study& s, bool is_bf16, const c::dynamic_engine& exact, const std::vector<c::interval>& ranges) {
  const std::vector<c::value_rounding> requests = requests_of(s, is_bf16, ranges);
  const c::value_errors found =
      c::measure_value_errors(s.network, s.separate, c::table_of<all_backends>, requests, s.samples, s.options);
  double sum = 0;
  std::size_t estimates = 0;
  for (const c::value_error& e : found.list) {
    sum += std::isfinite(e.nmse) ? e.nmse : 0;
    estimates += e.is_estimate ? 1 : 0;
  }
  std::printf(
      "\n### %s\n\n%zu requests (%zu weights) on %zu samples: %.2f s, %zu kernels ran, %.1f MB%s; %zu estimates.\n\n",
      is_bf16 ? "bfloat16" : "8 bits", requests.size(), s.weights.size(), found.samples, found.seconds, found.steps,
      static_cast<double>(found.peak_bytes) / 1e6, found.keeps_all ? "" : ", not all values kept", estimates);
  print_table(s, found, sum);
  compare_sums(s, exact, requests, found);
  std::fflush(stdout);
}

int measure(int count, const char* const* words) {
  benchmarks::command_line line(count, words);
  study s;
  s.count = line.number("--samples", 4);
  s.threads = static_cast<int>(line.number("--threads", 1));
  s.top = line.number("--top", 12);
  s.except = line.text("--except", "");
  s.most = static_cast<double>(line.number("--most", 5)) / 100;
  s.subsets = line.number("--subsets", 10);
  s.options.samples = s.count;
  s.options.threads = s.threads;
  s.options.seconds = static_cast<double>(line.number("--seconds", 600));
  s.options.memory = line.number("--memory", 256) << 20;
  const std::string array = line.text("--npy", ""), folder = line.text("--bytes", "");
  s.network = load(line);
  s.samples = !array.empty()    ? samples_of_array(s.count, array)
              : !folder.empty() ? samples_of_files(s.count, folder)
                                : samples_by(s.count, [](std::size_t, const c::tensor_view&) { return true; });
  find_values(s);
  const c::backend_table backends = c::table_of<all_backends>;
  s.separate = c::separate_kernels(s.network, backends, s.values, s.threads);
  const c::dynamic_engine exact(s.network, s.separate, backends, s.threads);
  const auto begun = std::chrono::steady_clock::now();
  const std::vector<c::interval> ranges = ranges_of(s, exact);
  std::printf("## %s\n\n%zu kernels; %zu samples took %.3f s.\n", line.rest().at(0).c_str(), exact.steps().size(),
              s.count, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  for (const bool is_bf16 : {true, false}) measure_rounding(s, is_bf16, exact, ranges);
  return 0;
}

}  // namespace

int main(int count, char** words) { return benchmarks::run("value_errors", measure, count, words); }
