#include "commands.hpp"
#include "stored_errors.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/measure/store.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/processor.hpp>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

namespace {

constexpr std::size_t short_id = 8;  // of 32 digits; `show` prints every entry whose id begins with them

std::string file_of(const options& given) {
  return given.store_file.empty() ? c::default_store_path() : given.store_file;
}

/// Opens a store that must exist. A missing file is opened in mode read_only: that throws and does not create it.
c::cost_store existing(const options& given, c::store_mode mode) {
  const std::string file = file_of(given);
  std::error_code ignored;
  return c::cost_store(file, std::filesystem::exists(file, ignored) ? mode : c::store_mode::read_only);
}

c::store_filter filter_of(const options& given) {
  c::store_filter which;
  which.backend = given.store_backend;
  which.text = given.store_word;
  which.refused = given.refused;
  if (given.older_than_days >= 0)
    which.before_s = static_cast<std::int64_t>(std::time(nullptr)) - std::int64_t{86400} * given.older_than_days;
  return which;
}

std::string counts_of(const c::store_count& count) {
  return count_of(count.costs, "cost") + " and " + count_of(count.runs, "end-to-end result");
}

std::string ms(double number) { return format_number("%.4f", number); }

/// Half of the confidence interval as a share of the median: "±0.3 %".
std::string interval_of(const c::stored_cost& cost) {
  const double half = (cost.sure_high_ms - cost.sure_low_ms) / 2;
  return cost.median_ms > 0 ? format_number("±%.1f %%", 100 * half / cost.median_ms) : "";
}

/// As in an export: the number of a variant, or the text of another configuration.
c::json to_json(const c::configuration& how) {
  if (const std::optional<std::size_t> number = how.number()) return *number;
  return how.text();
}

c::json to_json(const c::stored_entry& e) {
  return {{"id", e.id},
          {"label", e.cost.label},
          {"backend", e.key.backend},
          {"library", e.key.library},
          {"pattern", e.key.pattern},
          {"choice", to_json(e.key.choice)},
          {"kernel", e.cost.kernel},
          {"refusal", e.cost.refusal},
          {"median_ms", c::rounded(e.cost.median_ms)},
          {"low_ms", c::rounded(e.cost.low_ms)},
          {"high_ms", c::rounded(e.cost.high_ms)},
          {"sure_low_ms", c::rounded(e.cost.sure_low_ms)},
          {"sure_high_ms", c::rounded(e.cost.sure_high_ms)},
          {"samples", e.cost.samples},
          {"how", e.cost.how},
          {"when_s", e.cost.when_s},
          {"machine", e.key.machine},
          {"threads", e.key.threads},
          {"waiting", e.key.waiting},
          {"precision", e.key.precision}};
}

c::json to_json(const c::stored_run_entry& e) {
  return {{"id", e.id},
          {"label", e.run.label},
          {"name", e.run.name},
          {"median_ms", c::rounded(e.run.median_ms)},
          {"low_ms", c::rounded(e.run.low_ms)},
          {"high_ms", c::rounded(e.run.high_ms)},
          {"runs", e.run.runs},
          {"ratio", c::rounded(e.run.ratio)},
          {"ratio_low", c::rounded(e.run.ratio_low)},
          {"ratio_high", c::rounded(e.run.ratio_high)},
          {"when_s", e.run.when_s},
          {"placement", e.key.placement},
          {"against", e.run.against},
          {"libraries", e.key.libraries},
          {"machine", e.key.machine},
          {"threads", e.key.threads},
          {"waiting", e.key.waiting},
          {"precision", e.key.precision}};
}

template <class Entry>
c::json to_json(const std::vector<Entry>& all) {
  c::json list = c::json::array();
  for (const Entry& e : all) list.push_back(to_json(e));
  return list;
}

/// Replaces control characters: the text of an imported store must not move the terminal's cursor.
std::string plain(std::string text) {
  for (char& letter : text)
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) letter = ' ';
  return text;
}

std::vector<c::stored_entry> plain(std::vector<c::stored_entry> all) {
  for (c::stored_entry& e : all)
    for (std::string* text : {&e.key.machine, &e.key.waiting, &e.key.precision, &e.key.backend, &e.key.library,
                              &e.key.pattern, &e.cost.label, &e.cost.kernel, &e.cost.refusal, &e.cost.how})
      *text = plain(std::move(*text));
  return all;
}

std::vector<c::stored_run_entry> plain(std::vector<c::stored_run_entry> all) {
  for (c::stored_run_entry& e : all)
    for (std::string* text : {&e.key.placement, &e.key.machine, &e.key.waiting, &e.key.precision, &e.key.libraries,
                              &e.run.label, &e.run.name, &e.run.against})
      *text = plain(std::move(*text));
  return all;
}

void note_damaged(const c::cost_store& store, const options& given) {
  if (store.damaged() != 0 && !given.quiet)
    complain("note: " + store.path() + ": damaged entries are left out; see collage store check");
}

int list(const options& given) {
  const c::cost_store store = existing(given, c::store_mode::read_only);
  const auto [costs, errors] = divided(store.list(filter_of(given)));
  const std::vector<c::stored_run_entry> runs = store.list_runs(filter_of(given));
  note_damaged(store, given);
  if (given.json) {
    print(c::to_text({{"store", store.path()},
                      {"costs", to_json(costs)},
                      {"errors", errors_to_json(errors)},
                      {"runs", to_json(runs)}}));
    return 0;
  }
  std::string page;
  if (!costs.empty()) {
    table entries({{"id"},
                   {"backend"},
                   {"group", align::left, 16},
                   {"kernel", align::left, 10},
                   {"threads", align::right},
                   {"ms", align::right},
                   {"95 %", align::right},
                   {"measured"}});
    for (const c::stored_entry& e : plain(costs)) {
      const bool refused = !e.cost.refusal.empty();
      entries.add({{e.id.substr(0, short_id), colour::dim},
                   e.key.backend,
                   {e.cost.label, colour::bold},
                   e.cost.kernel,
                   std::to_string(e.key.threads),
                   refused ? cell("refused", colour::red) : cell(ms(e.cost.median_ms)),
                   refused ? "" : interval_of(e.cost),
                   {day_of(e.cost.when_s), colour::dim}});
    }
    page += entries.text() + "\n";
  }
  if (!runs.empty()) {
    table entries({{"id"},
                   {"network", align::left, 16},
                   {"origin", align::left, 10},
                   {"threads", align::right},
                   {"ms", align::right},
                   {"to fastest other", align::right},
                   {"95 % interval", align::right},
                   {"measured"}});
    for (const c::stored_run_entry& e : plain(runs))
      entries.add({{e.id.substr(0, short_id), colour::dim},
                   {e.run.label, colour::bold},
                   e.run.name,
                   std::to_string(e.key.threads),
                   ms(e.run.median_ms),
                   c::detail::ratio_text(e.run.ratio),
                   c::detail::ratio_text(e.run.ratio_low) + " " + c::detail::ratio_text(e.run.ratio_high),
                   {day_of(e.run.when_s), colour::dim}});
    page += entries.text() + "\n";
  }
  if (!errors.empty()) page += table_of_errors(plain(errors)) + "\n";
  const std::string counted = errors.empty()
                                  ? counts_of({costs.size(), runs.size()})
                                  : count_of(costs.size(), "cost") + ", " + count_of(errors.size(), "error") +
                                        " of values and " + count_of(runs.size(), "end-to-end result");
  print(page + wrap(counted + " in " + store.path(), 2));
  return 0;
}

/// "  name      words", with the words wrapped in their own column.
std::string line_of(const char* name, const std::string& words) {
  constexpr std::size_t column = 14;
  std::string text = wrap(words.empty() ? "-" : words, column, column);
  return text.replace(2, std::string_view(name).size(), name);
}

std::string where_of(const std::string& machine, int threads, const std::string& waiting,
                     const std::string& precision) {
  return machine + ", " + count_of(static_cast<std::size_t>(threads), "thread") +
         (waiting.empty() ? "" : ", waiting " + waiting) + (precision.empty() ? "" : ", " + precision);
}

int show(const options& given) {
  const c::cost_store store = existing(given, c::store_mode::read_only);
  const auto [costs, errors] = divided(store.list(filter_of(given)));
  const std::vector<c::stored_run_entry> runs = store.list_runs(filter_of(given));
  note_damaged(store, given);
  if (costs.empty() && errors.empty() && runs.empty())
    throw c::error(c::error_kind::invalid_argument,
                   "is neither the beginning of an id nor part of a label, kernel or pattern",
                   store.path() + ": " + given.store_word, "see collage store list");
  if (given.json) {
    print(c::to_text({{"store", store.path()},
                      {"costs", to_json(costs)},
                      {"errors", errors_to_json(errors)},
                      {"runs", to_json(runs)}}));
    return 0;
  }
  std::string page;
  const auto heading = [&page](const std::string& label, const std::string& id) {
    page += (page.empty() ? "" : "\n") + paint(colour::bold, label) + "\n" + line_of("id", id);
  };
  for (const c::stored_entry& e : plain(costs)) {
    heading(e.cost.label, e.id);
    page += line_of("backend", e.key.backend + ", " + e.key.library);
    page += line_of("pattern",
                    e.key.pattern + (e.key.choice.number() ? ", variant " : ", configuration ") + e.key.choice.text());
    page += line_of("kernel", e.cost.kernel);
    if (!e.cost.refusal.empty()) page += line_of("refused", e.cost.refusal);
    else {
      page += line_of("median", ms(e.cost.median_ms) + " ms; with 95 % confidence between " + ms(e.cost.sure_low_ms) +
                                    " and " + ms(e.cost.sure_high_ms));
      page += line_of("samples", std::to_string(e.cost.samples) + ", the middle 80 % between " + ms(e.cost.low_ms) +
                                     " and " + ms(e.cost.high_ms) + " ms");
    }
    page += line_of("on", where_of(e.key.machine, e.key.threads, e.key.waiting, e.key.precision));
    page += line_of("measured",
                    time_of(e.cost.when_s, "%Y-%m-%d %H:%M:%S UTC") + (e.cost.how.empty() ? "" : ", " + e.cost.how));
  }
  for (const c::stored_entry& e : plain(errors)) {
    heading(e.cost.label, e.id);
    for (const auto& [name, words] : lines_of_error(e)) page += line_of(name, words);
    page += line_of("measured",
                    time_of(e.cost.when_s, "%Y-%m-%d %H:%M:%S UTC") + (e.cost.how.empty() ? "" : ", " + e.cost.how));
  }
  for (const c::stored_run_entry& e : plain(runs)) {
    heading(e.run.label, e.id);
    page += line_of("origin", e.run.name);
    page += line_of("compared", e.key.placement);
    page += line_of("libraries", e.key.libraries);
    page += line_of("median", ms(e.run.median_ms) + " ms; the middle 80 % of " + count_of(e.run.runs, "run") +
                                  " between " + ms(e.run.low_ms) + " and " + ms(e.run.high_ms));
    if (!e.run.against.empty())
      page += line_of("ratio", c::detail::ratio_text(e.run.ratio) + " to " + e.run.against +
                                   "; with 95 % confidence between " + c::detail::ratio_text(e.run.ratio_low) +
                                   " and " + c::detail::ratio_text(e.run.ratio_high));
    page += line_of("on", where_of(e.key.machine, e.key.threads, e.key.waiting, e.key.precision));
    page += line_of("measured", time_of(e.run.when_s, "%Y-%m-%d %H:%M:%S UTC"));
  }
  print(page);
  return 0;
}

int prune(const options& given) {
  c::store_filter which = filter_of(given);
  if (given.other_machines) which.other_than_machine = c::processor_name();
  const bool filters = given.older_than_days >= 0 || given.other_machines || given.refused || !which.backend.empty();
  if (!filters && !given.damaged)
    throw c::error(c::error_kind::invalid_argument, "no condition is given", "store prune",
                   "give --older-than, --backend, --refused, --other-machines or --damaged");
  c::cost_store store = existing(given, c::store_mode::read_write);
  const std::size_t damaged = given.damaged ? store.remove_damaged() : 0;
  const c::store_count gone = filters ? store.remove(which) : c::store_count{};
  if (given.json)
    print(c::to_text({{"store", store.path()}, {"costs", gone.costs}, {"runs", gone.runs}, {"damaged", damaged}}));
  else
    print(wrap("removed " + counts_of(gone) +
                   (given.damaged ? ", and " + std::to_string(damaged) + " damaged," : std::string()) + " from " +
                   store.path(),
               2));
  return 0;
}

int export_to_file(const options& given) {
  const c::cost_store store = existing(given, c::store_mode::read_only);
  c::check_replaces_no_input(given.store_word, store.path(), "the store");
  const std::string text = store.export_json();
  const c::store_count entries = store.check().entries;
  c::write_file(given.store_word, text);
  note_damaged(store, given);
  if (given.json)
    print(c::to_text(
        {{"store", store.path()}, {"file", given.store_word}, {"costs", entries.costs}, {"runs", entries.runs}}));
  else print(wrap("wrote " + counts_of(entries) + " of " + store.path() + " to " + given.store_word, 2));
  return 0;
}

/// Prints the result of import and merge.
int tell(const options& given, const c::cost_store& store, const c::store_merge& became) {
  if (given.json)
    print(c::to_text({{"store", store.path()},
                      {"file", given.store_word},
                      {"added", became.added},
                      {"replaced", became.replaced},
                      {"kept", became.kept},
                      {"damaged", became.damaged}}));
  else
    print(wrap("added " + std::to_string(became.added) + " of " + given.store_word + " to " + store.path() +
                   "; replaced " + std::to_string(became.replaced) + " older entries, kept " +
                   std::to_string(became.kept) + " that are as new or newer" +
                   (became.damaged == 0 ? "" : "; left out " + std::to_string(became.damaged) + " damaged ones"),
               2));
  return 0;
}

int import_from_file(const options& given) {
  const std::string text = c::read_file(given.store_word);
  c::cost_store store(file_of(given));
  return tell(given, store, store.import_json(text, given.store_word));
}

int merge(const options& given) {
  {
    const c::cost_store other(given.store_word, c::store_mode::read_only);  // before the user's store is created
  }
  c::cost_store store(file_of(given));
  return tell(given, store, store.merge_from(given.store_word));
}

int check_store(const options& given) {
  const c::cost_store store = existing(given, c::store_mode::read_write);
  const c::store_report report = store.check();
  const bool sound = report.problems.empty();
  if (given.json) {
    print(c::to_text({{"store", store.path()},
                      {"sound", sound},
                      {"problems", report.problems},
                      {"notes", report.notes},
                      {"costs", report.entries.costs},
                      {"runs", report.entries.runs},
                      {"refused", report.refused},
                      {"damaged", report.damaged},
                      {"bytes", report.bytes},
                      {"schema", report.schema},
                      {"journal", report.journal}}));
    return sound ? 0 : 1;
  }
  std::string page =
      store.path() + "  " + (sound ? paint(colour::green, "sound") : paint(colour::red, "damaged")) + "\n";
  page += wrap(count_of(report.entries.costs, "cost") + " (" + std::to_string(report.refused) + " refused) and " +
                   count_of(report.entries.runs, "end-to-end result"),
               4, 2);
  page += wrap(format_number("%.1f kB", static_cast<double>(report.bytes) / 1000) + ", schema " +
                   std::to_string(report.schema) + ", " +
                   (report.journal == "wal" ? "write-ahead log" : "journal: " + report.journal),
               4, 2);
  for (const std::string& text : report.problems) page += wrap(paint(colour::red, "problem") + ": " + text, 4, 2);
  for (const std::string& text : report.notes) page += wrap("note: " + text, 4, 2);
  print(page);
  return sound ? 0 : 1;
}

}  // namespace

int store(const options& given) {
  constexpr std::pair<const char*, int (*)(const options&)> actions[] = {{"list", list},
                                                                         {"show", show},
                                                                         {"prune", prune},
                                                                         {"export", export_to_file},
                                                                         {"import", import_from_file},
                                                                         {"merge", merge},
                                                                         {"check", check_store}};
  for (const auto& [name, action] : actions)
    if (given.store_action == name) return action(given);
  throw c::error(c::error_kind::invalid_argument, "there is no such command", "store " + given.store_action,
                 "see collage store --help");
}

}  // namespace program
