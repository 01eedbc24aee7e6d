// JSON as text that is laid out for reading, and checked access to JSON whose errors name the location in the file.
#pragma once

#include <collage/error.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace collage::inline v0 {

/// JSON whose objects keep the order of their members.
using json = nlohmann::ordered_json;

/// A number with six significant digits. No measurement is more exact, and more digits would only be harder to read.
inline double rounded(double number) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.6g", number);
  return std::strtod(text, nullptr);
}

namespace detail {

inline constexpr const char* hex_digits = "0123456789abcdef";

/// A word as 16 hexadecimal digits. Readers of JSON commonly keep numbers as doubles, which cannot hold 64 bits.
inline std::string hex_of(std::uint64_t word) {
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[15 - i] = hex_digits[(word >> (4 * i)) & 15U];
  return text;
}

/// JSON on one line, with a space after each comma and colon. Bytes that are not UTF-8 are replaced.
inline std::string json_line(const json& from) {
  if (!from.is_structured()) return from.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string text(1, from.is_object() ? '{' : '[');
  for (auto item = from.begin(); item != from.end(); ++item) {
    if (item != from.begin()) text += ", ";
    if (from.is_object()) text += json_line(json(item.key())) + ": ";
    text += json_line(*item);
  }
  return text + (from.is_object() ? '}' : ']');
}

inline void append_json(std::string& text, const json& from, std::size_t width, std::size_t indent, std::size_t column,
                        bool top) {
  const std::string line = json_line(from);
  // One column stays free for the comma or bracket that follows.
  if ((!top && column + line.size() < width) || !from.is_structured() || from.empty()) {
    text += line;
    return;
  }
  const bool is_list = from.is_array();
  text += is_list ? '[' : '{';
  // Each entry of the top level begins a line, and so does each list or object in a list. All other entries fill lines.
  const std::size_t inner = top || is_list ? indent + 2 : column + 1;
  std::size_t at = column + 1;
  for (auto item = from.begin(); item != from.end(); ++item) {
    const bool first = item == from.begin();
    const std::string key = is_list ? std::string() : json_line(json(item.key())) + ": ";
    const bool scalars = is_list && !item->is_structured() && !first;
    const std::size_t wanted = key.size() + json_line(*item).size() + 2;
    const bool stays = top ? false : is_list ? scalars && at + wanted < width : first || at + wanted < width;
    if (!first) {
      text += ',';
      ++at;
    }
    if (stays) {
      if (!first) text += ' ', ++at;
    } else {
      text += '\n';
      text.append(inner, ' ');
      at = inner;
    }
    text += key;
    at += key.size();
    const std::size_t before = text.size();
    append_json(text, *item, width, inner, at, false);
    const std::size_t newline = text.rfind('\n');
    at = newline != std::string::npos && newline >= before ? text.size() - newline - 1 : at + text.size() - before;
  }
  if (top || is_list) {
    text += '\n';
    text.append(indent, ' ');
  }
  text += is_list ? ']' : '}';
}

}  // namespace detail

/// JSON as text that reads and diffs well. A value that fits in a line stays on one line, and each object of a list begins a
/// line.
inline std::string to_text(const json& from, std::size_t width = 120) {
  std::string text;
  detail::append_json(text, from, width, 0, 0, true);
  return text + '\n';
}

/// A location in a JSON file. Every access checks the value there, and errors name the file and the location.
class json_place {
 public:
  json_place(const json& at, std::string file, std::string remedy)
      : at_(&at), file_(std::move(file)), remedy_(std::move(remedy)) {}

  json_place operator[](const char* member) const {
    if (!at_->is_object()) wrong("is not an object");
    const auto found = at_->find(member);
    json_place inside(*this);
    inside.path_ += (path_.empty() ? "" : ".") + std::string(member);
    if (found == at_->end()) inside.wrong("is missing");
    inside.at_ = &*found;
    return inside;
  }
  std::size_t size() const {
    if (!at_->is_array()) wrong("is not a list");
    return at_->size();
  }
  json_place operator[](std::size_t index) const {
    json_place inside(*this);
    inside.path_ += '[' + std::to_string(index) + ']';
    if (index >= size()) inside.wrong("is missing");
    inside.at_ = &(*at_)[index];
    return inside;
  }

  bool has(const char* member) const { return at_->is_object() && at_->contains(member); }
  bool is_null() const { return at_->is_null(); }
  bool is_text() const { return at_->is_string(); }
  std::string text() const {
    if (!at_->is_string()) wrong("is not a string");
    return at_->get<std::string>();
  }
  double number() const {
    if (!at_->is_number()) wrong("is not a number");
    return at_->get<double>();
  }
  bool boolean() const {
    if (!at_->is_boolean()) wrong("is neither true nor false");
    return at_->get<bool>();
  }
  /// A whole number in [least, most].
  std::uint64_t natural(std::uint64_t least, std::uint64_t most) const {
    if (!at_->is_number_unsigned() || at_->get<std::uint64_t>() < least || at_->get<std::uint64_t>() > most)
      wrong("is not a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return at_->get<std::uint64_t>();
  }

  [[noreturn]] void wrong(const std::string& what) const {
    throw error(error_kind::invalid_argument, (path_.empty() ? "it" : path_) + ' ' + what, file_, remedy_);
  }

 private:
  const json* at_;
  std::string file_, remedy_, path_;
};

}  // namespace collage::inline v0
