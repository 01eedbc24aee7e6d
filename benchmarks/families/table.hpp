// Tables of complete search spaces: for each task, the time of every point, in the order of `all_points`.
#pragma once

#include <collage/error.hpp>
#include <collage/tune/rank.hpp>
#include <collage/tune/space.hpp>
#include <collage/tune/winograd.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace families {

namespace tune = collage::tune;

struct timed_task {
  std::string name;
  tune::winograd_task what;
  std::vector<tune::point_of<tune::winograd_space>> points;
  std::vector<float> features;  ///< point after point
  std::vector<double> ms;       ///< one time for each point
  double best = 0;

  tune::winograd_space space() const { return tune::winograd_space(what); }
};

struct table {
  std::vector<timed_task> tasks;
};

namespace detail {

class table_reader {
 public:
  explicit table_reader(std::string_view text) : rest_(text) {}

  table read() {
    if (line() != "collage-times 1") refuse("the file does not begin with 'collage-times 1'");
    const std::string space =
        std::string("space ") + tune::winograd_space::name + std::to_string(tune::winograd_space::version);
    if (line() != space) refuse("the second line is not '" + space + "'");
    table made;
    while (!rest_.empty()) made.tasks.push_back(task());
    if (made.tasks.empty()) refuse("the table has no task");
    for (std::size_t i = 0; i < made.tasks.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (made.tasks[i].name == made.tasks[j].name || made.tasks[i].what == made.tasks[j].what)
          refuse("the tasks '" + made.tasks[j].name + "' and '" + made.tasks[i].name + "' are the same");
    return made;
  }

 private:
  timed_task task() {
    std::istringstream words{std::string(line())};
    std::string first, channels, outputs, size;
    timed_task made;
    std::size_t count = 0;
    std::string points;
    if (!(words >> first >> made.name >> channels >> made.what.channels >> outputs >> made.what.outputs >> size >>
          made.what.height >> points >> count) ||
        first != "task" || channels != "channels" || outputs != "outputs" || size != "size" || points != "points")
      refuse("a task is written as 'task NAME channels N outputs N size N points N'");
    made.what.width = made.what.height;
    const tune::winograd_space space = made.space();
    if (const auto why = space.task_fault(); !why.empty()) refuse({why.text, why.size});
    for (const auto& point : tune::all_points(space)) made.points.push_back(point);
    if (made.points.empty()) refuse("the space of '" + made.name + "' has no legal point");
    if (made.points.size() != count)
      refuse("'" + made.name + "' has " + std::to_string(count) + " points, and its space has " +
             std::to_string(made.points.size()));
    while (made.ms.size() < count) {
      if (rest_.empty() || rest_.starts_with("task "))
        refuse("'" + made.name + "' ends after " + std::to_string(made.ms.size()) + " of " + std::to_string(count) +
               " times");
      times_of_line(made.ms);
    }
    if (made.ms.size() > count) refuse("'" + made.name + "' has more times than points");
    made.features = tune::features_of<tune::winograd_space>(space, made.points);
    made.best = *std::ranges::min_element(made.ms);
    return made;
  }

  void times_of_line(std::vector<double>& ms) {
    std::string_view left = line();
    while (!left.empty()) {
      const std::string_view word = left.substr(0, left.find(' '));
      left.remove_prefix(std::min(left.size(), word.size() + 1));
      std::uint64_t nanoseconds = 0;
      const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), nanoseconds);
      if (fault != std::errc() || end != word.data() + word.size() || nanoseconds == 0 ||
          nanoseconds > 1'000'000'000'000)
        refuse("'" + std::string(word) + "' is no time in nanoseconds");
      ms.push_back(static_cast<double>(nanoseconds) * 1e-6);
    }
  }

  std::string_view line() {
    ++number_;
    const std::string_view found = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(rest_.size(), found.size() + 1));
    return found;
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
