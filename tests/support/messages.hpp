// What errors say.
#pragma once

#include <collage/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

namespace collage_test {

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The message of the error that a call throws, which must be of the `kind` if one is given; "no error" where it throws none.
template <class Call>
std::string message_of(const Call& call, std::optional<collage::error_kind> kind = std::nullopt) {
  try {
    call();
  } catch (const collage::error& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind.value_or(e.kind()))) << e.what();
    return e.what();
  }
  return "no error";
}

/// The same where it is the exit code that matters.
template <class Call>
std::string message_of(const Call& call, int exit_code) {
  try {
    call();
  } catch (const collage::error& e) {
    EXPECT_EQ(e.exit_code(), exit_code) << e.what();
    return e.what();
  }
  return "no error";
}

/// The same of a call that reads or writes a file: text that begins with the path, which is left out of the result.
template <class Call, class Expected>
std::string message_about(const std::string& path, const Call& call, Expected expected) {
  bool returned = false;
  const std::string text = message_of(
      [&] {
        call();
        returned = true;
      },
      expected);
  if (returned) return text;
  EXPECT_TRUE(text.starts_with(path + ": ")) << text;
  return text.substr(std::min(text.size(), path.size() + 2));
}

/// The same where it must be one line.
template <class Call, class Expected>
std::string sentence_about(const std::string& path, const Call& call, Expected expected) {
  const std::string text = message_about(path, call, expected);
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  return text;
}

}  // namespace collage_test
