// Stacked against the reference: every group that its rule lists in random graphs.
#ifdef COLLAGE_HAS_STACKED
#include "stacked_testing.hpp"

#include <collage/fuse/fuse.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/extents.hpp>
#include <collage/ops.hpp>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace backends_stacked_random_test {

using namespace collage_test;
using namespace collage_test::stacked_testing;

class graph_maker {
 public:
  explicit graph_maker(data_source& data) : data_(data) {}

  graph make(std::size_t nodes) {
    base_ = random_shape();
    has_norm_ = false;
    pool_.clear();
    masks_.clear();
    for (std::int64_t i = data_.number(1, 3); i > 0; --i) pool_.push_back(g_.input(name("x"), f32(base_)));
    for (std::int64_t i = data_.number(0, 2); i > 0; --i) pool_.push_back(g_.input(name("y"), f32(smaller(base_))));
    const std::size_t given = pool_.size();
    for (std::size_t n = 0; n < nodes; ++n) add();
    for (std::size_t i = given; i < pool_.size(); ++i)
      if (!is_read_[pool_[i].index] || data_.chance(0.1)) g_.output(name("out"), pool_[i]);
    for (const value m : masks_)
      if (!is_given_[m.index] && (!is_read_[m.index] || data_.chance(0.1))) g_.output(name("mask"), m);
    graph made = g_.finish();
    collage::fill_constants(made);
    return made;
  }
  bool has_norm() const { return has_norm_; }

 private:
  std::string name(const char* prefix) { return prefix + std::to_string(named_++); }

  shape random_shape() {
    static constexpr std::int64_t list[] = {1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64, 65, 100, 128};
    shape s;
    std::int64_t most = data_.chance(0.15) ? 20000 : 3000;
    for (std::int64_t i = data_.number(0, 4); i >= 0; --i) {
      std::int64_t extent = list[data_.number(0, 15)];
      if (data_.chance(0.02)) extent = 0;
      if (data_.chance(0.04)) extent = data_.number(1000, 9000);
      extent = std::min(extent, most);
      most = std::max<std::int64_t>(most / std::max<std::int64_t>(extent, 1), 1);
      s.push_back(extent);
    }
    return s;
  }
  /// What broadcasts to a shape.
  shape smaller(const shape& s) {
    shape made;
    const auto first = static_cast<std::size_t>(data_.number(0, static_cast<std::int64_t>(s.size())));
    for (std::size_t i = first; i < s.size(); ++i) made.push_back(data_.chance(0.4) ? 1 : s[i]);
    return made;
  }
  value pick() {
    const auto last = static_cast<std::int64_t>(pool_.size()) - 1;
    const value v = pool_[static_cast<std::size_t>(
        data_.number(data_.chance(0.7) ? std::max<std::int64_t>(last - 3, 0) : 0, last))];
    is_read_[v.index] = true;
    return v;
  }
  /// Another value, or a constant, that broadcasts with this one.
  value partner(value x) {
    const shape dims = g_.type_of(x).dims;
    if (data_.chance(0.2)) return g_.scalar(name("c"), static_cast<double>(data_.number(-3, 3)) / 2);
    for (int tries = 0; tries < 3; ++tries) {
      const value y = pool_[static_cast<std::size_t>(data_.number(0, static_cast<std::int64_t>(pool_.size()) - 1))];
      bool fits = true;
      const shape together = collage::detail::broadcast(dims, g_.type_of(y).dims, fits);
      if (!fits || together.elements() > 40000) continue;
      is_read_[y.index] = true;
      return y;
    }
    return data_.constant(g_, name("w"), f32(smaller(dims)));
  }
  void add() {
    const value x = pick();
    const shape dims = g_.type_of(x).dims;
    const auto rank = static_cast<std::int64_t>(dims.size());
    value y;
    const std::int64_t draw = data_.number(0, 99);
    if (draw < 24) y = unary(x);
    else if (draw < 50) y = binary(x, partner(x));
    else if (draw < 56) y = chosen(x);
    else if (draw < 59) y = g_(op::cast, mask(x), {.to = collage::dtype::f32});
    else if (draw < 64 && rank > 0) y = concat(x);
    else if (draw < 67 && rank > 0) y = put_around(x);
    else if (draw < 75 && rank > 0) y = reduce(x);
    else if (draw < 80 && rank > 0)
      y = data_.chance(0.6) ? g_(op::softmax, x, {.axis = -1}) : g_(op::log_softmax, x, {.axis = -1});
    else if (draw < 84 && rank > 0) y = norm(x);
    else if (draw < 88 && rank > 1) y = transpose(x);
    else if (draw < 94 && rank > 0) y = slice(x);
    else if (draw < 96) y = expand(x);
    else y = g_(op::clip, x, g_.scalar(name("low"), -0.5), g_.scalar(name("high"), 0.75));
    pool_.push_back(y);
  }
  value chosen(value x) {
    const value m = mask(x), y = partner(x);
    bool fits = true;
    const shape together = collage::detail::broadcast(g_.type_of(m).dims, g_.type_of(x).dims, fits);
    const bool has_room = collage::detail::broadcast(together, g_.type_of(y).dims, fits).elements() <= 40000;
    return g_(op::where, m, x, fits && has_room ? y : g_.scalar(name("low"), -2));
  }
  /// A mask that broadcasts with x.
  value mask(value x) {
    const shape dims = g_.type_of(x).dims;
    for (int tries = 0; tries < 2 && !masks_.empty() && data_.chance(0.7); ++tries) {
      const value m = masks_[static_cast<std::size_t>(data_.number(0, static_cast<std::int64_t>(masks_.size()) - 1))];
      bool fits = true;
      const shape together = collage::detail::broadcast(dims, g_.type_of(m).dims, fits);
      if (!fits || together.elements() > 40000) continue;
      is_read_[m.index] = true;
      if (data_.chance(0.5)) return m;
      return made_mask(combined(m, dims));
    }
    if (data_.chance(0.3)) return given_mask(dims);
    switch (data_.number(0, 7)) {
      case 0: return made_mask(g_(op::less, x, partner(x)));
      case 1: return made_mask(g_(op::less_equal, x, partner(x)));
      case 2: return made_mask(g_(op::greater, partner(x), x));
      case 3: return made_mask(g_(op::greater_equal, x, partner(x)));
      case 4: return made_mask(g_(op::equal, x, partner(x)));
      case 5: return made_mask(g_(op::is_nan, x));
      case 6: return made_mask(g_(op::is_infinite, x));
      default: return made_mask(g_(op::cast, x, {.to = collage::dtype::boolean}));
    }
  }
  value made_mask(value m) {
    masks_.push_back(m);
    is_read_[m.index] = true;
    return m;
  }
  value given_mask(const shape& dims) {
    const value m = g_.input(name("m"), boolean(smaller(dims)));
    is_given_[m.index] = true;
    masks_.push_back(m);
    return m;
  }
  /// Of a mask and another one that broadcasts to its shape, or a mover's of one.
  value combined(value m, const shape& dims) {
    const shape own = g_.type_of(m).dims;
    switch (data_.number(0, 6)) {
      case 0: return g_(op::logical_not, m);
      case 1: return g_(op::logical_and, m, given_mask(own));
      case 2: return g_(op::logical_or, given_mask(own), m);
      case 3: return g_(op::logical_xor, m, given_mask(own));
      case 4: return g_(op::equal, m, given_mask(own));
      case 5: return g_(op::where, m, given_mask(own), given_mask(own));
      default:
        return own == dims && own.size() >= 2 ? g_(op::trilu, m, {.upper = data_.chance(0.5), .k = data_.number(-3, 3)})
                                              : m;
    }
  }
  /// Of values that exist already, if they fit, and new ones.
  value concat(value x) {
    const shape dims = g_.type_of(x).dims;
    const auto axis = static_cast<std::size_t>(data_.number(0, static_cast<std::int64_t>(dims.size()) - 1));
    std::vector<value> list = {x};
    std::int64_t room = 60000 / std::max<std::int64_t>(dims.elements(), 1);
    for (std::int64_t i = data_.number(0, 3); i > 0 && room > 1; --i, --room) {
      value y = pick();
      shape there = g_.type_of(y).dims;
      bool fits = there.size() == dims.size() && there.elements() < 30000;
      for (std::size_t d = 0; fits && d < dims.size(); ++d) fits = d == axis || there[d] == dims[d];
      if (!fits) {
        there = dims;
        there[axis] = data_.chance(0.1) ? 0 : data_.number(1, std::max<std::int64_t>(dims[axis], 3));
        y = data_.chance(0.7) ? g_.input(name("part"), f32(there)) : data_.constant(g_, name("part"), f32(there));
      }
      list.push_back(y);
    }
    std::shuffle(list.begin(), list.end(), std::minstd_rand(static_cast<unsigned>(data_.number(1, 1000))));
    return g_(op::concat, list, {.axis = static_cast<std::int64_t>(axis)});
  }
  value put_around(value x) {
    const shape dims = g_.type_of(x).dims;
    if (dims.elements() > 5000 || data_.chance(0.3)) {
      if (dims.size() >= 2) return g_(op::trilu, x, {.upper = data_.chance(0.5), .k = data_.number(-4, 4)});
      return g_(op::relu, x);
    }
    if (data_.chance(0.3)) {
      op::tile_attributes a;
      for (std::size_t i = 0; i < dims.size(); ++i)
        a.repeats.push_back(data_.chance(0.6) ? 1 : data_.number(data_.chance(0.05) ? 0 : 1, 3));
      return g_(op::tile, x, a);
    }
    op::pad_attributes a;
    a.mode = static_cast<op::pad_mode>(data_.number(0, 3));
    for (const std::int64_t extent : dims) {
      std::int64_t before = data_.chance(0.6) ? 0 : data_.number(0, 3),
                   behind = data_.chance(0.6) ? 0 : data_.number(0, 3);
      if (extent > 2 && data_.chance(0.1)) before = -1;
      if (extent > 2 && data_.chance(0.1)) behind = -1;
      if (extent == 0) before = behind = 0;
      a.pads_begin.push_back(before);
      a.pads_end.push_back(behind);
    }
    if (a.mode == op::pad_mode::constant && data_.chance(0.5)) return g_(op::pad, x, g_.scalar(name("fill"), 1.5), a);
    return g_(op::pad, x, a);
  }
  value unary(value x) {
    switch (data_.number(0, 24)) {
      case 0: return g_(op::tanh, x);
      case 1: return g_(op::erf, x);
      case 2: return g_(op::exp, x);
      case 3: return g_(op::log, x);
      case 4: return g_(op::sqrt, x);
      case 5: return g_(op::neg, x);
      case 6: return g_(op::abs, x);
      case 7: return g_(op::floor, x);
      case 8: return g_(op::round, x);
      case 9: return g_(op::sin, x);
      case 10: return g_(op::cos, x);
      case 11: return g_(op::sigmoid, x);
      case 12: return g_(op::leaky_relu, x, {.alpha = 0.1});
      case 13: return g_(op::gelu_tanh, x);
      case 14: return g_(op::softplus, x);
      case 15: return g_(op::elu, x);
      case 16: return g_(op::hard_swish, x);
      case 17: return g_(op::sign, x);
      case 18: return g_(op::reciprocal, x);
      // Of negative numbers a power jumps where the exponent is no integer.
      case 19: return g_(op::pow, g_(op::abs, x), g_.scalar(name("p"), static_cast<double>(data_.number(-2, 6)) / 2));
      case 20: return g_(op::atan, x);
      case 21: return g_(op::mish, x);
      default: return g_(op::relu, x);
    }
  }
  value binary(value x, value y) {
    if (data_.chance(0.5)) std::swap(x, y);
    switch (data_.number(0, 11)) {
      case 0:
      case 1:
      case 2: return g_(op::add, x, y);
      case 3:
      case 4: return g_(op::sub, x, y);
      case 5:
      case 6:
      case 7: return g_(op::mul, x, y);
      case 8: return g_(op::div, x, y);
      case 9: return g_(op::max, x, y);
      case 10: return g_(op::min, x, y);
      default: return data_.chance(0.5) ? g_(op::prelu, x, y) : g_(op::pow, g_(op::abs, x), y);
    }
  }
  value reduce(value x) {
    const auto rank = static_cast<std::int64_t>(g_.type_of(x).dims.size());
    op::reduce_attributes a{.keep_dims = data_.chance(0.75)};
    if (data_.chance(0.75)) {
      for (std::int64_t i = data_.number(1, std::min<std::int64_t>(rank, 2)); i > 0; --i) a.axes.push_back(-i);
    } else {
      for (std::int64_t i = 0; i < rank; ++i)
        if (data_.chance(0.5)) a.axes.push_back(i);
    }
    switch (data_.number(0, 5)) {
      case 0: return g_(op::reduce_sum, x, a);
      case 1: return g_(op::reduce_max, x, a);
      case 2: return g_(op::reduce_min, x, a);
      case 3: return g_(op::reduce_log_sum_exp, x, a);
      default: return g_(op::reduce_mean, x, a);
    }
  }
  value norm(value x) {
    const shape dims = g_.type_of(x).dims;
    has_norm_ = true;
    const auto axis = data_.chance(0.8) ? static_cast<std::int64_t>(dims.size()) - 1 : 0;
    const shape scale = dims.from(static_cast<std::size_t>(axis));
    if (data_.chance(0.3)) return g_(op::layer_norm, x, data_.constant(g_, name("scale"), f32(scale)), {.axis = axis});
    return g_(op::layer_norm, x, data_.constant(g_, name("scale"), f32(scale)),
              data_.constant(g_, name("shift"), f32(smaller(scale))), {.axis = axis});
  }
  value transpose(value x) {
    shape permutation;
    const std::size_t rank = g_.type_of(x).dims.size();
    for (std::size_t d = 0; d < rank; ++d) permutation.push_back(static_cast<std::int64_t>(d));
    for (std::size_t d = rank; d-- > 1;)
      std::swap(permutation[d], permutation[static_cast<std::size_t>(data_.number(0, static_cast<std::int64_t>(d)))]);
    return g_(op::transpose, x, {.permutation = permutation});
  }
  value slice(value x) {
    op::slice_attributes a;
    for (const std::int64_t extent : g_.type_of(x).dims) {
      const bool whole = data_.chance(0.5) || extent == 0;
      const std::int64_t step = whole ? 1 : data_.chance(0.3) ? (data_.chance(0.5) ? -1 : 2) : 1;
      const std::int64_t start = whole ? 0 : data_.number(0, extent - 1);
      const std::int64_t room = step > 0 ? (extent - 1 - start) / step : start;
      a.starts.push_back(start);
      a.steps.push_back(step);
      a.extents.push_back(whole ? extent : data_.number(data_.chance(0.05) ? 0 : 1, room + 1));
    }
    return g_(op::slice, x, a);
  }
  value expand(value x) {
    shape dims = g_.type_of(x).dims;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == 1 && dims.elements() < 5000 && data_.chance(0.5)) dims[i] = data_.number(1, 5);
    return g_(op::expand, x, {.dims = dims});
  }

  data_source& data_;
  graph_builder g_;
  shape base_;
  bool has_norm_ = false;
  std::vector<value> pool_, masks_;
  std::map<std::uint32_t, bool> is_read_, is_given_;
  int named_ = 0;
};

/// Kinds that random graphs rarely have in groups that are checked.
constexpr const char* rare_kinds[] = {"concat", "pad",         "tile", "trilu",       "slice",   "transpose", "where",
                                      "less",   "logical_and", "cast", "reduce_mean", "softmax", "layer_norm"};

/// Where kinds are counted, more graphs follow until each was seen.
void check_random_groups(int graphs, std::size_t most_of_each) {
  stacked_checker check;
  data_source& data = check.data();
  std::size_t listed = 0;
  std::map<std::string, std::size_t> seen;  // in groups of several
  const bool counts_kinds = graphs >= 300;  // in few graphs, rare kinds may be missing
  const auto misses_some = [&] { return !std::ranges::all_of(rare_kinds, [&](const char* k) { return seen[k] > 0; }); };
  const int most = counts_kinds ? 4 * graphs : graphs;
  for (int i = 0; i < most && (i < graphs || misses_some()) && !testing::Test::HasFailure(); ++i) {
    graph_maker maker(data);
    const graph network = maker.make(static_cast<std::size_t>(data.number(1, 24)));
    std::vector<node_list> groups;
    for (const fuse::group& g : groups_of(network)) groups.push_back({g.nodes.begin(), g.nodes.end()});
    listed += groups.size();
    std::ranges::sort(groups, [](const node_list& a, const node_list& b) {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    });
    // The large ones and some others.
    while (groups.size() > most_of_each)
      groups.erase(groups.begin() + data.number(2, static_cast<std::int64_t>(groups.size()) - 1));
    static constexpr data_range ranges[] = {{-0.5, 1},       {-4, 4},       {-1, 1, 0.02}, {-90, 90},
                                            {-1e-39, 1e-39}, {-1e25, 1e25}, {-3e38, 3e38}};
    const data_range& range = ranges[data.chance(0.6) ? data.number(0, 1) : data.number(0, maker.has_norm() ? 5 : 6)];
    const std::vector<std::int64_t> choices = targets();
    hwy::SetSupportedTargetsForTest(
        choices[static_cast<std::size_t>(data.number(0, static_cast<std::int64_t>(choices.size()) - 1))]);
    for (const node_list& nodes : groups)
      if (check(network, nodes, range) && nodes.size() > 1)
        for (const std::uint32_t n : nodes) ++seen[network.node(n).kind->name];
  }
  hwy::SetSupportedTargetsForTest(0);
  std::cout << check.groups() << " groups of " << listed << " listed, the largest of " << check.largest() << " nodes, "
            << check.several_outputs() << " with several outputs; " << check.in_place() << " runs in place; "
            << check.refused() << " refused; " << 100 * check.loosened() << " % of the elements are ill-conditioned\n";
  EXPECT_EQ(check.allocations_while_running(), 0U);
  if (testing::Test::HasFailure()) return;
  EXPECT_GT(check.groups(), static_cast<std::size_t>(graphs));
  EXPECT_GT(check.in_place(), static_cast<std::size_t>(graphs / 4));
  EXPECT_GT(check.several_outputs(), static_cast<std::size_t>(graphs / 20));
  EXPECT_LT(check.refused() * 10, check.groups());
  EXPECT_LT(check.loosened(), 0.2);
  if (!counts_kinds) return;
  for (const char* kind : rare_kinds) EXPECT_GT(seen[kind], 0U) << kind;
}

TEST(stacked_random, groups_agree_with_the_reference) {
  check_random_groups(collage::detail::is_watched ? 100 : 300, 5);
}
TEST(stacked_random_long, groups_agree_with_the_reference) { check_random_groups(3000, 8); }

}  // namespace backends_stacked_random_test
#endif
