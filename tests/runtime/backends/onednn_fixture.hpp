// What oneDNN's tests share.
#pragma once

#include "cases.hpp"

#include <collage/backends/onednn.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace collage_test {

class onednn_test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!check.available()) GTEST_SKIP() << check.why_not();
    lenient.must_cover = false;  // the library has only slow loops for some odd shapes, and those are refused
    special.must_cover = false;
    special.range.specials = 0.02;
  }
  bool built(const std::string& piece) const {
    return std::any_of(check.kernels().begin(), check.kernels().end(),
                       [&](const auto& k) { return k.first.find(piece) != std::string::npos; });
  }
  /// Whether a kernel was built whose name ends so.
  bool built_as(const std::string& end) const {
    return std::any_of(check.kernels().begin(), check.kernels().end(),
                       [&](const auto& k) { return k.first.ends_with(end); });
  }
  backend_checker<collage::onednn> check;
  check_options lenient, special;
};

}  // namespace collage_test
