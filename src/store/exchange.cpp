// Exports, imports, merges and checks stores.
#include "parts.hpp"

#include <sqlite3.h>

#include <collage/error.hpp>
#include <collage/io/json.hpp>
#include <collage/measure/store.hpp>
#include <collage/run/configuration.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail::store_parts {

namespace {

struct to_json {
  json& object;
  void text(const char* name, const std::string& text) { object[name] = text; }
  template <class Int>
  void whole(const char* name, const Int& number, std::int64_t, std::int64_t) {
    object[name] = number;
  }
  // Numbers stay numbers, as they were before there were texts.
  void configured(const char* name, const configuration& how) {
    if (const std::optional<std::size_t> number = how.number()) object[name] = *number;
    else object[name] = how.text();
  }
  void number(const char* name, double number) { object[name] = number; }
  // As text: readers of JSON commonly keep numbers as doubles, which do not hold 64 bits.
  void words(const char* name, const std::vector<std::uint64_t>& words) {
    std::string text;
    for (const std::uint64_t w : words) text += detail::hex_of(w);
    object[name] = text;
  }
  void hash(const char* name, std::uint64_t hash) { object[name] = detail::hex_of(hash); }
};

struct from_json {
  const json_place& object;
  void text(const char* name, std::string& text) const {
    const json_place at = object[name];
    text = at.text();
    if (!is_utf8(text)) at.wrong("has a zero byte");
  }
  template <class Int>
  void whole(const char* name, Int& number, std::int64_t least, std::int64_t most) const {
    number =
        static_cast<Int>(object[name].natural(static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most)));
  }
  void configured(const char* name, configuration& how) const {
    const json_place at = object[name];
    if (!at.is_text()) {
      how = configuration(static_cast<std::size_t>(at.natural(0, configuration::largest)));
      return;
    }
    const std::string text = at.text();
    const std::optional<configuration> found = configuration::of(text);
    if (!found)
      at.wrong("is " + detail::on_one_line(text) + ", which is no configuration: " + configuration::judge(text).rule);
    how = *found;
  }
  void number(const char* name, double& number) const {
    const json_place at = object[name];
    number = at.number() + 0.0;
    if (!std::isfinite(number) || number < 0) at.wrong("is not a finite number of at least 0");
  }
  void words(const char* name, std::vector<std::uint64_t>& words) const {
    const json_place at = object[name];
    const std::string hex = at.text();
    if (hex.size() % 16 != 0) at.wrong("is not made of words of 16 hexadecimal digits");
    for (std::size_t i = 0; i < hex.size(); i += 16) {
      const std::optional<std::uint64_t> word = word_of(std::string_view(hex).substr(i, 16));
      if (!word) at.wrong("is not made of words of 16 hexadecimal digits");
      words.push_back(*word);
    }
  }
  void hash(const char* name, std::uint64_t& hash) const {
    const json_place at = object[name];
    const std::optional<std::uint64_t> word = word_of(at.text());
    if (!word) at.wrong("is not 16 hexadecimal digits");
    hash = *word;
  }
};

constexpr const char* export_format = "collage costs";
constexpr std::uint64_t export_version = 1;
constexpr const char* export_anew = "export the store again";

template <class Table>
json list_to_json(const std::vector<entry<Table>>& all) {
  json list = json::array();
  for (const entry<Table>& e : all) {
    json object = json::object();
    to_json fields{object};
    Table::each_of_key(e.key, fields);
    Table::each_of_value(e.value, fields);
    list.push_back(std::move(object));
  }
  return list;
}

template <class Table>
std::vector<entry<Table>> list_from_json(const json_place& list) {
  std::vector<entry<Table>> all(list.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const json_place object = list[i];
    from_json fields{object};
    Table::each_of_key(all[i].key, fields);
    Table::each_of_value(all[i].value, fields);
  }
  return all;
}

void check_pages(const opened_store& s, store_report& report) {
  s.limit_steps(20);
  const statement_handle statement = s.db.prepare("PRAGMA integrity_check(10)");
  while (s.db.step(statement.get())) {
    const unsigned char* said = sqlite3_column_text(statement.get(), 0);
    std::string text = said == nullptr ? "" : as_utf8(reinterpret_cast<const char*>(said));
    std::ranges::replace(text, '\n', ' ');
    if (text != "ok") report.problems.push_back("its pages are damaged: " + text);
  }
}

}  // namespace

}  // namespace detail::store_parts

namespace parts = detail::store_parts;

store_merge cost_store::merge_from(const std::string& other) {
  // Read whole before ours is locked: it may be the same file.
  const state from(other, store_mode::read_only);
  std::size_t damaged = 0;
  const auto costs = parts::list_entries<parts::costs_table>(from, {}, &damaged);
  const auto runs = parts::list_entries<parts::runs_table>(from, {}, &damaged);
  const std::lock_guard lock(state_->mutex);
  store_merge became = parts::merge_entries(*state_, costs, runs);
  became.damaged = damaged;
  return became;
}

std::string cost_store::export_json() const {
  const std::lock_guard lock(state_->mutex);
  // One transaction, or another process's merge could show in one list and not in the other.
  parts::transaction reading(state_->db, "BEGIN");
  const json made = {{"format", parts::export_format},
                     {"version", parts::export_version},
                     {"costs", parts::list_to_json(parts::list_entries<parts::costs_table>(*state_, {}))},
                     {"runs", parts::list_to_json(parts::list_entries<parts::runs_table>(*state_, {}))}};
  reading.commit();
  return to_text(made);
}

store_merge cost_store::import_json(std::string_view text, const std::string& name) {
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::parse_error& e) {
    throw error(error_kind::invalid_argument, "is not JSON: error at byte " + std::to_string(e.byte), name,
                parts::export_anew);
  } catch (const json::exception&) {
    throw error(error_kind::invalid_argument, "is not JSON: a number is out of range", name, parts::export_anew);
  }
  if (!parsed.is_object() || !parsed.contains("format") || parsed["format"] != parts::export_format)
    throw error(error_kind::invalid_argument, "is not an export of a store", name,
                "take a file from collage store export");
  const json_place top(parsed, name, parts::export_anew);
  if (const std::uint64_t version = top["version"].natural(0, ~std::uint64_t{0}); version != parts::export_version)
    throw error(error_kind::invalid_argument,
                "has version " + std::to_string(version) + " of the export format, which is not version " +
                    std::to_string(parts::export_version),
                name, parts::export_anew);
  const auto costs = parts::list_from_json<parts::costs_table>(top["costs"]);
  const auto runs = parts::list_from_json<parts::runs_table>(top["runs"]);
  const std::lock_guard lock(state_->mutex);
  return parts::merge_entries(*state_, costs, runs);
}

store_report cost_store::check() const {
  const std::lock_guard lock(state_->mutex);
  const state& s = *state_;
  store_report report;
  report.notes = s.notes;
  if (!s.not_writable.empty()) report.notes.push_back(s.not_writable);
  report.journal = s.journal;
  const auto trying = [&report](const auto& part) {
    try {
      part();
    } catch (const parts::damaged_store& e) { report.problems.emplace_back(e.what()); }
  };
  trying([&] { parts::check_pages(s, report); });
  trying([&] {
    const auto costs = parts::list_entries<parts::costs_table>(s, {}, &report.damaged);
    report.entries.costs = costs.size();
    for (const auto& e : costs) report.refused += e.value.refusal.empty() ? 0U : 1U;
  });
  trying([&] { report.entries.runs = parts::list_entries<parts::runs_table>(s, {}, &report.damaged).size(); });
  trying([&] { report.schema = static_cast<int>(s.db.number("PRAGMA user_version")); });
  if (report.damaged != 0)
    report.problems.push_back(std::to_string(report.damaged) + (report.damaged == 1 ? " entry is" : " entries are") +
                              " damaged; remove " + (report.damaged == 1 ? "it" : "them") +
                              " with collage store prune --damaged: damaged entries are measured again when needed");
  std::error_code ignored;
  for (const char* part : {"", "-wal"})
    if (const std::filesystem::path file = s.real + part; std::filesystem::exists(file, ignored))
      report.bytes += std::filesystem::file_size(file, ignored);
  return report;
}

}  // namespace collage::inline v0
