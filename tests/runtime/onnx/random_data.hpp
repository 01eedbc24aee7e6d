// Operators of random models (random_model.hpp) whose results have shapes that follow from data. The model has an input "data".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "random_model.hpp"

namespace collage_test::drawn {

/// Elements of the data that exceed a number: the mask, and how many there are.
struct exceeding {
  std::string mask;
  numbers_of_runs count;
};
inline exceeding exceeding_some(random_model& m) {
  const float limit = 0.5F * static_cast<float>(m.random.number(-4, 3)) + 0.25F;
  const std::string name = m.fresh("w");
  add_initializer(m.graph(), tensor_of<float>(name, {}, {limit}));
  exceeding e{m.helper("Greater", {"data", name}), {}};
  for (const std::vector<float>& list : m.data)
    e.count.push_back(std::count_if(list.begin(), list.end(), [&](float x) { return x > limit; }));
  return e;
}
/// The count as a scalar that is computed while running.
inline std::string count_of(random_model& m, const exceeding& e) {
  return m.helper("ReduceSum", {m.helper("Cast", {e.mask}, {attribute("to", 7)})}, {attribute("keepdims", 0)});
}
inline numbers_of_runs data_extent(const random_model& m) {
  numbers_of_runs n;
  for (const auto& list : m.data) n.push_back(std::ssize(list));
  return n;
}

/// The slices of a value that stand where the data exceeds a number.
inline bool choose(random_model& m) {
  const numbers_of_runs extent = data_extent(m);
  const auto x = m.value_with(
      [&](const drawn_value& v) { return std::find(v.dims.begin(), v.dims.end(), extent) != v.dims.end(); });
  if (!x) return false;
  const std::ptrdiff_t axis = std::find(x->dims.begin(), x->dims.end(), extent) - x->dims.begin();
  const exceeding e = exceeding_some(m);
  std::vector<numbers_of_runs> dims = x->dims;
  dims[static_cast<std::size_t>(axis)] = e.count;
  if (m.random.chance(0.5)) {
    m.node("Compress", {x->name, e.mask}, dims, {attribute("axis", axis)});
    return true;
  }
  const std::string at = m.helper("Squeeze", {m.helper("NonZero", {e.mask}), m.integers({0})});
  m.node("Gather", {x->name, at}, dims, {attribute("axis", axis)});
  return true;
}

inline bool unique(random_model& m) {
  numbers_of_runs count;
  for (const std::vector<float>& list : m.data) count.push_back(std::ssize(std::set<float>(list.begin(), list.end())));
  m.node("Unique", {"data"}, {count}, {attribute("sorted", m.random.number(0, 1))});
  return true;
}

/// As many slices as the data says.
inline bool slice_by_data(random_model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  const std::size_t axis = m.pick(x.rank());
  const exceeding e = exceeding_some(m);
  std::vector<numbers_of_runs> dims = x.dims;
  dims[axis] = random_model::each([](std::int64_t a, std::int64_t b) { return std::min(a, b); }, x.dims[axis], e.count);
  const std::string end = m.helper("Unsqueeze", {count_of(m, e), m.integers({0})});
  m.node("Slice", {x.name, m.integers({0}), end, m.integers({static_cast<std::int64_t>(axis)})}, dims);
  return true;
}

/// Branches of different shapes.
inline bool branch(random_model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0 || random_model::least(x.dims[0]) == 0) return false;
  const exceeding e = exceeding_some(m);
  const std::string condition = m.helper("Greater", {count_of(m, e), m.integer(1)});
  const auto body = [&](const std::string& operator_type, const std::vector<proto::AttributeProto>& attributes) {
    proto::GraphProto g;
    const std::string name = m.fresh("b");
    g.set_name(name);
    add_node(g, operator_type, {x.name}, {name}, attributes);
    add_output(g, name, {"K"});
    return g;
  };
  std::vector<numbers_of_runs> dims = x.dims;
  for (std::size_t r = 0; r < random_model::runs; ++r)
    if (e.count[r] <= 1) dims[0][r] = 1;
  m.reads({x.name});
  m.node("If", {condition}, dims,
         {attribute("then_branch", body("Neg", {})),
          attribute("else_branch", body("ReduceMean", {attribute("axes", std::vector<std::int64_t>{0})}))});
  return true;
}

/// A loop with as many rounds as the data says, at most 3. Each appends a slice to the carried value, and returns its number.
inline bool loop(random_model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0 || random_model::least(x.dims[0]) == 0) return false;
  const exceeding e = exceeding_some(m);
  std::vector<numbers_of_runs> dims = x.dims;
  const numbers_of_runs rounds =
      random_model::each([](std::int64_t n) { return std::min<std::int64_t>(n, 3); }, e.count);
  dims[0] = random_model::each([](std::int64_t a, std::int64_t b) { return a + b; }, dims[0], rounds);
  if (!random_model::fits(dims)) return false;
  proto::GraphProto body;
  const std::string own = m.fresh("b");
  body.set_name(own);
  add_input(body, own + "i", {}, proto::TensorProto::INT64);
  add_input(body, own + "c", {}, proto::TensorProto::BOOL);
  add_input(body, own + "x", {"K"});
  const std::string first = m.integers({0}), one = m.integers({1});
  add_node(body, "Slice", {own + "x", first, one, first}, {own + "s"});
  add_node(body, "Concat", {own + "x", own + "s"}, {own + "y"}, {attribute("axis", 0)});
  add_node(body, "Cast", {own + "i"}, {own + "n"}, {attribute("to", 1)});
  add_node(body, "Identity", {own + "c"}, {own + "d"});
  add_output(body, own + "d", {}, proto::TensorProto::BOOL);
  add_output(body, own + "y", {"K"});
  add_output(body, own + "n", {});
  const std::string count = m.helper("Min", {count_of(m, e), m.integer(3)});
  const std::string yes = m.fresh("i");
  add_initializer(m.graph(), tensor_of<bool>(yes, {}, {true}));
  m.node("Loop", {count, yes, x.name}, dims, {attribute("body", body)});
  const std::string stacked = m.fresh("v");
  m.graph().mutable_node(m.graph().node_size() - 1)->add_output(stacked);
  m.values.push_back({stacked, {rounds}});
  return true;
}

inline constexpr bool (*by_data[])(random_model&) = {choose, choose, unique, slice_by_data, branch, loop};

}  // namespace collage_test::drawn
