// The words of a command line, and how a program ends.
#pragma once

#include <collage/error.hpp>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace families {

/// Words in turn. Errors are invalid_argument, with the usage.
class command_words {
 public:
  command_words(int argc, char** argv, const char* program, const char* usage)
      : argc_(argc), argv_(argv), program_(program), usage_(usage) {}

  bool is_left() const { return at_ < argc_; }
  std::string_view take() { return word_ = argv_[at_++]; }
  /// The value of the option that was taken last.
  std::string_view value() {
    if (!is_left()) fail("'" + std::string(word_) + "' needs a value");
    return argv_[at_++];
  }
  std::size_t number(std::size_t most) {
    const std::string_view digits = value();
    std::size_t read = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), read);
    if (fault != std::errc() || end != digits.data() + digits.size() || read < 1 || read > most)
      fail("'" + std::string(digits) + "' is no number from 1 to " + std::to_string(most));
    return read;
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw collage::error(collage::error_kind::invalid_argument, why, program_, usage_);
  }

 private:
  int argc_;
  char** argv_;
  const char* program_;
  const char* usage_;
  int at_ = 1;
  std::string_view word_ = {};
};

/// The exit status of a program. An error is printed as one sentence.
template <class Run>
int status_of(const Run& run) {
  try {
    return run();
  } catch (const collage::error& why) {
    std::fprintf(stderr, "%s\n", why.what());
    return why.exit_code();
  }
}

}  // namespace families
