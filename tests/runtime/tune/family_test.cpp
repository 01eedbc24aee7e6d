// Families: the keys, and families by how well models predict each other.
#include <collage/error.hpp>
#include <collage/tune/family.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tune_family_test {
namespace {

namespace tune = collage::tune;
using families = std::vector<std::size_t>;

const tune::member_operator conv = {"conv", "", true}, depthwise = {"conv", "depthwise", true}, relu = {"relu", ""},
                            add = {"add", ""};

std::vector<tune::subgraph> groups() {
  return {{"direct", {conv, relu}},
          {"direct", {conv, add, relu}},
          {"depthwise", {depthwise, relu}},
          {"direct", {conv, add}}};
}

TEST(tune_family, keys_are_those_of_the_paper) {
  EXPECT_EQ(tune::by_core_operator(groups()[1]), "conv");
  EXPECT_EQ(tune::by_core_operator(groups()[2]), "conv depthwise");
  EXPECT_EQ(tune::by_core_operator({"sums", {add, relu}}), "add");
  EXPECT_EQ(tune::by_core_operator({"none", {}}), "nothing");
  EXPECT_EQ(tune::by_operator_sequence(groups()[1]), "conv, add, relu");
  EXPECT_EQ(tune::by_operator_count(groups()[1]), "3 operators");
  EXPECT_EQ(tune::families_of(groups(), tune::by_core_operator), (families{0, 0, 1, 0}));
  EXPECT_EQ(tune::families_of(groups(), tune::by_operator_sequence), (families{0, 1, 2, 3}));
}

TEST(tune_family, depthwise_and_dense_convolutions_are_apart_by_every_key) {
  EXPECT_EQ(tune::families_of(groups(), tune::by_operator_count), (families{0, 1, 2, 0}));
  EXPECT_EQ(tune::families_of(groups(), [](const tune::subgraph&) { return "all"; }), (families{0, 0, 1, 0}));
}

TEST(tune_family, pairs_are_counted) {
  const std::vector<double> times = {1, 2, 4};
  EXPECT_EQ(tune::share_of_ordered_pairs(std::vector<float>{3, 2, 1}, times), 1);
  EXPECT_EQ(tune::share_of_ordered_pairs(std::vector<float>{1, 2, 3}, times), 0);
  EXPECT_NEAR(tune::share_of_ordered_pairs(std::vector<float>{3, 1, 2}, times), 2.0 / 3, 1e-12);
  EXPECT_EQ(tune::share_of_ordered_pairs(std::vector<float>{1, 1, 1}, times), 0.5);
  EXPECT_EQ(tune::share_of_ordered_pairs(std::vector<float>{1, 2}, std::vector<double>{1, 1.01}), 1)
      << "no pair differs";
  EXPECT_THROW(tune::share_of_ordered_pairs(std::vector<float>{1}, times), collage::error);
}

TEST(tune_family, learned_families_follow_the_smaller_agreement) {
  // 0 and 1 agree; 2 predicts both well, but neither predicts 2.
  const tune::agreement_table table = {3, {1, .95, .6, .92, 1, .6, .95, .95, 1}};
  EXPECT_EQ(tune::learned_families(table, 0.9), (families{0, 0, 1}));
  EXPECT_EQ(tune::learned_families(table, 0.93), (families{0, 1, 2}));
  EXPECT_EQ(tune::learned_families(table, 0.5), (families{0, 0, 0}));
  EXPECT_EQ(tune::learned_families({0, {}}, 0.5), families{});
  EXPECT_THROW(tune::learned_families({2, {1, 1, 1}}, 0.5), collage::error);
  EXPECT_THROW(tune::learned_families({1, {1.5}}, 0.5), collage::error);
}

}  // namespace
}  // namespace tune_family_test
