// Range files: what is written is read, the text reads well, and whatever is no range file is refused in one sentence.
#include <collage/backends/portable.hpp>
#include <collage/calibrate/calibrate.hpp>
#include <collage/calibrate/histogram.hpp>
#include <collage/calibrate/merge.hpp>
#include <collage/io/ranges_file.hpp>
#include <collage/op/control.hpp>
#include <collage/ops.hpp>
#include <collage/run/buffers.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/messages.hpp"

namespace io_ranges_file_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::sentence_about;
using collage_test::temporary_folder;
using set = c::backend_set<c::portable>;

/// A convolution, a pool, weights, an infinite value, one that is always zero, and a branch of which one side runs.
c::graph network_of_all() {
  const auto side = [](double factor) {
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f32, {1, 2, 2, 2}});
    g.output("y", g(op::mul, x, g.scalar("factor", factor)));
    return std::make_shared<const c::graph>(g.finish());
  };
  c::graph_builder g;
  const c::value condition = g.input("condition", {c::dtype::boolean, {}});
  const c::value x = g.input("image/1", {c::dtype::f32, {1, 3, 4, 4}});
  const c::value w = g.constant("w", {c::dtype::f32, {2, 3, 1, 1}}, c::uniform{-1, 1});
  const c::value y = g(op::max_pool, g(op::conv, x, w), {.window = {2, 2}, .strides = {2, 2}});
  const c::value operands[] = {condition, y};
  const std::shared_ptr<const c::graph> bodies[] = {side(2), side(3)};
  g.output("z", g.add(c::kind_of<decltype(op::branch)>, operands, {}, "choice", bodies));
  g.output("infinite", g(op::reciprocal, g(op::relu, y)));
  g.output("zero", g(op::mul, y, g.scalar("nothing", 0)));
  c::graph made = g.finish();
  c::fill_constants(made);
  return made;
}

c::network_ranges ranges_of(const c::graph& network, const c::range_origin& how, std::uint64_t seed = 1) {
  c::calibration pass(network, c::table_of<set>);
  c::run_buffers memory(network);
  for (std::uint64_t i = 0; i < 3; ++i) {
    memory.randomise(seed + i);
    memory.in[0].as<std::uint8_t>()[0] = 1;
    pass.add(memory.inputs);
  }
  c::network_ranges made = std::move(pass).finish(how);
  made.network = "a \"quoted\" name";
  return made;
}

void expect_equal(const c::graph_ranges& a, const c::graph_ranges& b) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const c::value_range &x = a.values[i], &y = b.values[i];
    EXPECT_EQ(x.value, y.value);
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.seen, y.seen) << x.name;
    EXPECT_EQ(x.kept, y.kept) << x.name;
    EXPECT_EQ(x.how, y.how) << x.name;
    EXPECT_EQ(x.why, y.why) << x.name;
    EXPECT_EQ(x.same_as, y.same_as) << x.name;
    EXPECT_EQ(x.bad_sample, y.bad_sample) << x.name;
    ASSERT_EQ(x.numbers == nullptr, y.numbers == nullptr) << x.name;
    if (x.numbers != nullptr) { EXPECT_EQ(*x.numbers, *y.numbers) << x.name; }
  }
  ASSERT_EQ(a.bodies.size(), b.bodies.size());
  for (std::size_t i = 0; i < a.bodies.size(); ++i) {
    EXPECT_EQ(a.bodies[i].node, b.bodies[i].node);
    EXPECT_EQ(a.bodies[i].which, b.bodies[i].which);
    expect_equal(a.bodies[i].inside, b.bodies[i].inside);
  }
}

TEST(RangesFile, GivesBackWhatWasWritten) {
  const temporary_folder folder;
  const c::graph network = network_of_all();
  for (const c::range_method m :
       {c::range_method::minmax, c::range_method::percentile, c::range_method::entropy, c::range_method::mse})
    for (const c::quantisation_schema s : {c::quantisation_schema::asymmetric, c::quantisation_schema::symmetric,
                                           c::quantisation_schema::symmetric_unsigned}) {
      const c::range_origin how{.method = m, .percentile = 99.9, .schema = s, .per_channel = m != c::range_method::mse};
      const c::network_ranges made = ranges_of(network, how);
      c::save_ranges(folder.path("r.json"), made);
      const c::network_ranges read = c::load_ranges(folder.path("r.json"), network);
      EXPECT_EQ(read.network, made.network);
      EXPECT_EQ(read.fingerprint, made.fingerprint);
      EXPECT_EQ(read.made_by.method, m);
      EXPECT_EQ(read.made_by.percentile, 99.9);
      EXPECT_EQ(read.made_by.schema, s);
      EXPECT_EQ(read.made_by.per_channel, how.per_channel);
      EXPECT_EQ(read.made_by.samples, 3U);
      EXPECT_FALSE(read.made_by.is_random);
      expect_equal(read.top, made.top);
      c::save_ranges(folder.path("again.json"), read);
      EXPECT_EQ(collage_test::bytes_of(folder.path("again.json")), collage_test::bytes_of(folder.path("r.json")));
    }
}

TEST(RangesFile, FilesMergeAsRangesDo) {
  const temporary_folder folder;
  const c::graph network = network_of_all();
  const c::network_ranges a = ranges_of(network, {}, 1), b = ranges_of(network, {}, 40);
  c::save_ranges(folder.path("a.json"), a);
  c::save_ranges(folder.path("b.json"), b);
  const c::network_ranges all = c::merged(c::load_ranges(folder.path("a.json")), c::load_ranges(folder.path("b.json")));
  expect_equal(all.top, c::merged(a, b).top);
}

TEST(RangesFile, HasALineForEachValue) {
  const temporary_folder folder;
  const c::network_ranges made = ranges_of(network_of_all(), {});
  c::save_ranges(folder.path("r.json"), made);
  const std::string text = collage_test::bytes_of(folder.path("r.json"));
  for (const c::value_range& v : made.top.values) {
    const std::size_t at = text.find("\"name\": \"" + v.name + "\"");
    ASSERT_NE(at, std::string::npos) << v.name;
    EXPECT_EQ(text.rfind('\n', at) + 1, text.rfind("    {\"value\": ", at)) << v.name;
  }
}

TEST(RangesFile, CountsAreRunsOfNumbers) {
  const std::vector<std::uint64_t> counts = {3, 0, 0, 0, 7, 7, 1};
  EXPECT_EQ(c::detail::counts_to_text(counts), "3 0*3 7*2 1");
  const c::json text = "3 0*3 7*2 1";
  EXPECT_EQ(c::detail::counts_from_json(c::json_place(text, "", "")), counts);
  for (const char* wrong : {"x", "1 ", "1  2", "1*", "1*0", "-1", "1,2", "1*5000", "99999999999999999999"}) {
    const c::json damaged = wrong;
    EXPECT_THROW(c::detail::counts_from_json(c::json_place(damaged, "", "")), c::error) << wrong;
  }
}

TEST(RangesFile, NumbersAreAsShortAsTheyCanBe) {
  EXPECT_EQ(c::json(c::detail::short_number(0.1F)).dump(), "0.1");
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const float x = std::bit_cast<float>(bits);
    if (!std::isfinite(x)) continue;
    EXPECT_EQ(static_cast<float>(c::json::parse(c::json(c::detail::short_number(x)).dump()).get<double>()), x);
  }
}

/// A file with one text replaced by another.
class DamagedRanges : public testing::Test {
 protected:
  DamagedRanges() {
    c::save_ranges(path, ranges_of(network, {.schema = c::quantisation_schema::asymmetric, .per_channel = true}));
    text = collage_test::bytes_of(path);
  }
  std::string refusal(const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) changed.replace(at, from.size(), to);
    collage_test::write_file(path, changed);
    return sentence_about(path, [&] { c::load_ranges(path, network); }, 2);
  }

  const c::graph network = network_of_all();
  const temporary_folder folder;
  const std::string path = folder.path("r.json");
  std::string text;
};

TEST_F(DamagedRanges, AreRefusedInOneSentence) {
  EXPECT_EQ(refusal("collage ranges", "collage plan"),
            "is no file of ranges; name a file that collage calibrate wrote");
  EXPECT_EQ(refusal("\"version\": 1", "\"version\": 2"),
            "has version 2 of the format, and this program reads version 1; calibrate again, which writes new ranges");
  EXPECT_TRUE(refusal("{", "[").starts_with("is not JSON, as byte "));
  EXPECT_TRUE(refusal("minmax", "maxmin").starts_with("method is unknown"));
  EXPECT_TRUE(refusal("asymmetric", "lopsided").starts_with("schema is unknown"));
  EXPECT_TRUE(refusal("\"samples\": 3", "\"samples\": 0").starts_with("samples is not a whole number"));
  EXPECT_TRUE(refusal("\"percentile\": 99.99", "\"percentile\": 0").starts_with("percentile is not above 0"));
  EXPECT_TRUE(refusal("\"fingerprint\": \"", "\"fingerprint\": \"z").starts_with("fingerprint is not 16"));
  EXPECT_TRUE(
      refusal("\"fingerprint\": \"" + c::detail::hex_of(network.fingerprint()), "\"fingerprint\": \"0123456789abcdef")
          .starts_with("was made for another network ("));
  EXPECT_TRUE(refusal("image/1", "image/2").starts_with("has a range for image/2, which the network does not have"));
  EXPECT_TRUE(refusal("\"count\": 144", "\"count\": 145").starts_with("values[0].numbers is not the histogram of any"));
  EXPECT_TRUE(refusal("\"bins\": 4096", "\"bins\": 1").starts_with("values[0].numbers.bins is not a whole number"));
  EXPECT_TRUE(refusal("\"kept\": [", "\"kept\": [1, ").starts_with("values[0].kept is not a list of two numbers"));
  EXPECT_TRUE(refusal("\"scale\": ", "\"scale\": -").starts_with("values[0].scale is not above zero"));
  EXPECT_TRUE(refusal("\"zero_point\": ", "\"zero_point\": 1e3, \"was\": ").starts_with("values[0].zero_point is not"));
  EXPECT_TRUE(refusal("\"type\": \"uint8\"", "\"type\": \"uint4\"").starts_with("values[0].type is neither int8 nor"));
  EXPECT_TRUE(refusal("\"scales\": [", "\"scales\": [1, ").starts_with("has a wrong number of scales for w"));
  EXPECT_TRUE(refusal("\"why\": ", "\"because\": ").find("has neither numbers nor a reason") != std::string::npos);
  EXPECT_TRUE(refusal("\"same_as\": ", "\"same_as\": 9").find("same_as is no value with a range") != std::string::npos);
  EXPECT_EQ(sentence_about(
                "none.json", [] { c::load_ranges("none.json"); }, 2),
            "cannot be read: No such file or directory; check the path");
  EXPECT_TRUE(sentence_about(
                  folder.path("no/r.json"), [&] { c::save_ranges(folder.path("no/r.json"), {}); }, 2)
                  .starts_with("cannot be written: "));
}

TEST_F(DamagedRanges, AreNeverReadPastTheirEnd) {
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    std::string changed = text;
    if (i % 2 == 0) changed.resize(random() % changed.size());
    else changed[random() % changed.size()] = static_cast<char>(' ' + random() % 90);
    collage_test::write_file(path, changed);
    try {
      c::load_ranges(path, network);
    } catch (const c::error& e) { EXPECT_EQ(e.exit_code(), 2) << e.what(); }
  }
}

}  // namespace io_ranges_file_test
