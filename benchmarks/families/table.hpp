// Tables of search spaces: for each task, the times of all points of its space, or of a sample of them.
#pragma once

#include "space_kind.hpp"
#include "statistics.hpp"

#include <collage/error.hpp>
#include <collage/tune/rank.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace families {

struct timed_task {
  std::string name;
  std::vector<std::int64_t> sizes;  ///< the shape, as the space's kind names its numbers
  std::size_t all = 0;              ///< points of its space; the table may have fewer
  std::vector<float> features;      ///< point after point
  std::vector<std::size_t> order;   ///< of the points by the closed form, the most promising first
  std::vector<double> ms;           ///< one time for each point: the median of its passes
  std::vector<double> spread;       ///< how far the passes of each point differ, as a share of the median
  double best = 0;

  std::size_t points() const { return ms.size(); }
};

struct table {
  const space_kind* kind = nullptr;  ///< the space of all tasks
  tune::machine on = {};             ///< that was measured
  std::size_t passes = 1;
  std::vector<timed_task> tasks = {};

  std::size_t columns() const { return kind->features.size(); }
};

namespace detail {

class table_reader {
 public:
  explicit table_reader(std::string_view text) : rest_(text) {}

  table read() {
    table made;
    const std::string_view format = line();
    if (format == "collage-times 1") read_first(made);
    else if (format == "collage-times 2") read_second(made);
    else refuse("the file does not begin with 'collage-times 1' or 'collage-times 2'");
    if (made.tasks.empty()) refuse("the table has no task");
    for (std::size_t i = 0; i < made.tasks.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (made.tasks[i].name == made.tasks[j].name || made.tasks[i].sizes == made.tasks[j].sizes)
          refuse("the tasks '" + made.tasks[j].name + "' and '" + made.tasks[i].name + "' are the same");
    return made;
  }

 private:
  /// A complete space of an implied machine, in one pass.
  void read_first(table& made) {
    made.kind = &all_kinds().front();
    if (line() != "space " + made.kind->name) refuse("the second line is not 'space " + made.kind->name + "'");
    constexpr const char* end = " points N";
    while (!rest_.empty()) {
      const header found = task(*made.kind, end);
      const auto count = found.rest.size() == 2 && found.rest[0] == "points"
                             ? number(found.rest[1], 0, std::numeric_limits<std::uint32_t>::max())
                             : std::nullopt;
      if (!count) refuse_header(*made.kind, end);
      timed_task& t = made.tasks.emplace_back(found.task);
      const tune::any_space space = space_of(t, made);
      check_count(t, *count);
      while (t.ms.size() < static_cast<std::size_t>(*count)) {
        refuse_end(t.name, t.ms.size(), *count, "times");
        for (const std::string_view word : words_of(line())) t.ms.push_back(time_of(word));
      }
      if (t.ms.size() > static_cast<std::size_t>(*count)) refuse("'" + t.name + "' has more times than points");
      describe(t, space, all_of(space));
    }
  }

  /// States the machine and the passes. Each point has a line, with its number if the table has a sample.
  void read_second(table& made) {
    const std::string_view second = line();
    const auto& kinds = all_kinds();
    const auto kind = std::ranges::find_if(kinds, [&](const space_kind& k) { return second == "space " + k.name; });
    if (kind == kinds.end()) refuse("the second line names no space of this build, which are:" + names_of_kinds());
    made.kind = &*kind;
    made.on = machine();
    const auto passes = words_of(line());
    const auto times = passes.size() == 2 && passes[0] == "passes" ? number(passes[1], 1, 99) : std::nullopt;
    if (!times) refuse("the fourth line is not 'passes N'");
    made.passes = static_cast<std::size_t>(*times);
    while (!rest_.empty()) second_task(made);
  }
  void second_task(table& made) {
    constexpr const char* end = " points N of N texts HASH";
    const header found = task(*made.kind, end);
    const auto& words = found.rest;
    if (words.size() != 6 || words[0] != "points" || words[2] != "of" || words[4] != "texts")
      refuse_header(*made.kind, end);
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    const auto count = number(words[1], 1, most), all = number(words[3], 1, most);
    if (!count || !all || *count > *all) refuse_header(*made.kind, end);
    timed_task& t = made.tasks.emplace_back(found.task);
    const tune::any_space space = space_of(t, made);
    check_count(t, *all);
    const bool is_sample = *count < *all;
    std::vector<std::uint32_t> points = is_sample ? std::vector<std::uint32_t>() : all_of(space);
    while (t.ms.size() < static_cast<std::size_t>(*count)) {
      refuse_end(t.name, t.ms.size(), *count, "points");
      std::vector<std::string_view> of_point = words_of(line());
      if (is_sample) {
        points.push_back(point_of(of_point, points, t));
        of_point.erase(of_point.begin());
      }
      add_point(t, of_point, made.passes);
    }
    if (hash_of_texts(space, points) != words[5])
      refuse("the texts of the points of '" + t.name + "' have another hash, so its space is another");
    describe(t, space, points);
  }
  std::uint32_t point_of(const std::vector<std::string_view>& words, const std::vector<std::uint32_t>& before,
                         const timed_task& t) const {
    const std::string_view word = words.empty() ? std::string_view() : words[0];
    const auto point = number(word, 0, static_cast<std::int64_t>(t.all) - 1);
    if (!point) refuse("'" + std::string(word) + "' is no point of '" + t.name + "'");
    if (!before.empty() && *point <= before.back()) refuse("the points of '" + t.name + "' do not ascend");
    return static_cast<std::uint32_t>(*point);
  }
  void add_point(timed_task& t, const std::vector<std::string_view>& words, std::size_t passes) const {
    if (words.size() != passes)
      refuse("a point has " + std::to_string(words.size()) + " times, and the table has " + std::to_string(passes) +
             " passes");
    std::vector<double> times;
    for (const std::string_view word : words) times.push_back(time_of(word));
    const auto [least, most] = std::ranges::minmax(times);
    t.ms.push_back(median(times));
    t.spread.push_back((most - least) / t.ms.back());
  }

  static std::string names_of_kinds() {
    std::string names;
    for (const space_kind& kind : all_kinds()) names += " " + kind.name;
    return names;
  }

  tune::machine machine() {
    const auto words = words_of(line());
    constexpr std::array<std::string_view, 5> expected = {"machine", "lanes", "registers", "threads", "caches"};
    constexpr std::array<std::size_t, 5> places = {0, 1, 3, 5, 7};
    bool is_right = words.size() == 11;
    for (std::size_t i = 0; is_right && i < places.size(); ++i) is_right = words[places[i]] == expected[i];
    std::array<std::int64_t, 6> found = {};
    constexpr std::array<std::size_t, 6> numbers = {2, 4, 6, 8, 9, 10};
    for (std::size_t i = 0; is_right && i < numbers.size(); ++i) {
      const auto n = number(words[numbers[i]], 1, i < 3 ? 1024 : std::int64_t{1} << 40);
      is_right = n.has_value();
      found[i] = n.value_or(0);
    }
    if (!is_right || (found[0] != 8 && found[0] != 16))
      refuse("the third line is not 'machine lanes N registers N threads N caches N N N', with 8 or 16 lanes");
    return {static_cast<int>(found[0]),
            static_cast<int>(found[1]),
            static_cast<int>(found[2]),
            found[3],
            found[4],
            found[5]};
  }

  /// The beginning of a task's line, and the words after its shape.
  struct header {
    timed_task task;
    std::vector<std::string_view> rest;
  };
  header task(const space_kind& kind, const char* end) {
    const std::vector<std::string_view> words = words_of(line());
    const std::size_t shape = 2 * kind.sizes.size();
    if (words.size() < 2 + shape || words[0] != "task" || words[1].empty()) refuse_header(kind, end);
    header found;
    found.task.name = words[1];
    for (std::size_t i = 0; i < kind.sizes.size(); ++i) {
      const auto size = number(words[3 + 2 * i], 1, 65536);
      if (words[2 + 2 * i] != kind.sizes[i] || !size) refuse_header(kind, end);
      found.task.sizes.push_back(*size);
    }
    found.rest.assign(words.begin() + static_cast<std::ptrdiff_t>(2 + shape), words.end());
    return found;
  }
  tune::any_space space_of(timed_task& t, const table& made) const {
    std::string why;
    std::optional<tune::any_space> space = made.kind->make(t.sizes, made.on, why);
    if (!space) refuse(why);
    t.all = space->size();
    if (t.all == 0) refuse("the space of '" + t.name + "' has no legal point");
    return *std::move(space);
  }
  void check_count(const timed_task& t, std::int64_t count) const {
    if (t.all != static_cast<std::size_t>(count))
      refuse("'" + t.name + "' has " + std::to_string(count) + " points, and its space has " + std::to_string(t.all));
  }
  static std::vector<std::uint32_t> all_of(const tune::any_space& space) {
    std::vector<std::uint32_t> points(space.size());
    std::iota(points.begin(), points.end(), 0U);
    return points;
  }
  static void describe(timed_task& t, const tune::any_space& space, const std::vector<std::uint32_t>& points) {
    t.features = space.features(points);
    std::vector<double> promise;
    for (const std::uint32_t point : points) promise.push_back(-space.estimate(point));
    t.order = tune::order_by(promise);
    t.best = *std::ranges::min_element(t.ms);
  }

  static std::vector<std::string_view> words_of(std::string_view left) {
    std::vector<std::string_view> words;
    while (!left.empty()) {
      words.push_back(left.substr(0, left.find(' ')));
      left.remove_prefix(std::min(left.size(), words.back().size() + 1));
    }
    return words;
  }
  static std::optional<std::int64_t> number(std::string_view word, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (fault != std::errc() || end != word.data() + word.size() || value < least || value > most) return {};
    return value;
  }
  double time_of(std::string_view word) const {
    const auto nanoseconds = number(word, 1, 1'000'000'000'000);
    if (!nanoseconds) refuse("'" + std::string(word) + "' is no time in nanoseconds");
    return static_cast<double>(*nanoseconds) * 1e-6;
  }

  std::string_view line() {
    ++number_;
    const std::string_view found = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(rest_.size(), found.size() + 1));
    return found;
  }

  void refuse_end(const std::string& name, std::size_t found, std::int64_t count, const char* noun) const {
    if (rest_.empty() || rest_.starts_with("task "))
      refuse("'" + name + "' ends after " + std::to_string(found) + " of " + std::to_string(count) + " " + noun);
  }
  [[noreturn]] void refuse_header(const space_kind& kind, const char* end) const {
    std::string form = "task NAME";
    for (const std::string_view size : kind.sizes) form += " " + std::string(size) + " N";
    refuse("a task is written as '" + form + end + "'");
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw collage::error(collage::error_kind::invalid_argument, why,
                         "line " + std::to_string(number_) + " of the table");
  }

  std::string_view rest_;
  int number_ = 0;
};

}  // namespace detail

/// Reads and checks a table. Error (invalid_argument): one sentence with the number of the line.
inline table read_table(std::string_view text) { return detail::table_reader(text).read(); }

}  // namespace families
