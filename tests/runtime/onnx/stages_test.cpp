// Where a stage ends: each kind of boundary, with results that are computed here.
#ifdef COLLAGE_HAS_ONNX
#include <gtest/gtest.h>

#include <collage/run/session.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "running.hpp"
#include "support/messages.hpp"
#include "support/random_numbers.hpp"
#include "support/sessions.hpp"
#include "writer.hpp"

namespace onnx_stages_test {

namespace c = collage;
using namespace collage_test;
using proto::TensorProto;
using floats = std::vector<float>;
using integers = std::vector<std::int64_t>;

/// More than a stage is made for. Whole numbers, so that results are exact.
constexpr std::int64_t many = 80;
floats some_numbers(random_numbers& random, std::int64_t count = many) {
  floats list(static_cast<std::size_t>(count));
  for (float& x : list) x = static_cast<float>(random.number(-3, 3));
  return list;
}
c::tensor column(const floats& list) { return tensor_with<float>({std::ssize(list)}, list); }

void add_scalars(proto::GraphProto& g) {
  add_initializer(g, tensor_of<float>("zero", {}, {0}));
  add_initializer(g, tensor_of<std::int64_t>("none", {1}, {0}));
  add_initializer(g, tensor_of<std::int64_t>("one", {1}, {1}));
  add_initializer(g, tensor_of<bool>("yes", {}, {true}));
}
/// How many elements of x are positive, as int64.
void add_count(proto::GraphProto& g, const std::string& x, const std::string& count) {
  add_node(g, "Greater", {x, "zero"}, {count + "_is"});
  add_node(g, "Cast", {count + "_is"}, {count + "_n"}, {attribute("to", 7)});
  add_node(g, "ReduceSum", {count + "_n"}, {count}, {attribute("keepdims", 0)});
}
std::int64_t positive(const floats& x) {
  return std::count_if(x.begin(), x.end(), [](float e) { return e > 0; });
}

TEST(onnx_stages, compress_keeps_what_its_condition_says) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N", 2});
  add_input(g, "by", {"N"});
  add_scalars(g);
  add_node(g, "Greater", {"by", "zero"}, {"is"});
  add_node(g, "Compress", {"x", "is"}, {"rows"}, {attribute("axis", 0)});
  add_node(g, "Neg", {"rows"}, {"y"});
  add_output(g, "y", {"M", 2});
  running run(model);
  random_numbers random;
  for (int i = 0; i < 4; ++i) {
    const floats by = some_numbers(random), x = some_numbers(random, 2 * many);
    floats expected;
    for (std::size_t r = 0; r < by.size(); ++r)
      if (by[r] > 0) expected.insert(expected.end(), {-x[2 * r], -x[2 * r + 1]});
    EXPECT_EQ(list_of<float>(run({tensor_with<float>({many, 2}, x), column(by)})[0]), expected) << random.seed();
  }
}

TEST(onnx_stages, unique_and_the_results_that_are_read) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_node(g, "Unique", {"x"}, {"values", "first", "", "counts"});
  add_node(g, "Add", {"values", "values"}, {"twice"});
  add_output(g, "twice", {"M"});
  add_output(g, "counts", {"M"}, TensorProto::INT64);  // the late operator's own
  running run(model);
  random_numbers random;
  for (int i = 0; i < 4; ++i) {
    const floats x = some_numbers(random, random.number(1, 9));
    std::map<float, std::int64_t> counts;
    for (const float e : x) ++counts[e];
    floats twice;
    integers times;
    for (const auto& [e, n] : counts) {
      twice.push_back(2 * e);
      times.push_back(n);
    }
    const auto outputs = run({column(x)});
    EXPECT_EQ(list_of<float>(outputs[0]), twice) << random.seed();
    EXPECT_EQ(list_of<std::int64_t>(outputs[1]), times) << random.seed();
  }
}

TEST(onnx_stages, boxes_that_are_not_suppressed) {
  // Boxes of one row, side by side or on top of each other; the best of each group remains. Then they are gathered.
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "boxes", {1, "B", 4});
  add_input(g, "scores", {1, 1, "B"});
  add_initializer(g, tensor_of<std::int64_t>("most", {}, {100}));
  add_initializer(g, tensor_of<float>("overlap", {}, {0.5F}));
  add_initializer(g, tensor_of<float>("least", {}, {0}));
  add_initializer(g, tensor_of<std::int64_t>("last", {}, {2}));
  add_node(g, "Relu", {"scores"}, {"positive"});  // the operator's operands are computed
  add_node(g, "NonMaxSuppression", {"boxes", "positive", "most", "overlap", "least"}, {"kept"});
  add_node(g, "Gather", {"kept", "last"}, {"at"}, {attribute("axis", 1)});
  add_node(g, "Gather", {"boxes", "at"}, {"found"}, {attribute("axis", 1)});
  add_output(g, "found", {1, "M", 4});
  running run(model);
  random_numbers random;
  for (int i = 0; i < 6; ++i) {
    const std::int64_t count = random.number(0, 7);
    floats boxes, scores, expected;
    std::vector<std::pair<float, float>> best;  // score and place, by group
    for (std::int64_t b = 0; b < count; ++b) {
      const auto group = static_cast<float>(random.number(0, 2)), score = static_cast<float>(b * 7 % 5 + 10 * b - 15);
      boxes.insert(boxes.end(), {0, 2 * group, 1, 2 * group + 1});
      scores.push_back(score);
      if (score <= 0) continue;
      const auto found = std::find_if(best.begin(), best.end(), [&](const auto& p) { return p.second == group; });
      if (found == best.end()) best.emplace_back(score, group);
      else found->first = std::max(found->first, score);
    }
    std::sort(best.begin(), best.end(), std::greater<>());
    for (const auto& [score, group] : best) expected.insert(expected.end(), {0, 2 * group, 1, 2 * group + 1});
    const auto found = run({tensor_with<float>({1, count, 4}, boxes), tensor_with<float>({1, 1, count}, scores)})[0];
    EXPECT_EQ(found.contents.type.dims, (c::shape{1, std::ssize(best), 4}));
    EXPECT_EQ(list_of<float>(found), expected) << random.seed();
  }
}

TEST(onnx_stages, one_after_another_and_side_by_side) {
  // Two late operators after the first stage, and one after the second that reads the results of both. A constant that the first
  // stage computes from shapes is needed in the last.
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "a", {"A"});
  add_input(g, "b", {"B"});
  add_scalars(g);
  add_node(g, "Shape", {"a"}, {"length"});
  for (const std::string x : {"a", "b"}) {
    add_node(g, "Greater", {x, "zero"}, {x + "_is"});
    add_node(g, "Compress", {x, x + "_is"}, {x + "_kept"});
  }
  add_node(g, "Concat", {"a_kept", "b_kept"}, {"both"}, {attribute("axis", 0)});
  add_node(g, "Unique", {"both"}, {"different"});
  add_node(g, "Unsqueeze", {"different", "none"}, {"row"});
  add_initializer(g, tensor_of<std::int64_t>("rest", {1}, {1}));
  add_node(g, "Concat", {"length", "rest"}, {"target"}, {attribute("axis", 0)});
  add_node(g, "Expand", {"row", "target"}, {"y"});
  add_output(g, "y", {"A", "M"});
  add_output(g, "b", {"B"});  // an input
  running run(model);
  random_numbers random;
  for (int i = 0; i < 5; ++i) {
    const floats a = some_numbers(random, random.number(1, 6)), b = some_numbers(random, random.number(0, 6));
    std::set<float> different;
    for (const floats& list : {a, b})
      for (const float e : list)
        if (e > 0) different.insert(e);
    const auto outputs = run({column(a), column(b)});
    EXPECT_EQ(outputs[0].contents.type.dims, (c::shape{std::ssize(a), std::ssize(different)}));
    floats expected;
    for (std::size_t r = 0; r < a.size(); ++r) expected.insert(expected.end(), different.begin(), different.end());
    EXPECT_EQ(list_of<float>(outputs[0]), expected) << random.seed();
    EXPECT_EQ(list_of<float>(outputs[1]), b);
  }
}

/// A branch that reads x.
proto::GraphProto branch(const std::string& operator_type, const std::vector<std::string>& more = {}) {
  proto::GraphProto body;
  const std::string name = operator_type + "_result";
  body.set_name(name);
  std::vector<std::string> operands{"x"};
  operands.insert(operands.end(), more.begin(), more.end());
  add_node(body, operator_type, operands, {name});
  add_output(body, name, {});
  return body;
}
/// y = positive_count(x) > 1 ? then : otherwise
proto::ModelProto branching(const proto::GraphProto& then, const proto::GraphProto& otherwise, int type) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_scalars(g);
  add_initializer(g, tensor_of<std::int64_t>("limit", {}, {1}));
  add_initializer(g, tensor_of<std::int64_t>("square", {2}, {9, 9}));
  add_count(g, "x", "count");
  add_node(g, "Greater", {"count", "limit"}, {"condition"});
  add_node(g, "If", {"condition"}, {"y"}, {attribute("then_branch", then), attribute("else_branch", otherwise)});
  add_output(g, "y", {}, type);
  return model;
}

TEST(onnx_stages, a_branch_that_is_not_possible_is_not_taken) {
  running run(branching(branch("Neg"), branch("Reshape", {"square"}), TensorProto::FLOAT));
  floats x(many, -1.0F);
  x[3] = x[9] = 2;
  floats negative;
  for (const float e : x) negative.push_back(-e);
  EXPECT_EQ(list_of<float>(run({column(x)})[0]), negative);
  const std::string why = run.refusal({column(floats(many, -1.0F))});
  EXPECT_TRUE(contains(why, "Reshape")) << why;
  EXPECT_EQ(run({column(floats(81, -1.0F))})[0].contents.type.dims, (c::shape{9, 9}));
}

TEST(onnx_stages, a_branch_that_data_decides_within) {
  running run(branching(branch("NonZero"), branch("Shape"), TensorProto::INT64));
  floats x(many, 0.0F);
  EXPECT_EQ(list_of<std::int64_t>(run({column(x)})[0]), integers{many});
  x[3] = x[9] = 2;
  x[5] = -1;
  EXPECT_EQ(list_of<std::int64_t>(run({column(x)})[0]), (integers{3, 5, 9}));
}

/// Body of a loop over one carried list: it appends the number of the round. Its second result is stacked.
proto::GraphProto appending(const std::string& condition) {
  proto::GraphProto body;
  body.set_name("body");
  add_input(body, "i", {}, TensorProto::INT64);
  add_input(body, "c", {}, TensorProto::BOOL);
  add_input(body, "v", {"K"});
  add_node(body, "Cast", {"i"}, {"real"}, {attribute("to", 1)});
  add_node(body, "Unsqueeze", {"real", "none"}, {"element"});
  add_node(body, "Concat", {"v", "element"}, {"longer"}, {attribute("axis", 0)});
  add_node(body, "Neg", {"real"}, {"each"});
  if (condition.empty()) {
    add_node(body, "Identity", {"c"}, {"goes_on"});
  } else {  // while the last element of x after this many is positive
    add_node(body, "Gather", {condition, "i"}, {"now"});
    add_node(body, "Greater", {"now", "zero"}, {"goes_on"});
  }
  add_output(body, "goes_on", {}, TensorProto::BOOL);
  add_output(body, "longer", {"K"});
  add_output(body, "each", {});
  return body;
}

TEST(onnx_stages, a_loop_of_as_many_rounds_as_the_data_says) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_scalars(g);
  add_count(g, "x", "count");
  add_initializer(g, tensor_of<float>("start", {1}, {7}));
  add_node(g, "Loop", {"count", "yes", "start"}, {"list", "stacked"}, {attribute("body", appending(""))});
  add_output(g, "list", {"K"});
  add_output(g, "stacked", {"M"});
  running run(model);
  for (const std::size_t count : {3U, 0U, 5U, 3U}) {
    floats x(many, -1.0F), list{7}, stacked;
    for (std::size_t i = 0; i < count; ++i) {
      x[7 * i] = 1;
      list.push_back(static_cast<float>(i));
      stacked.push_back(-static_cast<float>(i));
    }
    const auto outputs = run({column(x)});
    EXPECT_EQ(list_of<float>(outputs[0]), list);
    EXPECT_EQ(list_of<float>(outputs[1]), stacked);
  }
}

TEST(onnx_stages, a_loop_that_data_ends) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_scalars(g);
  add_initializer(g, tensor_of<float>("start", {1}, {7}));
  add_initializer(g, tensor_of<std::int64_t>("rounds", {}, {20}));
  add_node(g, "Add", {"x", "zero"}, {"same"});  // computed, so that a stage ends before the loop
  add_node(g, "Loop", {"rounds", "yes", "start"}, {"list", "stacked"}, {attribute("body", appending("same"))});
  add_output(g, "list", {"K"});
  add_output(g, "stacked", {"M"});
  running run(model);
  for (const std::size_t last : {4U, 0U, 19U}) {
    floats x(many, 1.0F), list{7}, stacked;
    x[last] = -1;
    for (std::size_t i = 0; i <= last; ++i) {
      list.push_back(static_cast<float>(i));
      stacked.push_back(-static_cast<float>(i));
    }
    const auto outputs = run({column(x)});
    EXPECT_EQ(list_of<float>(outputs[0]), list);
    EXPECT_EQ(list_of<float>(outputs[1]), stacked);
  }
}

/// A loop of two rounds whose body needs the contents of x: the places of its elements that are not 0.
proto::ModelProto places_in_a_loop() {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_scalars(g);
  add_initializer(g, tensor_of<std::int64_t>("rounds", {}, {2}));
  proto::GraphProto body;
  body.set_name("body");
  add_input(body, "i", {}, TensorProto::INT64);
  add_input(body, "c", {}, TensorProto::BOOL);
  add_node(body, "NonZero", {"x"}, {"places"});
  add_node(body, "Identity", {"c"}, {"goes_on"});
  add_output(body, "goes_on", {}, TensorProto::BOOL);
  add_output(body, "places", {1, "M"}, TensorProto::INT64);
  add_node(g, "Loop", {"rounds", "yes"}, {"y"}, {attribute("body", body)});
  add_output(g, "y", {2, 1, "M"}, TensorProto::INT64);
  return model;
}

TEST(onnx_stages, contents_that_the_body_of_a_loop_needs) {
  running run(places_in_a_loop());
  floats x(many, 0.0F);
  x[2] = x[70] = 1;
  EXPECT_EQ(list_of<std::int64_t>(run({column(x)})[0]), (integers{2, 70, 2, 70}));
  x[2] = 0;
  EXPECT_EQ(list_of<std::int64_t>(run({column(x)})[0]), (integers{70, 70}));
}

TEST(onnx_stages, contents_that_are_too_large_to_be_needed) {
  running run(places_in_a_loop());
  const std::string why = run.refusal({column(floats(3 << 20, 1.0F))});
  EXPECT_TRUE(contains(why, "depends on the contents of 12 MiB of values")) << why;
  EXPECT_TRUE(contains(why, "at most 4 MiB are supported")) << why;
}

TEST(onnx_stages, a_function_of_the_model_that_data_decides_within) {
  proto::ModelProto model = new_model();
  auto& import = *model.add_opset_import();
  import.set_domain("own");
  import.set_version(1);
  auto& function = *model.add_functions();
  function.set_name("places");
  function.set_domain("own");
  function.add_input("in");
  function.add_output("out");
  auto& own = *function.add_opset_import();
  own.set_domain("");
  own.set_version(17);
  add_node(function, "NonZero", {"in"}, {"at"});
  add_node(function, "Add", {"at", "at"}, {"out"});
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_node(g, "Neg", {"x"}, {"computed"});
  auto& call = add_node(g, "places", {"computed"}, {"y"});
  call.set_domain("own");
  add_output(g, "y", {1, "M"}, TensorProto::INT64);
  running run(model);
  floats x(many, 0.0F);
  x[2] = x[70] = 1;
  EXPECT_EQ(list_of<std::int64_t>(run({column(x)})[0]), (integers{4, 140}));
}

TEST(onnx_stages, a_scan_that_data_decides_within) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {2, many});
  proto::GraphProto body;
  body.set_name("body");
  add_input(body, "row", {many});
  add_node(body, "NonZero", {"row"}, {"places"});
  add_output(body, "places", {1, "M"}, TensorProto::INT64);
  add_node(g, "Neg", {"x"}, {"computed"});
  add_node(g, "Scan", {"computed"}, {"y"}, {attribute("body", body), attribute("num_scan_inputs", 1)});
  add_output(g, "y", {2, 1, "M"}, TensorProto::INT64);
  running run(model);
  floats x(2 * many, 0.0F);
  x[5] = x[many + 8] = 1;
  EXPECT_EQ(list_of<std::int64_t>(run({tensor_with<float>({2, many}, x)})[0]), (integers{5, 8}));
}

/// Values that decide shapes, as inputs: each is part of what an engine is made for.
TEST(onnx_stages, the_number_of_the_largest_elements_is_an_input) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_input(g, "k", {1}, TensorProto::INT64);
  add_node(g, "TopK", {"x", "k"}, {"y", "at"});
  add_output(g, "y", {"K"});
  running run(model);
  floats x(many);
  std::iota(x.begin(), x.end(), 1.0F);
  const auto largest = [&](std::int64_t k) {
    return list_of<float>(run({column(x), tensor_with<std::int64_t>({1}, {k})})[0]);
  };
  EXPECT_EQ(largest(3), (floats{many, many - 1, many - 2}));
  EXPECT_EQ(largest(0), floats{});
  EXPECT_EQ(largest(3), (floats{many, many - 1, many - 2}));
  EXPECT_EQ(run.session.state().made, 2U);
}

TEST(onnx_stages, starts_and_steps_of_a_slice_are_inputs) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_scalars(g);
  for (const char* name : {"starts", "ends", "steps"}) add_input(g, name, {1}, TensorProto::INT64);
  add_node(g, "Slice", {"x", "starts", "ends", "none", "steps"}, {"y"});
  add_output(g, "y", {"M"});
  running run(model);
  floats x(many);
  std::iota(x.begin(), x.end(), 0.0F);
  const auto part = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    const auto one = [](std::int64_t n) { return tensor_with<std::int64_t>({1}, {n}); };
    return list_of<float>(run({column(x), one(start), one(end), one(step)})[0]);
  };
  EXPECT_EQ(part(1, 6, 2), (floats{1, 3, 5}));
  EXPECT_EQ(part(-1, -4, -1), (floats{79, 78, 77}));
  EXPECT_EQ(part(5, 5, 1), floats{});
}

}  // namespace onnx_stages_test
#endif
