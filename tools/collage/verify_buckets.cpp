#include "verify_buckets.hpp"

#include "network.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>

#if COLLAGE_HAS_ONNX

#include "backends.hpp"
#include "open_shapes.hpp"
#include "placing.hpp"
#include "run_stages.hpp"
#include "table.hpp"

#include <collage/io/json.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/buckets.hpp>
#include <collage/run/session.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& remedy) {
  throw c::error(c::error_kind::invalid_argument, what, where, remedy);
}

double number_in(const std::string& text, const std::string& where) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size())
    refuse("'" + text + "' is no number", where, "write it as in mask=0");
  return number;
}

/// "y[1]=T/8" or "y[1]=(T+7)/8" in its parts.
c::bucket_cut cut_in(const std::string& text) {
  const char* const form = "write it as in y[1]=T/8 or y[1]=(T+7)/8";
  const auto [place, rest] = split_setting(text, "--cut", "OUTPUT[1]=SYMBOL/8");
  const std::size_t bracket = place.rfind('['), slash = rest.rfind('/');
  if (bracket == std::string::npos || bracket == 0 || place.back() != ']')
    refuse("it does not name a dimension", "--cut " + text, form);
  c::bucket_cut made{place.substr(0, bracket), 0, rest.substr(0, slash)};
  const auto whole = [&](const std::string& digits, auto& number) {
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
      refuse("'" + digits + "' is no whole number", "--cut " + text, form);
  };
  whole(place.substr(bracket + 1, place.size() - bracket - 2), made.dimension);
  if (std::string& sum = made.symbol; sum.starts_with('(') && sum.ends_with(')')) {
    const std::size_t plus = std::min(sum.rfind('+'), sum.size() - 1);
    if (plus + 1 < sum.size()) whole(sum.substr(plus + 1, sum.size() - plus - 2), made.addend);
    sum = sum.substr(1, plus - 1);
  }
  if (slash != std::string::npos) whole(rest.substr(slash + 1), made.divisor);
  return made;
}

c::bucket_options buckets_of(const options& given) {
  c::bucket_options made;
  for (const std::string& text : given.buckets) {
    shape_setting s = setting_of(text, "--bucket");
    if (s.extents.size() != 1 || !s.extents[0] || s.extents[0]->is_range())
      refuse("it is no list of extents", "--bucket " + text, "write it as in T=64,128,256");
    c::bucket_list list{std::move(s.name), {}};
    for (std::int64_t i = 0; i < s.extents[0]->count(); ++i) list.extents.push_back(s.extents[0]->at(i));
    made.buckets.push_back(std::move(list));
  }
  for (const std::string& text : given.paddings) {
    const auto [input, value] = split_setting(text, "--pad", "INPUT=VALUE");
    made.padding.push_back({input, number_in(value, "--pad " + text)});
  }
  for (const std::string& text : given.cuts) made.cuts.push_back(cut_in(text));
  return made;
}

c::json to_json(const options& given, std::span<const std::int64_t> bucket, const c::bucket_options& declared,
                std::span<const c::bucket_difference> found, bool passed) {
  c::json extents, outputs = c::json::array();
  for (std::size_t i = 0; i < bucket.size(); ++i) extents[declared.buckets[i].symbol] = bucket[i];
  for (const c::bucket_difference& d : found)
    outputs.push_back({{"output", d.output},
                       {"worst_relative", c::rounded(d.found.worst_relative)},
                       {"passed", d.found.agrees},
                       {"why", d.found.why == nullptr ? c::json() : c::json(d.found.why)}});
  return {{"network", given.network}, {"passed", passed}, {"bucket", extents}, {"outputs", outputs}};
}

std::string page_of(const options& given, std::span<const std::int64_t> bucket, const c::bucket_options& declared,
                    std::span<const c::bucket_difference> found) {
  std::string text;
  for (std::size_t i = 0; i < bucket.size(); ++i)
    text += (text.empty() ? "" : ", ") + declared.buckets[i].symbol + "=" + std::to_string(bucket[i]);
  table page({{"output"}, {"largest relative difference", align::right}, {"verdict"}, {"why", align::left, 20, true}});
  for (const c::bucket_difference& d : found)
    page.add({d.output,
              format_number("%.2e", d.found.worst_relative),
              {d.found.agrees ? "passed" : "FAILED", d.found.agrees ? colour::green : colour::red},
              d.found.why == nullptr ? std::string() : std::string(d.found.why)});
  return paint(colour::bold, given.network) + " in the bucket " + text + "\n\n" + page.text() + "\n" +
         wrap(
             "Each output of the padded run is cut, and compared with the run at the exact shape. Whether padding changes "
             "results may depend on the contents of inputs: --input NAME=FILE.npy gives real ones.",
             0);
}

}  // namespace

int verify_buckets(const options& asked) {
  const c::bucket_options declared = buckets_of(asked);
  if (!asked.plan_file.empty()) refuse("a plan is for one shape, and buckets have others", "--plan", "leave it out");
  (void)inputs_of(asked);  // says that networks of the zoo have no open extents
  late_network here = late_network_of(asked).value_or(late_network{asked, nullptr, {}});
  if (!here.source) here.source = model_source_of(here.given);
  const std::vector<c::tensor> contents = contents_of_inputs(here);
  options open = asked;  // the session's network keeps its open extents
  open.shapes.clear();
  const auto source = model_source_of(open);
  const auto planner = [&](const c::graph& stage, const std::shared_ptr<c::packed_weights>&) -> c::plan {
    return place_network(here.given, stage).made;
  };
  const c::session session(source, backends(), planner);
  c::bucketed_context context(session, declared);
  const std::vector<c::const_tensor_view> inputs(contents.begin(), contents.end());
  const std::vector<c::bucket_difference> found = context.check(inputs);
  bool passed = true;
  for (const c::bucket_difference& d : found) passed = passed && d.found.agrees;
  print(asked.json ? c::to_text(to_json(asked, context.bucket(), declared, found, passed))
                   : page_of(asked, context.bucket(), declared, found));
  if (!passed)
    complain(
        "verify: padding changes the results; give other values by --pad, a mask if the network takes one, or no bucket");
  return passed ? 0 : 1;
}

}  // namespace program

#else

namespace program {

int verify_buckets(const options& given) {
  (void)load_network(given);
  throw collage::error(collage::error_kind::invalid_argument, "the network has no open extent", "--bucket",
                       "leave it out");
}

}  // namespace program

#endif
