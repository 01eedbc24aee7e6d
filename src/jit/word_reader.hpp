// Reads the words of a configuration's canonical text.
#pragma once

#include <collage/error.hpp>

#include <charconv>
#include <string>
#include <string_view>

namespace collage::inline v0::detail::jit {

/// Reads the words of a text one after the other. Each error names the text and shows an example of a right one.
class word_reader {
 public:
  word_reader(std::string_view text, std::string example) : text_(text), rest_(text), example_(std::move(example)) {}

  std::string_view word(const char* what) {
    if (rest_.empty()) refuse(std::string("it ends where ") + what + " is expected");
    const std::size_t end = rest_.find(' ');
    const std::string_view found = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    return found;
  }
  /// Reads a name of one or several words if it comes next.
  bool take(std::string_view name) {
    if (!rest_.starts_with(name) || (rest_.size() > name.size() && rest_[name.size()] != ' ')) return false;
    rest_ = rest_.size() == name.size() ? std::string_view() : rest_.substr(name.size() + 1);
    return true;
  }
  void literally(const char* expected) {
    const std::string_view found = word(expected);
    if (found != expected) refuse("it has '" + std::string(found) + "' where '" + expected + "' is expected");
  }
  /// The first word, which is a generator with its version.
  void version(const std::string& expected) {
    const std::string_view found = word("the generator's version");
    if (found != expected)
      refuse("it is for the generator '" + std::string(found) + "', and this one is '" + expected + "'");
  }
  int number(const char* what, std::string_view digits) const {
    int value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (fault != std::errc() || end != digits.data() + digits.size() || value < 0)
      refuse(std::string(what) + " is '" + std::string(digits) + "', which is not a number");
    return value;
  }
  int number(const char* what) { return number(what, word(what)); }

  /// Refuses a text with further words, spaces or zeros: it is no key.
  void must_be(const std::string& canonical) const {
    if (canonical != text_) refuse("it is written as '" + canonical + "'");
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw error(error_kind::invalid_argument, why, "the configuration '" + std::string(text_) + "'",
                "a configuration looks like '" + example_ + "'");
  }

 private:
  std::string_view text_, rest_;
  std::string example_;
};

}  // namespace collage::inline v0::detail::jit
