// Range files: ranges as JSON that is easy to read and to compare line by line (docs/calibration.md).
#pragma once

#include <collage/calibrate/histogram.hpp>
#include <collage/calibrate/merge.hpp>
#include <collage/calibrate/ranges.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// The version of the file format. Files of other versions are refused.
inline constexpr std::uint64_t ranges_file_version = 1;

namespace detail {

inline constexpr const char* ranges_file_format = "collage ranges";
inline constexpr const char* new_ranges = "calibrate again, which writes new ranges";

/// A float32 number with as few digits as give it back.
inline double short_number(float x) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, x).ptr;
  double number = 0;
  std::from_chars(text, end, number);
  return static_cast<float>(number) == x ? number : static_cast<double>(x);
}
inline float float_from(const json_place& at) {
  const double number = at.number();
  if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) at.wrong("is out of range");
  return static_cast<float>(number);
}

inline json interval_to_json(interval range) {
  return json::array({short_number(range.low), short_number(range.high)});
}
inline interval interval_from_json(const json_place& at) {
  if (at.size() != 2) at.wrong("is not a list of two numbers");
  const interval range{float_from(at[std::size_t{0}]), float_from(at[1])};
  if (range.low > range.high) at.wrong("is not in order");
  return range;
}

// Counts are one text, "3 0*17 5": lists of thousands of numbers would fill a page for each value.

inline std::string counts_to_text(std::span<const std::uint64_t> counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t end = i + 1;
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    if (!text.empty()) text += ' ';
    text += std::to_string(counts[i]);
    if (end - i > 1) text += '*' + std::to_string(end - i);
    i = end;
  }
  return text;
}
inline std::vector<std::uint64_t> counts_from_json(const json_place& at) {
  const std::string text = at.text();
  std::vector<std::uint64_t> counts;
  const auto number = [&](const char*& from) {
    std::uint64_t read = 0;
    const auto [end, failed] = std::from_chars(from, text.data() + text.size(), read);
    if (failed != std::errc()) at.wrong("has something other than counts");
    from = end;
    return read;
  };
  const char* const last = text.data() + text.size();
  for (const char* from = text.data(); from != last;) {
    const std::uint64_t count = number(from);
    std::uint64_t times = 1;
    if (from != last && *from == '*') times = number(++from);
    if (times == 0 || times > value_histogram::most_bins - counts.size()) at.wrong("has too many counts");
    counts.insert(counts.end(), static_cast<std::size_t>(times), count);
    if (from != last && (*from++ != ' ' || from == last)) at.wrong("has something other than counts");
  }
  return counts;
}

inline json numbers_to_json(const value_histogram& h) {
  return {{"count", h.count()},       {"zeros", h.zeros()},         {"bins", h.bins()},
          {"exponent", h.exponent()}, {"first_bin", h.first_bin()}, {"counts", counts_to_text(h.counts())}};
}
inline std::int64_t whole_from(const json_place& at, double least, double most) {
  const double number = at.number();
  if (!(number >= least && number <= most) || number != std::floor(number))
    at.wrong("is not a whole number in its bounds");
  return static_cast<std::int64_t>(number);
}
inline value_histogram numbers_from_json(const json_place& at, interval seen) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62U;
  value_histogram::parts p;
  p.bins = static_cast<std::size_t>(at["bins"].natural(2, value_histogram::most_bins));
  p.seen = seen;
  p.count = at["count"].natural(0, most);
  p.zeros = at["zeros"].natural(0, most);
  p.exponent = static_cast<int>(whole_from(at["exponent"], -149, 128));
  p.first_bin = whole_from(at["first_bin"], -4096, 4096);
  p.counts = counts_from_json(at["counts"]);
  const std::optional<value_histogram> made = value_histogram::of(p);
  if (!made) at.wrong("is not the histogram of any numbers");
  return *made;
}

inline void quantisation_to_json(json& to, const quantisation& how) {
  to["type"] = name_of(how.element);
  if (how.axis < 0) {
    to["scale"] = short_number(how.scales[0]);
    to["zero_point"] = how.zero_points[0];
    return;
  }
  json scales = json::array();
  for (const float s : how.scales) scales.push_back(short_number(s));
  to["axis"] = how.axis;
  to["scales"] = std::move(scales);
}
inline quantisation quantisation_from_json(const json_place& at) {
  quantisation how;
  const std::string type = at["type"].text();
  if (type != name_of(dtype::i8) && type != name_of(dtype::u8)) at["type"].wrong("is neither int8 nor uint8");
  how.element = type == name_of(dtype::i8) ? dtype::i8 : dtype::u8;
  const auto scale = [](const json_place& from) {
    const float read = float_from(from);
    if (!std::isnormal(read) || read < 0) from.wrong("is not above zero");
    return read;
  };
  if (!at.has("axis")) {
    const number_limits limits = limits_of(how.element);
    how.scales = {scale(at["scale"])};
    how.zero_points = {static_cast<std::int32_t>(whole_from(at["zero_point"], limits.low, limits.high))};
    return how;
  }
  how.axis = static_cast<std::int32_t>(at["axis"].natural(0, 7));
  const json_place scales = at["scales"];
  if (scales.size() == 0) scales.wrong("is empty");
  for (std::size_t i = 0; i < scales.size(); ++i) how.scales.push_back(scale(scales[i]));
  how.zero_points.assign(how.scales.size(), 0);
  return how;
}

inline json range_to_json(const value_range& v) {
  json made = {{"value", v.value}, {"name", v.name}};
  if (v.same_as) {
    made["same_as"] = *v.same_as;
    return made;
  }
  if (!v.why.empty()) made["why"] = v.why;
  if (v.bad_sample != 0) made["bad_sample"] = v.bad_sample, made["is_nan"] = v.is_nan;
  made["seen"] = interval_to_json(v.seen);
  if (v.has_numbers()) {
    made["kept"] = interval_to_json(v.kept);
    quantisation_to_json(made, v.how);
  }
  if (v.numbers != nullptr) made["numbers"] = numbers_to_json(*v.numbers);
  return made;
}
inline value_range range_from_json(const json_place& at) {
  value_range v;
  v.value = static_cast<std::uint32_t>(at["value"].natural(0, 0xFFFFFFFE));
  v.name = at["name"].text();
  if (at.has("same_as")) {
    v.same_as = static_cast<std::uint32_t>(at["same_as"].natural(0, 0xFFFFFFFE));
    return v;
  }
  if (at.has("why")) v.why = at["why"].text();
  if (at.has("bad_sample")) {
    v.bad_sample = at["bad_sample"].natural(1, ~std::uint64_t{0});
    v.is_nan = at["is_nan"].boolean();
  }
  v.seen = interval_from_json(at["seen"]);
  if (at.has("type")) {
    v.kept = interval_from_json(at["kept"]);
    v.how = quantisation_from_json(at);
  } else if (v.why.empty()) {
    at.wrong("has neither numbers nor a reason");
  }
  if (at.has("numbers")) v.numbers = std::make_shared<const value_histogram>(numbers_from_json(at["numbers"], v.seen));
  return v;
}

/// Writes a graph's ranges, a line for each value. Values are made one at a time: all at once would take much more memory.
inline void write_graph(unfinished_file& to, const graph_ranges& in, const std::string& indent) {
  to.write("[");
  for (std::size_t i = 0; i < in.values.size(); ++i)
    to.write((i == 0 ? "\n" : ",\n") + indent + "  " + json_line(range_to_json(in.values[i])));
  to.write("\n" + indent + "],\n" + indent + "\"bodies\": [");
  for (std::size_t i = 0; i < in.bodies.size(); ++i) {
    const body_ranges& b = in.bodies[i];
    to.write((i == 0 ? "\n" : ",\n") + indent + "  {\"node\": " + std::to_string(b.node) +
             ", \"which\": " + std::to_string(b.which) + ", \"values\": ");
    write_graph(to, b.inside, indent + "  ");
    to.write("}");
  }
  to.write("]");
}
inline graph_ranges graph_from_json(const json_place& at) {
  graph_ranges made;
  const json_place values = at["values"], bodies = at["bodies"];
  for (std::size_t i = 0; i < values.size(); ++i) {
    made.values.push_back(range_from_json(values[i]));
    if (i > 0 && made.values[i].value <= made.values[i - 1].value) values[i].wrong("does not come in order");
  }
  for (std::size_t i = 0; i < made.values.size(); ++i) {
    value_range& v = made.values[i];
    if (!v.same_as) continue;
    const value_range* const from = find_range(made, *v.same_as);
    if (from == nullptr || from->same_as) values[i]["same_as"].wrong("is no value with a range of its own");
    v.seen = from->seen, v.kept = from->kept, v.how = from->how, v.why = from->why;
  }
  for (std::size_t i = 0; i < bodies.size(); ++i)
    made.bodies.push_back({static_cast<std::uint32_t>(bodies[i]["node"].natural(0, 0xFFFFFFFE)),
                           static_cast<std::uint32_t>(bodies[i]["which"].natural(0, 0xFFFFFFFE)),
                           graph_from_json(bodies[i])});
  return made;
}

template <class Enum, std::size_t N>
Enum named_in(const json_place& at, const Enum (&all)[N]) {
  const std::string text = at.text();
  for (const Enum one : all)
    if (text == name_of(one)) return one;
  at.wrong("is unknown");
}

}  // namespace detail

/// Writes ranges to a file, which appears whole or not at all.
inline void save_ranges(const std::string& path, const network_ranges& ranges) {
  detail::unfinished_file to(path);
  const range_origin& by = ranges.made_by;
  const json head = {{"format", detail::ranges_file_format},
                     {"version", ranges_file_version},
                     {"network", ranges.network},
                     {"fingerprint", detail::hex_of(ranges.fingerprint)},
                     {"method", name_of(by.method)},
                     {"percentile", by.percentile},
                     {"schema", name_of(by.schema)},
                     {"per_channel", by.per_channel},
                     {"samples", by.samples},
                     {"random", by.is_random}};
  to.write("{");
  for (auto item = head.begin(); item != head.end(); ++item)
    to.write("\n  " + detail::json_line(json(item.key())) + ": " + detail::json_line(*item) + ",");
  to.write("\n  \"values\": ");
  detail::write_graph(to, ranges.top, "  ");
  to.write("\n}\n");
  to.finish();
}

/// Reads ranges. Every error is one sentence that names the file. Whether they are those of a network, `check_ranges` says.
inline network_ranges load_ranges(const std::string& path) {
  const std::string text = read_file(path);
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::parse_error& e) {
    throw error(error_kind::invalid_argument, "is not JSON, as byte " + std::to_string(e.byte) + " shows", path,
                detail::new_ranges);
  } catch (const json::exception&) {
    throw error(error_kind::invalid_argument, "is not JSON: a number is out of range", path, detail::new_ranges);
  }
  const json_place at(parsed, path, detail::new_ranges);
  if (!at.has("format") || !at["format"].is_text() || at["format"].text() != detail::ranges_file_format)
    throw error(error_kind::invalid_argument, "is no file of ranges", path, "name a file that collage calibrate wrote");
  if (const std::uint64_t version = at["version"].natural(0, 1U << 30U); version != ranges_file_version)
    throw error(error_kind::invalid_argument,
                "has version " + std::to_string(version) + " of the format, and this program reads version " +
                    std::to_string(ranges_file_version),
                path, detail::new_ranges);

  network_ranges made;
  made.network = at["network"].text();
  const std::string hex = at["fingerprint"].text();
  const auto [end, failed] = std::from_chars(hex.data(), hex.data() + hex.size(), made.fingerprint, 16);
  if (failed != std::errc() || end != hex.data() + hex.size() || hex.size() != 16)
    at["fingerprint"].wrong("is not 16 hexadecimal digits");
  made.made_by.method = detail::named_in(
      at["method"], {range_method::minmax, range_method::percentile, range_method::entropy, range_method::mse});
  made.made_by.schema = detail::named_in(at["schema"], {quantisation_schema::asymmetric, quantisation_schema::symmetric,
                                                        quantisation_schema::symmetric_unsigned});
  made.made_by.percentile = at["percentile"].number();
  if (!(made.made_by.percentile > 0 && made.made_by.percentile <= 100))
    at["percentile"].wrong("is not above 0 and at most 100");
  made.made_by.per_channel = at["per_channel"].boolean();
  made.made_by.samples = at["samples"].natural(1, ~std::uint64_t{0});
  made.made_by.is_random = at["random"].boolean();
  made.top = detail::graph_from_json(at);
  return made;
}

/// Reads the ranges of a network. Errors: those of load_ranges; ranges of another network, or of other weights.
inline network_ranges load_ranges(const std::string& path, const graph& network) {
  network_ranges made = load_ranges(path);
  check_ranges(network, made, path);
  return made;
}

}  // namespace collage::inline v0
