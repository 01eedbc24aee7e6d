// What Eigen's tests share.
#pragma once

#include "cases.hpp"

#include <collage/backends/eigen.hpp>

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace collage_test {

class eigen_test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!check.available()) GTEST_SKIP() << check.why_not();
    specials.range.specials = 0.02;
    chain.must_cover = true;
    chain.range.specials = 0.01;
  }
  void TearDown() override { EXPECT_EQ(check.allocations_while_running(), 0U); }
  /// One operator over inputs of some shapes.
  template <class Kind>
  void one(const Kind& kind, const std::vector<shape>& inputs, const typename Kind::attributes& attributes = {},
           const check_options& options = {}, collage::dtype type = collage::dtype::f32) {
    check(
        [&](graph_builder& g, data_source&) {
          std::vector<value> operands;
          for (const shape& dims : inputs) {
            const std::string name = "x" + std::to_string(operands.size());
            operands.push_back(g.input(name.c_str(), {type, dims}));
          }
          return g(kind, std::span<const value>(operands), attributes);
        },
        options);
  }
  backend_checker<collage::eigen> check;
  check_options specials, chain;
};

}  // namespace collage_test
