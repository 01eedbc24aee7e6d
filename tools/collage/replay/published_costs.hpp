// Reads the files of measured operator costs that were published with the Collage paper.
#pragma once

#include "literal.hpp"

#include <collage/error.hpp>

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace program::replay {

using extents = std::vector<std::int64_t>;

/// The attributes in the record of an operator. Usual layouts, empty types, and values that are None are left out.
using attribute_list = std::map<std::string, extents>;

/// One operator of a pattern.
struct pattern_operator {
  std::string name;
  attribute_list attributes = {};
  std::uint32_t parent = 0;    ///< the operator of the pattern that reads it; for the first, itself
  std::uint32_t position = 0;  ///< as this operand of the parent
  bool commutes = false;       ///< it may also be the parent's other operand
  std::uint32_t operands = 0;  ///< how many operands it has; 0: any number
};

/// One measurement: a pattern at one shape, run by one backend.
struct cost_record {
  std::string backend;                      ///< without the prefix "tvmgpu-"
  std::string pattern;                      ///< as the file names it
  std::vector<pattern_operator> operators;  ///< depth first from the one that writes the pattern's result
  std::uint32_t data_operator = 0;          ///< the operator whose first operand has the shape `data`
  extents data;
  double mean_ms = 0;
  double deviation_ms = 0;
};

struct published_costs {
  std::string name;  ///< "desktop-b" of operator-cost-desktop-b.json
  std::vector<cost_record> records;
};

namespace detail {

/// The largest number in a file: products of two extents must not overflow.
inline constexpr std::int64_t most_number = (std::int64_t{1} << 31) - 1;

inline extents numbers_of(const literal& given, const std::string& where) {
  extents numbers;
  const std::vector<literal> one(given.is == literal::kind::number ? 1 : 0, given);
  for (const literal& item : one.empty() ? given.items : one) {
    if (item.is != literal::kind::number || item.number < -most_number || item.number > most_number)
      throw collage::error(collage::error_kind::invalid_argument, "a list of whole numbers below 2^31 is expected",
                           where, "use the published file unchanged");
    numbers.push_back(item.number);
  }
  return numbers;
}

/// Converts (('strides', (1, 1)), ...) to an attribute list. Leaves out the usual layouts of convolutions and pools.
inline attribute_list attributes_of(const literal& given, const std::string& where) {
  attribute_list list;
  if (given.is == literal::kind::text && given.text.empty()) return list;
  if (given.is != literal::kind::tuple)
    throw collage::error(collage::error_kind::invalid_argument, "an operator's attributes are not a tuple", where,
                         "use the published file unchanged");
  for (const literal& pair : given.items) {
    if (pair.is != literal::kind::tuple || pair.items.size() != 2 || pair.items[0].is != literal::kind::text)
      throw collage::error(collage::error_kind::invalid_argument, "an attribute is not a name with a value", where,
                           "use the published file unchanged");
    const std::string& name = pair.items[0].text;
    const literal& value = pair.items[1];
    const bool is_text = value.is == literal::kind::text;
    bool of_texts = value.is == literal::kind::tuple && !value.items.empty();
    std::string letters;
    for (const literal& item : value.items) {
      of_texts = of_texts && item.is == literal::kind::text;
      letters += item.text;
    }
    const bool usual = letters == "NCHW" || letters == "OIHW" || letters == "NCDHW" || letters == "OIDHW";
    if (value.is == literal::kind::none || (is_text && value.text.empty()) || (of_texts && usual)) continue;
    if (value.is == literal::kind::tuple && value.items.empty()) continue;  // out_layout
    if (is_text || of_texts) list[name + ' ' + (is_text ? value.text : letters)] = {};
    else list[name] = numbers_of(value, where);
  }
  return list;
}

/// Reads "0-Op(nn.relu)[1-Op(add)[*, 2-Op(nn.conv3d)[*, *]]]": the operators, and which reads the result of which.
/// Tuples are not operators: their fields become operands of the operator that reads the tuple.
class pattern_reader {
 public:
  pattern_reader(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  std::vector<pattern_operator> read() {
    node(0, 0);
    if (at_ != text_.size() || operators_.empty()) wrong();
    return std::move(operators_);
  }

 private:
  static constexpr int most_operators = 64;

  [[noreturn]] void wrong() const {
    throw collage::error(collage::error_kind::invalid_argument,
                         "there is no pattern at character " + std::to_string(at_ + 1) + " of '" +
                             std::string(text_.substr(0, 80)) + "'",
                         where_, "use the published file unchanged");
  }
  bool takes(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  /// Reads an operand of `parent`. Returns how many positions it fills: as many as a tuple has fields, otherwise one.
  std::uint32_t node(std::uint32_t parent, std::uint32_t position, int depth = 0) {
    if (takes("*")) return 1;
    unsigned number = 0;  // not used: it only counts depth first
    const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (read.ec != std::errc() || operators_.size() >= most_operators || depth > most_operators) wrong();
    at_ = static_cast<std::size_t>(read.ptr - text_.data());
    if (takes("-Tuple[")) return operands(parent, position, depth + 1);
    if (!takes("-Op(")) wrong();
    const std::size_t end = text_.find(')', at_);
    if (end == std::string_view::npos) wrong();
    const auto self = static_cast<std::uint32_t>(operators_.size());
    operators_.push_back({.name = std::string(text_.substr(at_, end - at_)), .parent = parent, .position = position});
    at_ = end + 1;
    if (!takes("[")) wrong();
    operators_[self].operands = operands(self, 0, depth + 1);
    return 1;
  }
  std::uint32_t operands(std::uint32_t parent, std::uint32_t position, int depth) {
    const std::uint32_t first = position;
    do position += node(parent, position, depth);
    while (takes(", "));
    if (!takes("]")) wrong();
    return position - first;
  }

  std::string_view text_;
  std::string where_;
  std::size_t at_ = 0;
  std::vector<pattern_operator> operators_;
};

/// Reads the operators of a record. Newer files spell the pattern out. Older files only name it; then the attributes list
/// the operators. Each is the first operand of the operator before it, or either operand of an addition or product.
inline void read_operators(cost_record& record, const literal& paths, const std::string& where) {
  const auto refuse = [&](const char* what) {
    throw collage::error(collage::error_kind::invalid_argument, what, where, "use the published file unchanged");
  };
  if (paths.is != literal::kind::set || paths.items.size() != 1) refuse("its attributes are not one path of operators");
  const std::vector<literal>& path = paths.items[0].items;
  if (path.empty() || path.size() % 2 != 0) refuse("its attributes are not pairs of an operator and its attributes");
  std::vector<pattern_operator> chain;
  for (std::size_t i = 0; i < path.size(); i += 2) {
    if (path[i].is != literal::kind::text || path[i].text.empty()) refuse("an operator has no name");
    const auto self = static_cast<std::uint32_t>(i / 2);
    chain.push_back({.name = path[i].text,
                     .attributes = attributes_of(path[i + 1], where),
                     .parent = self == 0 ? 0 : self - 1,
                     .commutes = self != 0 && (chain.back().name == "add" || chain.back().name == "multiply")});
  }
  const bool spelt_out = record.pattern.starts_with("0-");
  if (spelt_out) {
    record.operators = pattern_reader(record.pattern, where).read();
    if (record.operators.size() != chain.size()) refuse("its pattern and its attributes have different operators");
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (record.operators[i].name != chain[i].name) refuse("its pattern and its attributes have different operators");
      record.operators[i].attributes = std::move(chain[i].attributes);
    }
  } else {
    record.operators = std::move(chain);
    if (record.pattern.starts_with("tuple_five")) record.operators[0].operands = 5;
  }
  // The record's shape is the shape of the leftmost leaf. In the older patterns every operator is on the left.
  for (std::uint32_t i = 1; i < record.operators.size(); ++i) {
    const pattern_operator& o = record.operators[i];
    if (!spelt_out || (o.parent == record.data_operator && o.position == 0)) record.data_operator = i;
  }
}

/// Reads a key: "op_type: T, data_shape: S, attrs: A, op_name: BACKEND_T".
inline cost_record read_key(std::string_view key, const std::string& file) {
  const std::string where = file + ", record '" + std::string(key.substr(0, 60)) + (key.size() > 60 ? "...'" : "'");
  std::string_view field[4];
  const std::string_view titles[] = {"op_type: ", ", data_shape: ", ", attrs: ", ", op_name: "};
  std::size_t at = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t end = i + 1 < 4 ? key.find(titles[i + 1], at) : key.size();
    if (!key.substr(at).starts_with(titles[i]) || end == std::string_view::npos)
      throw collage::error(collage::error_kind::invalid_argument,
                           "its key is not of the form op_type, data_shape, attrs, op_name", where,
                           "use the published file unchanged");
    field[i] = key.substr(at + titles[i].size(), end - at - titles[i].size());
    at = end;
  }
  cost_record record;
  const std::size_t bar = field[3].find('_');
  record.backend = field[3].substr(0, bar);
  record.pattern = field[0];
  if (record.backend.starts_with("tvmgpu-")) record.backend.erase(0, 7);
  if (bar == std::string_view::npos || record.backend.empty() || field[3].substr(bar + 1) != field[0])
    throw collage::error(collage::error_kind::invalid_argument, "op_name is not a backend and the op_type", where,
                         "use the published file unchanged");
  record.data = numbers_of(literal_reader(field[1], where).read(), where);
  for (const std::int64_t extent : record.data)
    if (extent <= 0)
      throw collage::error(collage::error_kind::invalid_argument, "an extent of data_shape is not positive", where,
                           "use the published file unchanged");
  read_operators(record, literal_reader(field[2], where).read(), where);
  return record;
}

}  // namespace detail

/// Reads the text of a cost file: a JSON object whose values are [mean, standard deviation] in milliseconds. `file`
/// names the table, and the file in errors. Throws `collage::error` if anything differs from this form.
inline published_costs read_published_costs(const std::string& text, const std::string& file) {
  published_costs table;
  table.name = file.substr(file.find_last_of('/') + 1);
  for (const std::string_view part : {"operator-cost-", ".json"})
    if (const std::size_t at = table.name.find(part); at != std::string::npos) table.name.erase(at, part.size());
  nlohmann::ordered_json content;
  const auto refuse = [&](const std::string& what, const std::string& where) {
    throw collage::error(collage::error_kind::invalid_argument, what, where, "use the published file unchanged");
  };
  try {
    content = nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    refuse("is not JSON: error at byte " + std::to_string(e.byte), file);
  } catch (const nlohmann::json::exception&) { refuse("is not JSON: a number in it is out of range", file); }
  if (!content.is_object() || content.empty())
    refuse("is not a table of costs: it must be an object with at least one record", file);
  for (const auto& [key, value] : content.items()) {
    cost_record record = detail::read_key(key, file);
    const std::string where = file + ", record '" + key.substr(0, 60) + (key.size() > 60 ? "...'" : "'");
    if (!value.is_array() || value.size() != 2 || !value[0].is_number() || !value[1].is_number())
      refuse("its value is not [mean, standard deviation]", where);
    record.mean_ms = value[0].get<double>();
    record.deviation_ms = value[1].get<double>();
    if (!(record.mean_ms > 0 && std::isfinite(record.mean_ms) && record.mean_ms < 1e9))
      refuse("its mean is not a positive number of milliseconds", where);
    if (!(record.deviation_ms >= 0 && std::isfinite(record.deviation_ms)))
      refuse("its standard deviation is negative or not a number", where);
    table.records.push_back(std::move(record));
  }
  return table;
}

}  // namespace program::replay
