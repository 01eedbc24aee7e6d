// Tables in Markdown, the bars, and each claim of the paper that this data can be asked.
#pragma once

#include "arms.hpp"
#include "study.hpp"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace families {

inline std::string count_text(double count, std::size_t most) {
  char text[32];
  if (count == never) std::snprintf(text, sizeof text, "> %zu", most);
  else std::snprintf(text, sizeof text, count == std::floor(count) ? "%.0f" : "%.1f", count);
  return text;
}
inline std::string interval_text(const figure& f, std::size_t most) {
  return count_text(f.value, most) + " (" + count_text(f.low, most) + " to " + count_text(f.high, most) + ")";
}
inline std::string factor_text(const figure& f) {
  const auto number = [](double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", x);
    return x == never ? std::string("unbounded") : std::string(text);
  };
  return number(f.value) + " (" + number(f.low) + " to " + number(f.high) + ")";
}

inline figure over_tasks(const lengths& of) {
  return resampled(of.seeds(), [&](std::span<const std::size_t> chosen) { return of.over(chosen); });
}

inline const outcome& find(const std::vector<outcome>& all, const std::string& name) {
  return *std::ranges::find(all, name, &outcome::name);
}

inline void print_arms(const std::vector<outcome>& all, std::size_t most) {
  std::printf(
      "| arm | 10 %% | 5 %% | 2 %% | 1 %% | seeds that win | runs not within 2 %% |\n|---|---|---|---|---|---|---|\n");
  for (const outcome& one : all) {
    std::printf("| %s |", one.name.c_str());
    for (std::size_t c = 0; c < closeness.size(); ++c) {
      const figure f = over_tasks(one.tasks[c]);
      std::printf(" %s |", (c == closeness_of_bars ? interval_text(f, most) : count_text(f.value, most)).c_str());
    }
    const lengths& own = find(all, names::own).tasks[closeness_of_bars];
    std::printf(" %.0f %% | %zu of %zu |\n", 100 * share_of_wins(one.tasks[closeness_of_bars], own),
                one.tasks[closeness_of_bars].censored(), own.counts.size());
  }
}

inline void print_tasks(const std::vector<outcome>& all, const table& data, std::size_t most) {
  std::printf("\n| until within 2 %% |");
  for (const timed_task& task : data.tasks) std::printf(" %s |", task.name.c_str());
  std::printf("\n|---|");
  for (std::size_t i = 0; i < data.tasks.size(); ++i) std::printf("---|");
  std::printf("\n");
  for (const outcome& one : all) {
    std::printf("| %s |", one.name.c_str());
    std::vector<std::size_t> seeds(one.tasks[0].seeds());
    for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = i;
    for (std::size_t i = 0; i < data.tasks.size(); ++i)
      std::printf(" %s |", count_text(one.tasks[closeness_of_bars].of_task(i, seeds), most).c_str());
    std::printf("\n");
  }
}

inline void print_sums(const std::vector<outcome>& all, std::size_t most) {
  std::printf(
      "\n| scheduler, one model | sum within 10 %% | 5 %% | 2 %% | runs not within 2 %% |\n|---|---|---|---|---|\n");
  for (const outcome& one : all) {
    std::printf("| %s |", one.name.c_str());
    for (std::size_t c = 0; c <= closeness_of_bars; ++c) {
      const figure f = over_tasks(one.sums[c]);
      std::printf(" %s |", (c == closeness_of_bars ? interval_text(f, most) : count_text(f.value, most)).c_str());
    }
    std::printf(" %zu of %zu |\n", one.sums[closeness_of_bars].censored(), one.sums[closeness_of_bars].counts.size());
  }
}

inline void print_study(const accuracy_study& study, const table& data, const std::vector<std::size_t>& learned) {
  std::printf("\n| model of, on points of |");
  for (const timed_task& task : data.tasks) std::printf(" %s |", task.name.c_str());
  std::printf(" learned family |\n|---|");
  for (std::size_t i = 0; i <= data.tasks.size(); ++i) std::printf("---|");
  std::printf("\n");
  for (std::size_t from = 0; from < data.tasks.size(); ++from) {
    std::printf("| %s |", data.tasks[from].name.c_str());
    for (std::size_t to = 0; to < data.tasks.size(); ++to) std::printf(" %.1f %% |", 100 * study.single.at(from, to));
    std::printf(" %zu |\n", learned[from]);
  }
  std::printf("| all %s |", names::count_word(data.tasks.size()).c_str());
  for (const double share : study.of_all) std::printf(" %.1f %% |", 100 * share);
  std::printf(" |\n");
}

/// Prints a bar: at most so many measurements, by the median over tasks and seeds.
inline void print_bar(const char* what, const outcome& arm, double bar, std::size_t most) {
  const figure f = over_tasks(arm.tasks[closeness_of_bars]);
  std::printf("- %s, at most %.0f: %s with \"%s\": %s\n", what, bar, interval_text(f, most).c_str(), arm.name.c_str(),
              f.value <= bar ? "met" : "missed");
}

namespace detail {

inline void claim(const char* what, const std::string& found, bool holds) {
  std::printf("- %s: %s. %s\n", what, found.c_str(), holds ? "Holds." : "Does not hold.");
}

inline void claims_of_accuracy(const accuracy_study& study, const table& data) {
  std::size_t worse = 0, better = 0;
  std::string names_of_worse;
  for (std::size_t i = 0; i < data.tasks.size(); ++i) {
    const std::vector<double>& gains = study.gain[i];
    const figure f = resampled(gains.size(), [&](std::span<const std::size_t> chosen) {
      double sum = 0;
      for (const std::size_t seed : chosen) sum += gains[seed];
      return sum / static_cast<double>(chosen.size());
    });
    if (f.high < 0) ++worse, names_of_worse += " " + data.tasks[i].name;
    if (f.low > 0) ++better;
  }
  claim("One model for everything orders some tasks worse than a model of their own (figure 1)",
        std::to_string(worse) + " of " + std::to_string(data.tasks.size()) + " tasks are ordered worse" +
            (worse > 0 ? " (" + names_of_worse.substr(1) + ")" : "") + ", and " + std::to_string(better) + " better",
        worse > 0);
  double least = 1, most = 0;
  for (std::size_t i = 0; i < data.tasks.size(); ++i)
    for (std::size_t j = 0; j < data.tasks.size(); ++j)
      if (i != j) least = std::min(least, study.single.at(i, j)), most = std::max(most, study.single.at(i, j));
  char text[96];
  std::snprintf(text, sizeof text, "from %.1f %% to %.1f %% of pairs", 100 * least, 100 * most);
  claim("How well tasks predict each other differs widely, by more than 10 points (figure 2)", text,
        most - least > 0.1);
}

}  // namespace detail

/// Each claim of the paper that the table can be asked, and those that it cannot.
inline void print_claims(const std::vector<outcome>& tasks, const std::vector<outcome>& sums,
                         const accuracy_study& study, const table& data) {
  using detail::claim;
  detail::claims_of_accuracy(study, data);
  const auto faster = [&](const char* what, const char* a, const char* b) {
    const figure f = ratio(find(tasks, b).tasks[closeness_of_bars], find(tasks, a).tasks[closeness_of_bars]);
    claim(what, "\"" + std::string(b) + "\" needs " + factor_text(f) + " times as many measurements as \"" + a + "\"",
          f.low > 1);
  };
  faster("Tasks of a family teach each other: sharing needs fewer measurements than a model per task", names::one,
         names::own);
  faster("Families beat one model for everything", names::learned, names::one);
  faster("One model that is told the family is beaten by a model per family", names::learned, names::knowing);
  std::string growth;
  std::vector<double> factors;
  for (std::size_t c = 0; c < closeness.size(); ++c) {
    const figure f = ratio(find(tasks, names::own).tasks[c], find(tasks, names::one).tasks[c]);
    factors.push_back(f.value);
    growth += (c == 0 ? "" : ", ") + std::to_string(static_cast<int>(std::lround(100 * closeness[c]))) +
              " %: " + factor_text(f);
  }
  claim("The gain by sharing grows as the best comes nearer (figure 7)", growth, std::ranges::is_sorted(factors));
  for (const scheduler order : {scheduler::round_robin, scheduler::gradient, scheduler::slowest}) {
    const std::string name = name_of(order);
    const figure f = ratio(find(sums, name + ", foresee 0").sums[closeness_of_bars],
                           find(sums, name + ", foresee 0.25").sums[closeness_of_bars]);
    claim(("Foreseeing with a share of 0.25 saves measurements of the sum, by the scheduler " + name).c_str(),
          "without it " + factor_text(f) + " times as many", f.low > 1);
  }
  const figure wasted = ratio(find(sums, "the slowest task, foresee 0").sums[closeness_of_bars],
                              find(sums, "round robin, foresee 0").sums[closeness_of_bars]);
  claim("Measuring the slowest task first wastes measurements (section 3.2)",
        "it needs " + factor_text(wasted) + " times as many as turns", wasted.low > 1);
  char text[128];
  std::snprintf(text, sizeof text, "%.2f %% above the best on average, and %.2f %% with a model per task",
                100 * find(tasks, names::one).last_regret, 100 * find(tasks, names::own).last_regret);
  claim("With the same budget, sharing ends at faster kernels (tables 5 and 6)", text,
        find(tasks, names::one).last_regret < find(tasks, names::own).last_regret);
  std::printf(
      "- Families by core operator are more accurate than by sequence or number (table 2): cannot be asked. All tasks have one core "
      "operator, one sequence and one number of operators, so that each key gives one family.\n");
  std::printf("- Networks run faster, end to end: cannot be asked of a table of kernels.\n");
}

}  // namespace families
