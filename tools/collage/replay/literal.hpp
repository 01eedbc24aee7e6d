// Literals of Python, as far as the keys of published cost files hold them.
#pragma once

#include <collage/error.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace program::replay {

/// None, a whole number, a string, a tuple, or a frozenset of such.
struct literal {
  enum class kind { none, number, text, tuple, set };
  kind is = kind::none;
  std::int64_t number = 0;
  std::string text;
  std::vector<literal> items;
};

/// Reads one literal that fills the whole text. Throws `collage::error` that names `where` and the place in the text.
class literal_reader {
 public:
  literal_reader(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  literal read() {
    literal result = value(0);
    if (at_ != text_.size()) wrong("there is text after the end");
    return result;
  }

 private:
  static constexpr int most_nested = 16;

  [[noreturn]] void wrong(const char* what) const {
    throw collage::error(collage::error_kind::invalid_argument,
                         std::string(what) + " at character " + std::to_string(at_ + 1) + " of '" +
                             std::string(text_.substr(0, 80)) + "'",
                         where_, "use the published file unchanged");
  }
  bool takes(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  literal value(int depth) {
    if (depth > most_nested) wrong("brackets are nested too deeply");
    literal result;
    if (takes("None")) return result;
    if (takes("frozenset({")) {
      result.is = literal::kind::set;
      list(result.items, "})", depth);
    } else if (takes("(")) {
      result.is = literal::kind::tuple;
      list(result.items, ")", depth);
    } else if (takes("'")) {
      result.is = literal::kind::text;
      const std::size_t end = text_.find('\'', at_);
      if (end == std::string_view::npos) wrong("a string has no closing quote");
      result.text = text_.substr(at_, end - at_);
      at_ = end + 1;
    } else {
      result.is = literal::kind::number;
      const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), result.number);
      if (read.ec != std::errc()) wrong("a number, string, tuple, set or None is missing");
      at_ = static_cast<std::size_t>(read.ptr - text_.data());
    }
    return result;
  }

  void list(std::vector<literal>& items, std::string_view close, int depth) {
    while (!takes(close)) {
      items.push_back(value(depth + 1));
      if (takes(close)) return;
      if (!takes(",")) wrong("a comma or bracket is missing");
      skip_spaces();
    }
  }

  std::string_view text_;
  std::string where_;
  std::size_t at_ = 0;
};

}  // namespace program::replay
