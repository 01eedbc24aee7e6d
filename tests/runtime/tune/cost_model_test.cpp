// Cost models: what they learn, that they are reproducible, and that damaged and foreign ones are ignored.
#include <collage/error.hpp>
#include <collage/io/file.hpp>
#include <collage/tune/cost_model.hpp>
#include <collage/tune/random.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace tune_cost_model_test {
namespace {

namespace c = collage;
namespace tune = collage::tune;

constexpr double infinite = std::numeric_limits<double>::infinity();
const tune::model_subject subject = {"small1", "conv", "a processor", 77, 2};

/// Times of x + 10 y.
tune::training_set samples() {
  tune::training_set set;
  tune::random_source random(1);
  for (int i = 0; i < 200; ++i) {
    const auto x = static_cast<float>(random.below(10)), y = static_cast<float>(random.below(10));
    set.add(std::array{x, y}, 1 + x + 10 * y, 1);
  }
  return set;
}

class tune_cost_model : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = tune::cost_model::refusal(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST(tune_samples, bad_ones_are_refused) {
  tune::training_set set;
  set.add(std::array{1.0F, 2.0F}, 4, 1);
  set.add(std::array{1.0F, 3.0F}, infinite, 1);
  EXPECT_EQ(set.throughputs, (std::vector<float>{0.25F, 0})) << "a point that failed is infinitely slow";
  EXPECT_THROW(set.add(std::array{1.0F}, 4, 1), c::error);
  EXPECT_THROW(set.add(std::array{1.0F, static_cast<float>(infinite)}, 4, 1), c::error);
  EXPECT_THROW(set.add(std::array{1.0F, 2.0F}, 0, 1), c::error);
  EXPECT_THROW(set.add(std::array{1.0F, 2.0F}, std::numeric_limits<double>::quiet_NaN(), 1), c::error);
  EXPECT_EQ(set.size(), 2U);
}

TEST_F(tune_cost_model, faster_points_are_predicted_to_be_faster) {
  const auto model = tune::cost_model::train(subject, samples());
  const std::vector<float> found = model.predict(std::array{0.0F, 0.0F, 0.0F, 1.0F, 0.0F, 8.0F});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_GT(found[0], found[1]);
  EXPECT_GT(found[1], found[2]);
  EXPECT_EQ(model.samples(), 200U);
  EXPECT_TRUE(model.predict({}).empty());
  EXPECT_THROW(static_cast<void>(model.predict(std::array{1.0F})), c::error);
}

TEST_F(tune_cost_model, the_same_samples_give_the_same_bytes) {
  const auto first = tune::cost_model::train(subject, samples()), second = tune::cost_model::train(subject, samples());
  EXPECT_EQ(first.bytes(), second.bytes());
  EXPECT_NE(first.bytes(), tune::cost_model::train(subject, samples(), {.trees = 10}).bytes());
}

TEST_F(tune_cost_model, a_model_without_samples_is_refused) {
  EXPECT_THROW(tune::cost_model::train(subject, {}), c::error);
  EXPECT_THROW(tune::cost_model::train({"small1", "two\nlines", "", 0, 2}, samples()), c::error);
  EXPECT_THROW(tune::cost_model::train({"small1", "", "", 0, 3}, samples()), c::error);
}

TEST_F(tune_cost_model, a_model_is_read_back) {
  const auto model = tune::cost_model::train(subject, samples());
  const auto found = tune::cost_model::read(model.bytes(), subject);
  ASSERT_TRUE(found.model) << found.ignored;
  const std::array rows = {1.0F, 1.0F, 5.0F, 2.0F};
  EXPECT_EQ(found.model->predict(rows), model.predict(rows));
  EXPECT_EQ(found.model->bytes(), model.bytes());
  EXPECT_EQ(found.model->samples(), 200U);
}

TEST_F(tune_cost_model, damaged_and_foreign_models_are_ignored_with_a_sentence) {
  const std::string bytes = tune::cost_model::train(subject, samples()).bytes();
  const auto ignored = [&](const std::string& of, const std::string& why, tune::model_subject expected = subject) {
    const auto found = tune::cost_model::read(of, expected);
    EXPECT_FALSE(found.model);
    EXPECT_EQ(found.ignored, "a cost model was ignored: " + why);
  };
  const std::string damaged = "it is damaged or cut short", other = "it is no model, or one of another version";
  for (const std::size_t size : {std::size_t{40}, bytes.size() / 2, bytes.size() - 1})
    ignored(bytes.substr(0, size), damaged);
  for (std::size_t at = 16; at < bytes.size(); at += bytes.size() / 50) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ignored(changed, damaged);
  }
  ignored("", other);
  ignored("SQLite format 3", other);
  ignored("collage-model 2" + bytes.substr(15), other);
  const std::string foreign = "it is for another space, family, machine, or other features";
  ignored(bytes, foreign, {"small2", "conv", "a processor", 77, 2});
  ignored(bytes, foreign, {"small1", "matmul", "a processor", 77, 2});
  ignored(bytes, foreign, {"small1", "conv", "another", 77, 2});
  ignored(bytes, foreign, {"small1", "conv", "a processor", 78, 2});
}

TEST_F(tune_cost_model, models_are_kept_beside_the_store) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "collage_models";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string file = tune::cost_model::file_beside((folder / "costs.db").string(), subject);
  EXPECT_NE(file, tune::cost_model::file_beside((folder / "costs.db").string(), {"small1", "matmul", "", 77, 2}));
  const auto none = tune::cost_model::load(file, subject);
  EXPECT_FALSE(none.model);
  EXPECT_EQ(none.ignored, "") << "a model that is not there yet is no fault";
  const auto model = tune::cost_model::train(subject, samples());
  model.save(file);
  const auto found = tune::cost_model::load(file, subject);
  ASSERT_TRUE(found.model) << found.ignored;
  EXPECT_EQ(found.model->bytes(), model.bytes());
  c::write_file(file, model.bytes().substr(0, 100));
  EXPECT_EQ(tune::cost_model::load(file, subject).ignored,
            file + ": a cost model was ignored: it is damaged or cut short");
  c::write_file((folder / "plain").string(), "");
  EXPECT_THROW(model.save((folder / "plain" / "model").string()), c::error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tune_cost_model_test
