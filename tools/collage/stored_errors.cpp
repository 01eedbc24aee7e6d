#include "stored_errors.hpp"

#include "table.hpp"
#include "terminal.hpp"

#include <collage/place/kept_errors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <string_view>

namespace program {

namespace c = collage;

namespace {

/// A squared relative error as people read it: "0.1724 %".
std::string percent_of(double squared) {
  return std::isfinite(squared) ? format_number("%.4f %%", 100 * std::sqrt(squared)) : "not finite";
}

c::json number_or_null(double number) { return std::isfinite(number) ? c::json(number) : c::json(); }

}  // namespace

std::string time_of(std::int64_t when_s, const char* format) {
  const auto when = static_cast<std::time_t>(when_s);
  std::tm parts{};
  char text[64];
  if (gmtime_r(&when, &parts) == nullptr || std::strftime(text, sizeof(text), format, &parts) == 0) return "?";
  return text;
}
std::string day_of(std::int64_t when_s) { return time_of(when_s, "%Y-%m-%d"); }

listed_costs divided(std::vector<c::stored_entry> all) {
  const auto errors =
      std::stable_partition(all.begin(), all.end(), [](const c::stored_entry& e) { return !c::holds_error(e.key); });
  listed_costs two;
  two.errors.assign(std::make_move_iterator(errors), std::make_move_iterator(all.end()));
  all.erase(errors, all.end());
  two.costs = std::move(all);
  return two;
}

c::json errors_to_json(const std::vector<c::stored_entry>& errors) {
  c::json list = c::json::array();
  for (const c::stored_entry& e : errors) {
    const c::value_error error = c::from_stored(e.cost);
    list.push_back({{"id", e.id},
                    {"label", e.cost.label},
                    {"rounding", e.key.precision},
                    {"nmse", number_or_null(error.nmse)},
                    {"worst", number_or_null(error.worst)},
                    {"own", error.own},
                    {"samples", error.samples},
                    {"when_s", e.cost.when_s}});
  }
  return list;
}

std::string table_of_errors(const std::vector<c::stored_entry>& errors) {
  table entries({{"id"},
                 {"value", align::left, 16},
                 {"stored as", align::left, 10},
                 {"samples", align::right},
                 {"error", align::right},
                 {"worst", align::right},
                 {"measured"}});
  constexpr std::size_t short_id = 8;
  for (const c::stored_entry& e : errors) {
    const c::value_error error = c::from_stored(e.cost);
    entries.add({{e.id.substr(0, short_id), colour::dim},
                 {e.cost.label, colour::bold},
                 e.key.precision,
                 std::to_string(error.samples),
                 percent_of(error.nmse),
                 percent_of(error.worst),
                 {day_of(e.cost.when_s), colour::dim}});
  }
  return entries.text();
}

std::vector<std::pair<const char*, std::string>> lines_of_error(const c::stored_entry& e) {
  const c::value_error error = c::from_stored(e.cost);
  const std::string samples = std::to_string(error.samples) + (error.samples == 1 ? " sample" : " samples");
  return {{"stored as", e.key.precision},
          {"error", percent_of(error.nmse) + " at the outputs, on " + samples},
          {"worst", percent_of(error.worst) + ", of one sample"},
          {"itself", percent_of(error.own) + " of the value"}};
}

}  // namespace program
