#include "report.hpp"

#include "terminal.hpp"

#include <algorithm>

namespace program {

namespace c = collage;

std::string runs_table(const c::plan& made, const std::vector<c::plan_run>& runs) {
  return c::detail::runs_table(made, runs, paint);
}

void note_spread(const std::vector<c::plan_run>& runs) {
  const auto spread =
      std::find_if(runs.begin(), runs.end(), [](const c::plan_run& r) { return r.high_ms > 1.5 * r.low_ms; });
  if (spread != runs.end())
    complain("note: the times of " + spread->name + " vary from " + format_time(spread->low_ms) + " to " +
             format_time(spread->high_ms) + "; end other programs that use the processors, and repeat");
}

void note_slower(const c::plan& made, double median_ms) {
  if (made.runs.empty() || median_ms <= 1.5 * made.runs[0].median_ms) return;
  complain("note: the plan took " + format_time(median_ms) + ", but " + format_time(made.runs[0].median_ms) +
           " when it was made; end other programs that use the processors, or tune again");
}

std::string arena_text(const c::dynamic_engine& engine) {
  const auto bytes = static_cast<double>(engine.arena_bytes()), least = static_cast<double>(engine.arena_lower_bound());
  return "arena of " + format_number("%.1f MB", bytes / 1e6) + ", " +
         format_number("%.3f", least > 0 ? bytes / least : 1) + " times the lower bound of " +
         format_number("%.1f MB", least / 1e6) + " (the most that one step uses)";
}
void add_arena(c::json& to, const c::dynamic_engine& engine) {
  to["arena_bytes"] = engine.arena_bytes();
  to["arena_lower_bound"] = engine.arena_lower_bound();
}

}  // namespace program
