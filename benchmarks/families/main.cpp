// Replays tuners on a table of search spaces, and says which claims of FamilySeer hold there.
//
// usage: families [TABLE] [--seeds N] [--measurements N] [--curves FILE] [--check]
//
// Prints Markdown that is the same to the byte each time. Where its own time went is printed on the error output. --check only checks
// the table. --curves writes the regret after each measurement.
// needs: tune
#include "claims.hpp"
#include "command_line.hpp"

#include <collage/io/file.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace families;

struct options {
  std::string table = FAMILIES_TABLE, curves;
  std::size_t seeds = 30, measurements = 128;  ///< of each task
  bool only_checks = false;
};

options read(int argc, char** argv) {
  options o;
  command_words words(argc, argv, "families",
                      "usage: families [TABLE] [--seeds N] [--measurements N] [--curves FILE] [--check]");
  while (words.is_left()) {
    const std::string_view word = words.take();
    if (word == "--seeds") o.seeds = words.number(10000);
    else if (word == "--measurements") o.measurements = words.number(10000);
    else if (word == "--curves") o.curves = words.value();
    else if (word == "--check") o.only_checks = true;
    else if (word.starts_with("-")) words.fail("there is no option '" + std::string(word) + "'");
    else o.table = word;
  }
  return o;
}

void print_table(const table& data) {
  const bool has_passes = data.passes > 1;
  std::string head = "| task |", rule = "|---|---|---|---|---|---|";
  for (const std::string_view size : data.kind->sizes) head += " " + std::string(size) + " |", rule += "---|";
  head += " points | best ms | within 2 % | median / best | worst / best |";
  if (has_passes) head += " points of the space | passes differ: median | 95 % of points |", rule += "---|---|---|";
  std::printf("%s\n%s\n", head.c_str(), rule.c_str());
  for (const timed_task& task : data.tasks) {
    const auto near = std::ranges::count_if(task.ms, [&](double ms) { return ms <= 1.02 * task.best; });
    std::printf("| %s |", task.name.c_str());
    for (const std::int64_t size : task.sizes) std::printf(" %d |", static_cast<int>(size));
    std::printf(" %zu | %.3f | %.2f %% | %.2f | %.1f |", task.points(), task.best,
                100 * static_cast<double>(near) / static_cast<double>(task.points()), median(task.ms) / task.best,
                *std::ranges::max_element(task.ms) / task.best);
    if (has_passes)
      std::printf(" %zu | %.1f %% | below %.1f %% |", task.all, 100 * median(task.spread),
                  100 * share_below(task.spread, 0.95));
    std::printf("\n");
  }
}

/// That all keys of the paper give one family here.
void check_keys(const table& data) {
  const tune::member_operator core = {data.kind->core, "", true}, relu = {"relu", "", false};
  const std::vector<tune::subgraph> groups(data.tasks.size(), {data.kind->name, {core, relu}});
  for (const auto& key : {tune::by_core_operator, tune::by_operator_sequence, tune::by_operator_count})
    if (tune::families_of(groups, key) != std::vector<std::size_t>(groups.size(), 0))
      throw collage::error(collage::error_kind::failure, "a key of the paper gives several families", "families");
}

/// That there is something to share, and to learn from.
void check_size(const table& data) {
  constexpr std::size_t least = 16;
  for (const timed_task& task : data.tasks)
    if (task.points() < least || data.tasks.size() < 2)
      throw collage::error(collage::error_kind::invalid_argument,
                           "a replay needs two tasks, and " + std::to_string(least) + " points of each", "families");
}

std::vector<outcome> outcomes_of(const table& data, const std::vector<arm>& arms, const limits& within,
                                 std::size_t seeds) {
  std::vector<outcome> all;
  for (const arm& how : arms) {
    all.push_back(outcome_of(data, how, within, seeds));
    std::fprintf(stderr, "%-45s training %6.1f s, ordering %6.1f s; measuring each point once would take %6.1f s\n",
                 how.name.c_str(), all.back().training_s, all.back().ordering_s, all.back().measuring_s);
  }
  return all;
}

void write_curves(const std::string& file, const std::vector<outcome>& all) {
  std::string text = "arm,measurements,regret\n";
  for (const outcome& one : all)
    for (std::size_t n = 0; n < one.regret.size(); ++n) {
      char line[128];
      std::snprintf(line, sizeof line, "\"%s\",%zu,%.6f\n", one.name.c_str(), n + 1, one.regret[n]);
      text += line;
    }
  collage::write_file(file, text);
}

int run(const options& o) {
  const table data = read_table(collage::read_file(o.table));
  print_table(data);
  if (o.only_checks) return 0;
  if (const std::string why = tune::cost_model::refusal(); !why.empty())
    throw collage::error(collage::error_kind::environment, why, "families");
  check_keys(data);
  check_size(data);
  const accuracy_study study = study_of(data, std::min<std::size_t>(o.seeds, 10));
  constexpr double least = 0.85;  // of pairs, for one learned family
  const std::vector<std::size_t> learned = tune::learned_families(study.single, least);
  print_study(study, data, learned);

  const limits within{.measurements = o.measurements * data.tasks.size()};
  const std::vector<outcome> tasks = outcomes_of(data, arms_of_tasks(learned), within, o.seeds);
  std::printf(
      "\nMeasurements of a task until its best time is within so much of the table's best: medians over tasks and %zu seeds, and "
      "95 %% intervals. Seeds win against \"%s\".\n\n",
      o.seeds, names::own);
  print_arms(tasks, o.measurements);
  print_tasks(tasks, data, o.measurements);
  const limits half{.measurements = within.measurements / 2};
  const std::vector<outcome> sums = outcomes_of(data, arms_of_sums(data.tasks.size()), half, o.seeds);
  print_sums(sums, half.measurements);

  std::printf("\nBars:\n\n");
  for (const std::string& name : {names::transfer(data.tasks.size()), std::string(names::warm)})
    print_bar("With a warm model", find(tasks, name), 5, o.measurements);
  for (const char* name : {names::one, names::cold_one, names::closed_form})
    print_bar("Without one", find(tasks, name), 25, o.measurements);
  std::printf("\nClaims of the paper:\n\n");
  print_claims(tasks, sums, study, data);
  if (!o.curves.empty()) write_curves(o.curves, tasks);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return status_of([&] { return run(read(argc, argv)); });
}
