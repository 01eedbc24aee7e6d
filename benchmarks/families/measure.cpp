// Measures a table of a search space of generated kernels, which `families` replays.
//
// usage: measure products|convolutions|depthwise --out FILE [--points N] [--seed S] [--passes N]
//
// A task with more than N points (1500) has a random sample of them. Each pass (3) builds and times all points of all tasks in a new
// order. The time of a point in a pass is the median of 3 to 9 runs, after one that warms up. All passes are written. Each result is
// checked against the one of the task's first point. Measure on an otherwise idle machine.
//   COLLAGE_CLOCK     "processor": processor time of the thread
// needs: tune jit
#include "command_line.hpp"
#include "kernels.hpp"
#include "table.hpp"

#include <collage/io/file.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../clock.hpp"
#include "jit/convolution_point.hpp"
#include "jit/machine.hpp"

namespace {

using namespace families;

struct shape {
  const char* name;
  std::vector<std::int64_t> sizes;
};

/// The tasks of a table, and how their kernels are built.
struct plan {
  const char* word;
  std::string space;
  double tolerance;  ///< of a result: a share of the root mean square of all
  std::vector<shape> shapes;
  std::unique_ptr<task_kernels> (*kernels)(std::span<const std::int64_t> sizes, tune::random_source& random);
};

template <class Kernels>
std::unique_ptr<task_kernels> kernels_of(std::span<const std::int64_t> sizes, tune::random_source& random) {
  return std::make_unique<Kernels>(sizes, random);
}

template <class Kind>
std::string space_of() {
  return Kind::space::name + std::to_string(Kind::space::version);
}

/// BERT-base with 64 tokens, ResNet-50, MobileNet-V2, and a window of 5x5 of Inception-v3.
std::vector<plan> all_plans() {
  return {{"products",
           space_of<products>(),
           1e-4,
           {{"bert", {64, 768, 768}}, {"rn2", {3136, 64, 256}}, {"rn4", {196, 256, 1024}}, {"mn3", {3136, 144, 24}}},
           kernels_of<product_kernels>},
          {"convolutions",
           space_of<convolutions>(),
           2e-3,
           {{"rn2", {64, 64, 56, 3}}, {"rn3", {128, 128, 28, 3}}, {"rn4", {256, 256, 14, 3}}, {"in5", {48, 64, 35, 5}}},
           kernels_of<convolution_kernels>},
          {"depthwise",
           space_of<depthwise_convolutions>(),
           1e-4,
           {{"mn2", {32, 16, 112, 3, 1}},
            {"mn3", {144, 24, 56, 3, 1}},
            {"mn5", {576, 96, 14, 3, 1}},
            {"mn7", {960, 320, 7, 3, 1}}},
           kernels_of<depthwise_kernels>}};
}

struct options {
  std::string word, out;
  std::size_t points = 1500, seed = 1, passes = 3;
};

command_words words_of(int argc, char** argv) {
  return {argc, argv, "measure",
          "usage: measure products|convolutions|depthwise --out FILE [--points N] [--seed S] [--passes N]"};
}

options read(command_words& words) {
  options o;
  while (words.is_left()) {
    const std::string_view word = words.take();
    if (word == "--points") o.points = words.number(1'000'000);
    else if (word == "--seed") o.seed = words.number(1'000'000);
    else if (word == "--passes") o.passes = words.number(99);
    else if (word == "--out") o.out = words.value();
    else if (word.starts_with("-")) words.fail("there is no option '" + std::string(word) + "'");
    else if (o.word.empty()) o.word = word;
    else words.fail("'" + std::string(word) + "' is one word too many");
  }
  if (o.out.empty()) words.fail("--out is missing");
  return o;
}

/// Some numbers below `all` without repeats, in ascending order.
std::vector<std::uint32_t> sample_of(std::size_t all, std::size_t count, tune::random_source random) {
  std::vector<std::uint32_t> numbers(all);
  std::iota(numbers.begin(), numbers.end(), 0U);
  if (count >= all) return numbers;
  for (std::size_t i = 0; i < count; ++i) std::swap(numbers[i], numbers[i + random.below(all - i)]);
  numbers.resize(count);
  std::ranges::sort(numbers);
  return numbers;
}

struct measured_task {
  const shape* what;
  tune::any_space space;
  std::vector<std::uint32_t> points;
  std::unique_ptr<task_kernels> kernels;
  std::vector<float> expected;                    ///< the result of the first point
  std::vector<std::vector<std::int64_t>> passes;  ///< nanoseconds: of each pass, for each point

  std::string text(std::size_t i) const { return space.text(points[i]); }
};

std::vector<measured_task> tasks_of(const plan& p, const options& o, const tune::machine& on) {
  const auto& kinds = all_kinds();
  const auto kind = std::ranges::find(kinds, p.space, &space_kind::name);
  std::vector<measured_task> tasks;
  for (std::size_t i = 0; i < p.shapes.size(); ++i) {
    std::string why;
    std::optional<tune::any_space> space = kind->make(p.shapes[i].sizes, on, why);
    if (!space) throw collage::error(collage::error_kind::failure, why, p.shapes[i].name);
    tune::random_source random(o.seed * 1000 + i);
    std::vector<std::uint32_t> points = sample_of(space->size(), o.points, random);
    tasks.push_back({&p.shapes[i], *std::move(space), std::move(points), p.kernels(p.shapes[i].sizes, random), {}, {}});
    measured_task& t = tasks.back();
    t.passes.assign(o.passes, std::vector<std::int64_t>(t.points.size()));
    t.kernels->build(t.text(0))();
    t.expected.assign(t.kernels->output().begin(), t.kernels->output().end());
  }
  return tasks;
}

/// The output of the last kernel is that of the first, as far as roundings allow.
void check(const measured_task& t, std::size_t point, double tolerance) {
  double squares = 0;
  for (const float wanted : t.expected) squares += static_cast<double>(wanted) * wanted;
  const double most = tolerance * std::sqrt(squares / static_cast<double>(t.expected.size()));
  for (std::size_t i = 0; i < t.expected.size(); ++i)
    if (!(std::abs(static_cast<double>(t.kernels->output()[i]) - t.expected[i]) <= most))
      throw collage::error(collage::error_kind::failure,
                           "'" + t.text(point) + "' and '" + t.text(0) + "' compute different results", t.what->name);
}

/// The median of some runs in nanoseconds.
std::int64_t time_of(const std::function<void()>& run) {
  constexpr std::size_t most = 9, least = 3;
  constexpr double enough = 0.003;  // seconds
  std::vector<double> times;
  double sum = 0;
  while (times.size() < least || (times.size() < most && sum < enough)) {
    const double begin = benchmarks::now();
    run();
    times.push_back(benchmarks::now() - begin);
    sum += times.back();
  }
  return std::max<std::int64_t>(std::llround(median(times) * 1e9), 1);
}

void measure_pass(std::vector<measured_task>& tasks, std::size_t pass, const options& o, double tolerance) {
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t t = 0; t < tasks.size(); ++t)
    for (std::size_t i = 0; i < tasks[t].points.size(); ++i) order.emplace_back(t, i);
  tune::random_source random(o.seed * 1000 + 500 + pass);
  for (std::size_t i = 0; i + 1 < order.size(); ++i) std::swap(order[i], order[i + random.below(order.size() - i)]);
  const double begin = benchmarks::now();
  for (const auto& [which, point] : order) {
    measured_task& t = tasks[which];
    const std::function<void()> run = t.kernels->build(t.text(point));
    t.kernels->forget_output();
    run();
    check(t, point, tolerance);
    run();  // the check has moved the caches
    t.passes[pass][point] = time_of(run);
  }
  std::fprintf(stderr, "pass %zu of %zu: %zu points, %.0f s\n", pass + 1, o.passes, order.size(),
               benchmarks::now() - begin);
}

std::string text_of(const plan& p, const std::vector<measured_task>& tasks, const options& o, const tune::machine& on) {
  std::string text = "collage-times 2\nspace " + p.space + "\nmachine lanes " + std::to_string(on.lanes) +
                     " registers " + std::to_string(on.registers) + " threads " + std::to_string(on.threads) +
                     " caches " + std::to_string(on.first_level_bytes) + " " + std::to_string(on.second_level_bytes) +
                     " " + std::to_string(on.third_level_bytes) + "\npasses " + std::to_string(o.passes) + "\n";
  const auto& names = std::ranges::find(all_kinds(), p.space, &space_kind::name)->sizes;
  for (const measured_task& t : tasks) {
    text += std::string("task ") + t.what->name;
    for (std::size_t i = 0; i < names.size(); ++i)
      text += " " + std::string(names[i]) + " " + std::to_string(t.what->sizes[i]);
    text += " points " + std::to_string(t.points.size()) + " of " + std::to_string(t.space.size()) + " texts " +
            hash_of_texts(t.space, t.points) + "\n";
    const bool is_sample = t.points.size() < t.space.size();
    for (std::size_t i = 0; i < t.points.size(); ++i) {
      std::string line = is_sample ? std::to_string(t.points[i]) : "";
      for (const auto& pass : t.passes) line += (line.empty() ? "" : " ") + std::to_string(pass[i]);
      text += line + "\n";
    }
  }
  return text;
}

/// Prints how far the passes differ.
void print_differences(const table& made) {
  std::printf("| task | points | of | best ms | worst ms | passes differ: median | 95 %% of points |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (const timed_task& t : made.tasks)
    std::printf("| %s | %zu | %zu | %.3f | %.3f | %.1f %% | below %.1f %% |\n", t.name.c_str(), t.points(), t.all,
                t.best, *std::ranges::max_element(t.ms), 100 * median(t.spread), 100 * share_below(t.spread, 0.95));
}

int run(command_words words) {
  const options o = read(words);
  const std::vector<plan> plans = all_plans();
  const auto p = std::ranges::find_if(plans, [&](const plan& one) { return o.word == one.word; });
  if (p == plans.end()) words.fail("'" + o.word + "' is no table");
  const tune::machine on = jit::machine_of(jit::this_machine().set, 1);  // one thread, the widest vectors
  std::vector<measured_task> tasks = tasks_of(*p, o, on);
  for (std::size_t pass = 0; pass < o.passes; ++pass) measure_pass(tasks, pass, o, p->tolerance);
  const std::string text = text_of(*p, tasks, o, on);
  print_differences(read_table(text));
  collage::write_file(o.out, text);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return status_of([&] { return run(words_of(argc, argv)); });
}
