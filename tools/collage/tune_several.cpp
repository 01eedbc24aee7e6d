#include "tune_several.hpp"

#if COLLAGE_HAS_ONNX

#include "backends.hpp"
#include "network.hpp"
#include "open_shapes.hpp"
#include "placing.hpp"
#include "signals.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/io/json.hpp>
#include <collage/place/tune_shapes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

namespace {

void refuse_what_several_shapes_lack(const options& given, const std::string& store) {
  const auto refuse = [](const char* what, const char* where, const char* remedy) {
    throw c::error(c::error_kind::invalid_argument, what, where, remedy);
  };
  if (!given.plan_file.empty())
    refuse("a plan is for one shape, and --shape names several", "--plan",
           "leave it out: the costs go to the store, where sessions and --place estimate find them");
  if (given.costs != c::placing_costs::measured)
    refuse("several shapes are tuned by measuring", "--place", "leave it out");
  if (!given.precision.empty() && given.precision != c::name_of(c::precisions::f32))
    refuse("several shapes are tuned in float32", "--precision", "leave it out, or tune one shape at a time");
  if (store.empty()) refuse("tuning for several shapes keeps its results there", "--store", "name a file");
}

std::string extents_text(const shape_space& space, std::span<const std::int64_t> extents) {
  std::string text;
  for (std::size_t i = 0; i < extents.size(); ++i)
    text += (text.empty() ? "" : ", ") + space.open()[i].name + "=" + std::to_string(extents[i]);
  return text;
}

c::json to_json(const options& given, const shape_space& space, const c::shape_tuning& made, const std::string& store) {
  c::json open = c::json::array(), shapes = c::json::array();
  for (const shape_space::open_extent& e : space.open())
    open.push_back({{"name", e.name}, {"values", e.values.text()}});
  for (const c::tuned_shape& t : made.shapes) {
    c::json extents;
    for (std::size_t i = 0; i < t.extents.size(); ++i) extents[space.open()[i].name] = t.extents[i];
    shapes.push_back({{"extents", extents},
                      {"median_ms", c::rounded(t.median_ms)},
                      {"loss_of_estimates", t.loss ? c::json(c::rounded(*t.loss)) : c::json()},
                      {"seconds", c::rounded(t.seconds)},
                      {"interrupted", t.is_interrupted}});
  }
  return {{"network", given.network},
          {"open", open},
          {"shapes", shapes},
          {"complete", made.is_complete},
          {"shapes_left", made.shapes_left},
          {"parts_left", made.parts_left},
          {"store", store}};
}

std::string page_of(const options& given, const shape_space& space, const c::shape_tuning& made,
                    const c::shape_tuning_options& how) {
  std::vector<c::detail::column> columns;
  for (const shape_space::open_extent& e : space.open()) columns.push_back({e.name, align::right});
  for (const char* title : {"ms", "estimates lost", "s"}) columns.push_back({title, align::right});
  table rows(columns);
  std::vector<c::tuned_shape> sorted = made.shapes;
  std::ranges::sort(sorted, {}, &c::tuned_shape::extents);
  bool is_cut_short = false;
  for (const c::tuned_shape& t : sorted) {
    std::vector<cell> row;
    for (const std::int64_t e : t.extents) row.push_back({std::to_string(e)});
    row.push_back({format_number("%.3f", t.median_ms)});
    row.push_back({t.loss ? format_number("%.1f %%", 100 * *t.loss) : "-"});
    row.push_back({format_number("%.1f", t.seconds)});
    rows.add(std::move(row));
    is_cut_short = is_cut_short || t.is_interrupted;
  }
  std::string page = paint(colour::bold, given.network) + "\n\n" + rows.text() + "\n";
  page +=
      wrap("\"estimates lost\" is how much longer the plan took that estimates gave before the shape was measured.", 0);
  const std::string percent = format_number("%.0f %%", 100 * how.tolerance);
  const bool has_ranges = std::ranges::any_of(space.open(), [](const auto& e) { return e.values.is_range(); });
  if (made.is_complete && has_ranges)
    page += wrap("Each range is covered: in the middle of each part between tuned shapes, estimates lost at most " +
                     percent + ", or there is no shape between.",
                 0);
  if (!made.is_complete) {
    std::string left;
    if (made.shapes_left != 0)
      left =
          std::to_string(made.shapes_left) + (made.shapes_left == 1 ? " shape was" : " shapes were") + " not tuned. ";
    if (made.parts_left != 0)
      left += "In " + std::to_string(made.parts_left) + (made.parts_left == 1 ? " part" : " parts") +
              " of the ranges no plan was compared. ";
    page += wrap("Tuning ended before all was done. " + left + "Repeat the command to continue.", 0);
  }
  if (is_cut_short)
    page += wrap("The budget ended the tuning of some shapes early. Repeat the command to continue.", 0);
  page += "\nThe costs are in " + how.how.store + ". Sessions and --place estimate use them.\n";
  return page;
}

}  // namespace

bool names_several_shapes(const options& given) {
  return std::ranges::any_of(shape_settings(given), [](const shape_setting& s) { return s.several() != nullptr; });
}

int tune_several(const options& given) {
  c::shape_tuning_options how;
  how.how = place_options_of(given);
  refuse_what_several_shapes_lack(given, how.how.store);
  const shape_space space(shape_settings(given), inputs_of(given));
  std::vector<c::extent_values> open;
  for (const shape_space::open_extent& e : space.open()) open.push_back(e.values);

  finishing watch(end_by_signal);  // measured costs are in the store by then
  progress_line line(given.quiet);
  std::string now;
  how.how.store_is_optional = false;  // without the store there is no result
  how.how.cancel = [] { return ending_signal() != 0; };
  how.begins = [&](std::span<const std::int64_t> extents) { now = extents_text(space, extents); };
  if (!given.quiet) how.how.progress = [&](const c::place_progress& p) { line.show(now + ": " + text_of(p)); };
  bool is_first = true;
  const auto network = [&](std::span<const std::int64_t> extents) {
    options at = given;
    at.shapes = space.settings(extents);
    at.quiet = given.quiet || !std::exchange(is_first, false);
    return load_ready_network(with_shapes(at));
  };
  const c::shape_tuning made = c::tune_shapes(open, network, backends(), how);
  watch.done();
  line.clear();
  if (made.shapes.empty())
    throw c::error(c::error_kind::cancelled, "no shape was tuned before the end", given.network, "let it run longer");
  print(given.json ? c::to_text(to_json(given, space, made, how.how.store)) : page_of(given, space, made, how));
  return 0;
}

}  // namespace program
#else
namespace program {
bool names_several_shapes(const options&) { return false; }
int tune_several(const options&) { return 1; }
}  // namespace program
#endif
