#include "backends.hpp"
#include "commands.hpp"
#include "network.hpp"
#include "output_file.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/calibrate/calibrate.hpp>
#include <collage/calibrate/choose.hpp>
#include <collage/calibrate/merge.hpp>
#include <collage/io/json.hpp>
#include <collage/io/ranges_file.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/processor.hpp>
#include <samples/sample_files.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

namespace {

[[noreturn]] void refuse_calibrate(const std::string& what, const std::string& where, const std::string& remedy) {
  throw c::error(c::error_kind::invalid_argument, what, where, remedy);
}

/// Throws for options that do not go together.
void check_calibrate(const options& given) {
  if (given.ranges_file.empty()) refuse_calibrate("-o is required", "calibrate", "name the file for the ranges");
  if (!given.merged_files.empty()) {
    if (!given.data.empty() || given.sample_count != 0)
      refuse_calibrate("it needs no samples", "--merge", "leave out --data and --samples");
    if (given.per_channel)
      refuse_calibrate("weights stay as the files have them", "--merge", "leave out --per-channel");
    return;
  }
  if (given.network.empty()) refuse_calibrate("no network is given", "calibrate", "name one, or ranges after --merge");
  if (!given.data.empty() && given.sample_count != 0)
    refuse_calibrate("there is no need for random samples beside data", "--samples",
                     "leave out one of --data and --samples");
  if (given.data.empty() && given.sample_count == 0)
    refuse_calibrate("there is no data", "calibrate", "give --data FOLDER, or --samples N for random numbers");
}

c::range_origin origin_of(const options& given, const c::range_origin& usual = {}) {
  c::range_origin how = usual;
  for (const c::range_method m :
       {c::range_method::minmax, c::range_method::percentile, c::range_method::entropy, c::range_method::mse})
    if (given.method == c::name_of(m)) how.method = m;
  for (const c::quantisation_schema s : {c::quantisation_schema::asymmetric, c::quantisation_schema::symmetric,
                                         c::quantisation_schema::symmetric_unsigned})
    if (given.schema == c::name_of(s)) how.schema = s;
  if (given.percentile != 0) how.percentile = given.percentile;
  return how;
}

/// Runs the network on samples, and shows how far it is.
c::network_ranges observe(const options& given, const c::graph& network, const std::string& name) {
  const c::range_origin wanted = origin_of(given);
  std::optional<c::detail::sample_files> files;
  if (!given.data.empty()) files.emplace(network, given.data);
  const std::uint64_t all = files ? files->count() : given.sample_count;
  if (!files && !given.quiet)
    complain("note: the samples are random numbers and no data: the ranges serve to try things out, and not for use");

  progress_line progress(given.quiet);
  progress.show("building kernels");
  c::calibration pass(network, backends(),
                      {.threads = given.threads != 0 ? given.threads : c::available_threads(),
                       .minmax_only = wanted.method == c::range_method::minmax});
  std::vector<c::tensor> inputs;
  for (const std::uint32_t v : network.inputs()) inputs.emplace_back(network.type_of(v));
  const std::vector<c::const_tensor_view> views(inputs.begin(), inputs.end());
  std::mt19937_64 random(given.seed);
  while (files ? files->read(inputs) : pass.samples() < all) {
    if (!files)
      for (const c::tensor& t : inputs) c::fill_random(t, random);
    progress.show("sample " + std::to_string(pass.samples() + 1) + " of " + std::to_string(all));
    pass.add(views);
  }
  progress.show("choosing ranges");
  c::range_origin made_by = wanted;
  made_by.per_channel = given.per_channel;
  made_by.is_random = !files;
  c::network_ranges made = std::move(pass).finish(made_by);
  made.network = name;
  return made;
}

c::network_ranges merge_files(const options& given) {
  c::network_ranges all;
  for (std::size_t i = 0; i < given.merged_files.size(); ++i) {
    c::network_ranges one = c::load_ranges(given.merged_files[i]);
    if (i == 0) {
      all = std::move(one);
      continue;
    }
    const std::size_t finer = std::max(c::fewest_bins(all), c::fewest_bins(one));
    try {
      all = c::merged(all, one);
    } catch (const c::error& e) {
      const std::string why = e.what();  // "ranges: are of different networks ..."
      refuse_calibrate("cannot be merged with " + given.merged_files[0] + ": the ranges" + why.substr(why.find(' ')),
                       given.merged_files[i], "");
    }
    if (const std::size_t left = c::fewest_bins(all); left < finer && !given.quiet)
      complain("note: histograms of " + std::to_string(finer) + " bins were merged with histograms of " +
               std::to_string(left) + ", and the finer bins are lost");
  }
  const c::range_origin how = origin_of(given, all.made_by);
  c::choose_again(all, how.method, how.schema, how.percentile);
  if (!given.network.empty()) c::check_ranges(load_ready_network(with_shapes(given)), all, given.merged_files[0]);
  return all;
}

/// A value as the page shows it.
struct ranged_row {
  const c::value_range* range;
  double error;  ///< of rounding and clipping, relative to the root mean square
};

/// Values that samples decided, and subgraphs' values, each once.
void collect(const c::graph_ranges& in, std::vector<ranged_row>& numbered, std::vector<const c::value_range*>& others) {
  for (const c::value_range& v : in.values) {
    if (v.same_as) continue;
    if (!v.has_numbers()) others.push_back(&v);
    else if (v.numbers != nullptr)
      numbered.push_back({&v, std::sqrt(c::mean_square_error(*v.numbers, v.how) / c::mean_square(*v.numbers))});
  }
  for (const c::body_ranges& b : in.bodies) collect(b.inside, numbered, others);
}

std::size_t weights_in(const c::graph_ranges& in) {
  std::size_t count = 0;
  for (const c::value_range& v : in.values)
    if (!v.same_as && v.numbers == nullptr && v.has_numbers()) ++count;
  for (const c::body_ranges& b : in.bodies) count += weights_in(b.inside);
  return count;
}

std::string interval_text(c::interval range) {
  return format_number("%.4g", static_cast<double>(range.low)) + " to " +
         format_number("%.4g", static_cast<double>(range.high));
}

std::string counted(std::uint64_t count, const std::string& one, const std::string& several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

std::string method_text(const c::range_origin& by) {
  std::string text = std::string("method ") + c::name_of(by.method);
  if (by.method == c::range_method::percentile) text += " " + format_number("%g", by.percentile);
  return text + ", schema " + c::name_of(by.schema) + ", weights per " + (by.per_channel ? "channel" : "tensor");
}

void print_page(const options& given, const c::network_ranges& made, const std::vector<ranged_row>& numbered,
                const std::vector<const c::value_range*>& others) {
  constexpr std::size_t most_rows = 8;
  const std::string samples = made.made_by.is_random ? counted(made.made_by.samples, "random sample", "random samples")
                                                     : counted(made.made_by.samples, "sample", "samples");
  std::string text = paint(colour::bold, "Ranges of " + made.network + ": " + samples) + "\n" +
                     wrap(method_text(made.made_by) + ".", 0) + "\n";
  table page({{"values that lose most", align::left, 16},
              {"seen", align::right},
              {"kept", align::right},
              {"numbers"},
              {"error %", align::right}});
  for (std::size_t i = 0; i < std::min(most_rows, numbered.size()); ++i) {
    const c::value_range& v = *numbered[i].range;
    page.add({v.name, interval_text(v.seen), interval_text(v.kept), c::name_of(v.how.element),
              format_number("%.3f", 100 * numbered[i].error)});
  }
  text += page.text() + "\n";
  for (std::size_t i = 0; i < std::min(most_rows, others.size()); ++i)
    text += wrap("Stays in float32: " + others[i]->name + " " + others[i]->why + ".", 0);
  if (others.size() > most_rows)
    text += wrap("So do " + counted(others.size() - most_rows, "other value", "other values") + ".", 0);
  text += wrap(counted(numbered.size(), "value", "values") + " and " +
                   counted(weights_in(made.top), "constant", "constants") + " have 8-bit numbers; written to " +
                   given.ranges_file + ".",
               0);
  print(text);
}

}  // namespace

int calibrate(const options& given) {
  check_calibrate(given);
  check_output(given.ranges_file, given);
  c::network_ranges made;
  if (given.merged_files.empty()) {
    const options shaped = with_shapes(given);
    made = observe(shaped, load_ready_network(shaped), given.network);
  } else {
    made = merge_files(given);
  }
  c::save_ranges(given.ranges_file, made);

  std::vector<ranged_row> numbered;
  std::vector<const c::value_range*> others;
  collect(made.top, numbered, others);
  std::ranges::stable_sort(numbered, std::ranges::greater(), &ranged_row::error);
  if (!given.json) {
    print_page(given, made, numbered, others);
    return 0;
  }
  c::json values = c::json::array(), left = c::json::array();
  for (const ranged_row& r : numbered) values.push_back({{"name", r.range->name}, {"error", c::rounded(r.error)}});
  for (const c::value_range* v : others) left.push_back({{"name", v->name}, {"why", v->why}});
  print(c::to_text({{"network", made.network},
                    {"samples", made.made_by.samples},
                    {"random", made.made_by.is_random},
                    {"method", c::name_of(made.made_by.method)},
                    {"schema", c::name_of(made.made_by.schema)},
                    {"per_channel", made.made_by.per_channel},
                    {"constants", weights_in(made.top)},
                    {"values", values},
                    {"float32", left},
                    {"file", given.ranges_file}}));
  return 0;
}

}  // namespace program
