// Stacked against the reference: functions number by number, single groups, and every group that its rule lists in random
// graphs; each target of Highway that this processor has.
#ifdef COLLAGE_HAS_STACKED
#include "backend_check.hpp"

#include <collage/backends/reference.hpp>
#include <collage/backends/stacked.hpp>
#include <collage/error.hpp>
#include <collage/fuse/combine.hpp>
#include <collage/fuse/from_graph.hpp>
#include <collage/graph/graph.hpp>
#include <collage/graph/print.hpp>
#include <collage/ops.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace collage_test;
namespace op = collage::ops;
namespace fuse = collage::fuse;
using collage::graph;
using collage::graph_builder;
using collage::oracle_value;
using collage::shape;
using collage::stacked;
using collage::tensor_type;
using collage::value;
using node_list = std::vector<std::uint32_t>;

tensor_type f32(const shape& dims) { return {collage::dtype::f32, dims}; }

/// The groups that the rule lists in a network, asked as it is meant to be: what is not taken is opaque.
fuse::group_list groups_of(const graph& network) {
  const fuse::dataflow flow = fuse::dataflow_of(network).restricted(
      [&](const fuse::dataflow&, std::uint32_t n) { return stacked::takes(network, n); });
  return fuse::list(stacked::rule, flow);
}
node_list all_nodes(const graph& network) {
  node_list nodes;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) nodes.push_back(n);
  return nodes;
}

/// Our targets that this processor has, the one that every processor has first.
std::vector<std::int64_t> targets() {
  hwy::SetSupportedTargetsForTest(0);
  std::vector<std::int64_t> list = {HWY_STATIC_TARGET};
  for (const std::int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3})
    if ((hwy::SupportedTargets() & target) != 0 && target != HWY_STATIC_TARGET) list.push_back(target);
  return list;
}
template <class F>
void for_each_target(const F& f) {
  for (const std::int64_t target : targets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    EXPECT_STREQ(stacked::probe().details, hwy::TargetName(target));
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
}

// The oracle --------------------------------------------------------------------------------------------------------------

/// What float32 may make of a value: a reference whose intermediate values are rounded to float32, and how far it moves
/// where each operator errs by some units of the last place.
struct expectation {
  std::vector<double> middle, room;
  std::vector<bool> is_certain;  ///< as to NaN and infinity
};

bool is_exact(const collage::kind_info& kind) {
  for (const std::uint64_t id :
       {collage::kind_id<struct op::sub>, collage::kind_id<struct op::mul>, collage::kind_id<struct op::div>,
        collage::kind_id<struct op::relu>, collage::kind_id<struct op::neg>, collage::kind_id<struct op::abs>,
        collage::kind_id<struct op::max>, collage::kind_id<struct op::min>, collage::kind_id<struct op::sqrt>,
        collage::kind_id<struct op::floor>, collage::kind_id<struct op::ceil>, collage::kind_id<struct op::round>,
        collage::kind_id<struct op::sign>, collage::kind_id<struct op::clip>, collage::kind_id<struct op::transpose>,
        collage::kind_id<struct op::slice>, collage::kind_id<struct op::expand>,
        collage::kind_id<struct op::reduce_max>, collage::kind_id<struct op::reduce_min>})
    if (kind.id == id) return true;
  return false;
}

class group_oracle {
 public:
  /// `given` are the group's arguments.
  group_oracle(const graph& network, const collage::node_group& group,
               const std::map<std::uint32_t, oracle_value>& given, data_source& data)
      : network_(network), group_(group), given_(given), data_(data) {
    for (const oracle_value& v : run(nowhere))
      expected_.push_back({v.real, std::vector<double>(v.real.size(), 0.0), std::vector<bool>(v.real.size(), true)});
    for (const direction moved : {up, down, to_zero, anywhere, anywhere, anywhere, anywhere}) look(moved);
  }
  const expectation& of(std::size_t output) const { return expected_[output]; }

  /// A few looks may all miss a jump, say of the sign of a sine of something large. True where there is more to know.
  bool look_closer() {
    if (std::exchange(is_close_, true)) return false;
    for (int i = 0; i < 300; ++i) look(anywhere);
    return true;
  }

 private:
  enum direction : std::uint8_t { nowhere, up, down, to_zero, anywhere };

  void look(direction moved) {
    const std::vector<oracle_value> seen = run(moved);
    for (std::size_t o = 0; o < seen.size(); ++o) {
      expectation& e = expected_[o];
      for (std::size_t i = 0; i < e.middle.size(); ++i) {
        const double m = e.middle[i], x = seen[o].real[i];
        if (std::isfinite(m) && std::isfinite(x)) e.room[i] = std::max(e.room[i], std::abs(m - x));
        else if (!(m == x || (std::isnan(m) && std::isnan(x)))) e.is_certain[i] = false;
      }
    }
  }

  std::vector<oracle_value> run(direction moved) {
    std::map<std::uint32_t, oracle_value> known = given_;
    const collage::graph_view view = network_.view();
    const auto by = [&] { return moved == up ? 1.0 : moved == down ? -1.0 : data_.real(-1, 1); };
    for (const std::uint32_t n : group_.nodes) {
      std::vector<oracle_value> in;
      for (const std::uint32_t v : view.inputs_of(n)) in.push_back(known.at(v));
      const collage::list_view<const std::uint64_t> words = view.words_of(n);
      const collage::kind_info& kind = *network_.node(n).kind;
      const bool is_moved = moved != nowhere && !is_exact(kind);
      double largest = 0;
      const bool adds = kind.id == collage::kind_id<struct op::add>;
      for (const oracle_value& v : in)
        for (const double x : v.real)
          if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
      for (double& x : in[0].real)
        if (is_moved && !kind.has_body && std::isfinite(x)) x += (data_.chance(0.5) ? 4e-7 : -4e-7) * x;
      oracle_value y = collage::evaluate_node(kind, {words.data(), words.size()}, in).front();
      // Sums err by units of their largest terms; a product that is added need not be rounded before.
      const double apart = adds ? 1e-7 * largest : 1e-6 * (kind.has_body ? 1 : largest);
      const bool multiplies = kind.id == collage::kind_id<struct op::mul> ||
                              kind.id == collage::kind_id<struct op::div> ||
                              kind.id == collage::kind_id<struct op::pow>;
      // Of zeros of both signs either may be the largest or smallest.
      const bool picks =
          kind.id == collage::kind_id<struct op::reduce_max> || kind.id == collage::kind_id<struct op::reduce_min>;
      for (double& x : y.real) {
        if (picks && moved != nowhere && !(x != 0)) x = std::copysign(0.0, by());
        const double most = (adds ? 0 : 1e-6) * std::abs(x) + apart;
        // What is nearly 0 may well be 0, by which something is divided.
        if (is_moved && std::isfinite(x)) x = moved == to_zero ? (std::abs(x) <= most ? 0 : x) : x + by() * most;
        // A product that is added need not overflow before.
        if (!(multiplies && moved == up)) x = static_cast<double>(static_cast<float>(x));
      }
      known[view.output_of(n)] = std::move(y);
    }
    std::vector<oracle_value> wanted;
    for (const std::uint32_t v : group_.outputs) wanted.push_back(known.at(v));
    return wanted;
  }

  const graph& network_;
  const collage::node_group& group_;
  const std::map<std::uint32_t, oracle_value>& given_;
  data_source& data_;
  std::vector<expectation> expected_;
  bool is_close_ = false;
};

// Checking a group --------------------------------------------------------------------------------------------------------

class stacked_checker {
 public:
  data_source& data() { return data_; }
  std::size_t groups() const { return groups_; }
  std::size_t refused() const { return refused_; }
  std::size_t several_outputs() const { return several_outputs_; }
  std::size_t largest() const { return largest_; }
  double loosened() const {
    return elements_ == 0 ? 0 : static_cast<double>(loosened_) / static_cast<double>(elements_);
  }
  std::size_t allocations_while_running() const { return allocations_; }

  /// Builds and runs a group; false where it was refused.
  bool operator()(const graph& network, const node_list& nodes, const data_range& range = {}, int most_threads = 2) {
    const collage::node_group group = collage::group_of(network, nodes);
    std::vector<std::shared_ptr<const std::byte>> contents;
    std::map<std::uint32_t, oracle_value> known;
    for (const std::uint32_t v : group.arguments) {
      contents.push_back(network.view().is_constant(v) ? network.constant(v).bytes
                                                       : data_.contents(network.type_of(v), range));
      known[v] = collage::to_oracle({contents.back().get(), network.type_of(v)});
    }
    std::optional<group_oracle> expected;
    collage::packed_weights packed;
    for (int threads = 1; threads <= most_threads; ++threads) {
      collage::build_context context(network, threads, packed);
      collage::kernel built;
      try {
        built = stacked::build(group, context);
      } catch (const collage::error& e) {
        EXPECT_EQ(e.kind(), collage::error_kind::unsupported) << e.what();
        ++refused_;
        return false;
      }
      if (!expected) expected.emplace(network, group, known, data_);
      where_ = built.name() + ", " + std::to_string(threads) + " threads, COLLAGE_SEED=" + std::to_string(data_.seed());
      run(network, group, built, contents, *expected, 0, 0xFF);
      run(network, group, built, contents, *expected, 4, 0x5A);
      if (threads > 1) continue;
      std::thread other([&] { run(network, group, built, contents, *expected, 0, 0x5A, false); });
      run(network, group, built, contents, *expected, 0, 0xFF, false);
      other.join();
    }
    ++groups_;
    several_outputs_ += group.outputs.size() > 1 ? 1U : 0U;
    largest_ = std::max(largest_, nodes.size());
    return true;
  }

  /// A whole graph as one group, which must not be refused.
  void whole(const std::function<void(graph_builder&, data_source&)>& build, const data_range& range = {}) {
    graph_builder g;
    build(g, data_);
    graph network = g.finish();
    collage::fill_constants(network);
    for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
      EXPECT_TRUE(stacked::takes(network, n)) << network.node_name(n);
    EXPECT_TRUE((*this)(network, all_nodes(network), range));
  }

 private:
  void run(const graph& network, const collage::node_group& group, const collage::kernel& built,
           const std::vector<std::shared_ptr<const std::byte>>& contents, group_oracle& expected, std::size_t shift,
           unsigned char fill, bool alone = true) {
    std::vector<exact_copy> in;
    std::vector<const void*> pointers;
    for (std::size_t i = 0; i < contents.size(); ++i) {
      in.emplace_back(contents[i].get(), network.type_of(group.arguments[i]).bytes(), shift);
      pointers.push_back(built.reads(i) ? in.back().data() : nullptr);
    }
    std::vector<guarded_memory> out;
    std::vector<void*> outs;
    for (const std::uint32_t v : group.outputs) out.emplace_back(network.type_of(v).bytes(), shift, fill);
    for (const guarded_memory& o : out) outs.push_back(o.data());
    const guarded_memory workspace(built.workspace(), 0, fill);
    const std::size_t before = allocations();
    built(collage::kernel_call{pointers.data(), outs.data(), workspace.data()});
    if (alone) allocations_ += allocations() - before;
    EXPECT_TRUE(workspace.intact()) << where_ << ": it wrote outside its workspace";
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::size_t bytes = network.type_of(group.arguments[i]).bytes();
      EXPECT_TRUE(bytes == 0 || std::memcmp(in[i].data(), contents[i].get(), bytes) == 0)
          << where_ << ": it changed operand " << i;
    }
    for (std::size_t o = 0; o < out.size(); ++o) {
      EXPECT_TRUE(out[o].intact()) << where_ << ": it wrote outside output " << o;
      const oracle_value actual = collage::to_oracle({out[o].data(), network.type_of(group.outputs[o])});
      const std::lock_guard lock(comparing_);
      compare(network, group, actual.real, expected, o, alone);
    }
  }

  static bool agrees(const expectation& e, std::size_t i, double a, double allowed) {
    const double m = e.middle[i];
    if (!e.is_certain[i]) return true;
    if (!std::isfinite(m)) return std::isnan(m) ? std::isnan(a) : a == m;
    return std::abs(a - m) <= allowed + 8 * e.room[i] || (!std::isfinite(a) && e.room[i] > 0.1 * std::abs(m));
  }
  void compare(const graph& network, const collage::node_group& group, const std::vector<double>& actual,
               group_oracle& expected, std::size_t output, bool alone) {
    const expectation& e = expected.of(output);
    double largest = 0;
    for (const double x : e.middle)
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    const double allowed = 1e-4 * largest + 1e-6;
    std::size_t loosened = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      loosened += !e.is_certain[i] || 8 * e.room[i] > allowed ? 1U : 0U;
      if (agrees(e, i, actual[i], allowed)) continue;
      if (expected.look_closer() && agrees(e, i, actual[i], allowed)) continue;
      std::string text;
      for (const std::uint32_t n : group.nodes) text += "\n" + collage::to_string(network, n);
      FAIL() << where_ << ": output " << output << " of " << group.outputs.size() << ", element " << i << " of "
             << actual.size() << " is " << actual[i] << ", the reference has " << e.middle[i] << " (may move by "
             << e.room[i] << "), seen from value " << network.value_name(group.outputs[output]) << "; its nodes are"
             << text;
    }
    if (!alone) return;
    elements_ += actual.size();
    loosened_ += loosened;
  }

  data_source data_;
  std::mutex comparing_;
  std::string where_;
  std::size_t groups_ = 0, refused_ = 0, several_outputs_ = 0, largest_ = 0, allocations_ = 0;
  std::size_t elements_ = 0, loosened_ = 0;
};

// Groups written down ---------------------------------------------------------------------------------------------------------

const std::vector<data_range>& ranges() {
  static const std::vector<data_range> list = {{-0.5, 1}, {-4, 4, 0.05}, {-90, 90}, {-1e-39, 1e-39}};
  return list;
}
value mean_of(graph_builder& g, value x) { return g(op::reduce_mean, x, {.axes = {-1}}); }
/// As exporters spell it: nine operators.
value norm_of(graph_builder& g, data_source& data, value x) {
  const shape scale = g.type_of(x).dims.from(g.type_of(x).dims.size() - 1);
  const value distance = g(op::sub, x, mean_of(g, x));
  const value variance = mean_of(g, g(op::pow, distance, g.scalar("two", 2)));
  const value deviation = g(op::sqrt, g(op::add, variance, g.scalar("epsilon", 1e-5)));
  return g(op::add, g(op::mul, g(op::div, distance, deviation), data.constant(g, "scale", f32(scale))),
           data.constant(g, "shift", f32(scale)));
}
value part_of(graph_builder& g, value x, std::int64_t first, std::int64_t count) {
  const shape dims = g.type_of(x).dims;
  return g(op::slice, x, {.starts = {0, first}, .steps = {1, 1}, .extents = {dims[0], count}});
}

TEST(stacked, transformer_blocks) {
  stacked_checker check;
  for_each_target([&] {
    for (const data_range& range : {ranges()[0], ranges()[1]})
      for (const shape& x : {shape{2, 5, 768}, shape{7, 33}, shape{3, 1}, shape{1, 1, 1}, shape{2, 4096},
                             shape{2, 4097}, shape{3, 9001}, shape{0, 5}, shape{64, 16}}) {
        check.whole(
            [&](graph_builder& g, data_source& data) {
              const value sum = g(op::add, g.input("x", f32(x)), g.input("y", f32(x)));
              g.output("sum", sum);
              g.output("norm", norm_of(g, data, sum));
            },
            range);
        check.whole(
            [&](graph_builder& g, data_source&) {
              const value scaled = g(op::mul, g.input("x", f32(x)), g.scalar("scale", 0.125));
              g.output("y",
                       g(op::softmax, g(op::add, scaled, g.input("mask", f32(x.from(x.size() - 1)))), {.axis = -1}));
            },
            range);
        check.whole(
            [&](graph_builder& g, data_source& data) {
              const value biased =
                  g(op::add, g.input("x", f32(x)), data.constant(g, "bias", f32(x.from(x.size() - 1))));
              const value half = g(op::erf, g(op::div, biased, g.scalar("root", 1.4142135623730951)));
              g.output("y",
                       g(op::mul, biased, g(op::mul, g(op::add, half, g.scalar("one", 1)), g.scalar("half", 0.5))));
            },
            range);
      }
  });
  EXPECT_EQ(check.allocations_while_running(), 0U);
}

TEST(stacked, recurrent_cell_of_slices) {
  stacked_checker check;
  for (const std::int64_t size : {1, 7, 512})
    for (const std::int64_t batch : {1, 3})
      check.whole([&](graph_builder& g, data_source&) {
        const value gates = g.input("gates", f32({batch, 4 * size}));
        const value keep = g(op::sigmoid, part_of(g, gates, size, size));
        const value add =
            g(op::mul, g(op::sigmoid, part_of(g, gates, 0, size)), g(op::tanh, part_of(g, gates, 2 * size, size)));
        const value cell = g(op::add, g(op::mul, keep, g.input("cell", f32({batch, size}))), add);
        g.output("cell_out", cell);
        g.output("hidden", g(op::mul, g(op::sigmoid, part_of(g, gates, 3 * size, size)), g(op::tanh, cell)));
      });
}

TEST(stacked, operands_that_broadcast) {
  stacked_checker check;
  const std::vector<std::pair<shape, shape>> cases = {{{2, 8, 30, 9}, {8, 1, 1}},
                                                      {{2, 8, 9, 40}, {1, 8, 1, 40}},
                                                      {{4, 1, 6}, {1, 5, 1}},
                                                      {{1}, {7, 3}},
                                                      {{}, {}},
                                                      {{5, 300}, {5, 1}},
                                                      {{300}, {70, 1}},
                                                      {{0, 3}, {1, 3}},
                                                      {{4, 0}, {4, 1}},
                                                      {{3, 2, 2, 2, 2, 2}, {2, 1, 2, 1, 2}},
                                                      {{1280, 3}, {3}},
                                                      {{2, 3, 5000}, {3, 1}},
                                                      {{1, 64, 56, 56}, {1, 64, 1, 1}}};
  for (const auto& [a, b] : cases)
    for (const data_range& range : ranges())
      check.whole(
          [&](graph_builder& g, data_source& data) {
            const value x = g.input("x", f32(a)), y = g.input("y", f32(b));
            const value scaled = g(op::add, g(op::mul, x, data.constant(g, "scale", f32(b))), y);
            g.output("positive", g(op::relu, scaled));
            g.output("ratio", g(op::div, g(op::max, y, x), g(op::exp, data.constant(g, "w", f32(b)))));
            g.output("less", g(op::min, g(op::sub, g(op::neg, y), x), scaled));
          },
          range);
}

/// What one group of all operators makes of `x`, on every target.
template <class Write>
void expect_exactly(const std::vector<float>& x, const std::vector<float>& wanted, const Write& write) {
  graph_builder g;
  const value in = g.input("x", f32({static_cast<std::int64_t>(x.size())}));
  g.output("y", write(g, in));
  const graph network = g.finish();
  std::vector<std::uint32_t> nodes(network.nodes().size());
  for (std::uint32_t n = 0; n < nodes.size(); ++n) nodes[n] = n;
  for_each_target([&] {
    collage::packed_weights packed;
    collage::build_context context(network, 1, packed);
    const collage::node_group group = collage::group_of(network, nodes);
    const collage::kernel made = collage::stacked::build(group, context);
    collage::buffer workspace(made.workspace());
    std::vector<float> y(wanted.size());
    std::vector<const void*> read;
    for (const std::uint32_t v : group.arguments)
      read.push_back(network.at(v).role == collage::value_role::constant
                         ? static_cast<const void*>(network.bytes_of(v).data())
                         : x.data());
    void* const written[] = {y.data()};
    made({read.data(), written, workspace.data()});
    EXPECT_EQ(y, wanted) << made.name();
  });
}

TEST(stacked, quotients_are_exact) {
  std::vector<float> x, whole;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(static_cast<float>(i));
    whole.push_back(static_cast<float>(i / 41));
  }
  expect_exactly(x, whole, [](graph_builder& g, value v) { return g(op::floor, g(op::div, v, g.scalar("by", 41))); });
}

TEST(stacked, differences_of_equal_products_vanish) {
  std::vector<float> x;
  for (int i = 0; i < 100; ++i) x.push_back(0.1F + 0.37F * static_cast<float>(i));
  expect_exactly(x, std::vector<float>(x.size(), 0.0F), [](graph_builder& g, value v) {
    return g(op::sqrt, g(op::add, g(op::mul, v, v), g(op::mul, g(op::neg, v), v)));
  });
}

TEST(stacked, means_of_large_squares_are_finite) {
  stacked_checker check;
  for (const float size : {1e4F, 9e18F})
    for (const std::int64_t columns : {100, 771})
      check.whole(
          [&](graph_builder& g, data_source&) {
            const value x = g.input("x", f32({16, columns}));
            const value large = g(op::add, x, g.scalar("mean", static_cast<double>(size)));
            g.output("squares", g(op::reduce_mean, g(op::mul, large, large), {.axes = {1}}));
          },
          ranges()[0]);
}

TEST(stacked, rows) {
  stacked_checker check;
  for (const data_range& range : ranges())
    for (const shape& x : {shape{3, 4, 5, 6}, shape{1, 256, 7, 7}, shape{5, 1, 7, 1}, shape{2, 3, 70, 70},
                           shape{2, 2, 0, 3}, shape{0, 2, 3, 3}, shape{1, 1, 1, 1}})
      for (const bool keeps : {false, true}) {
        const auto fold = [&](const auto& kind) {
          check.whole(
              [&](graph_builder& g, data_source&) {
                const value folded = g(kind, g(op::relu, g.input("x", f32(x))), {.axes = {2, 3}, .keep_dims = keeps});
                g.output("y", g(op::add, folded, g.input("z", f32(g.type_of(folded).dims))));
              },
              range);
        };
        fold(op::reduce_sum);
        fold(op::reduce_mean);
        fold(op::reduce_max);
        fold(op::reduce_min);
      }
  // A sum that overflows on the way, and a mean that does not.
  check.whole([](graph_builder& g,
                 data_source&) { g.output("y", g(op::reduce_mean, g.input("x", f32({3, 100})), {.axes = {1}})); },
              {1e38, 3e38});
}

TEST(stacked, movers) {
  stacked_checker check;
  for (const shape& x : {shape{5, 7}, shape{64, 48}, shape{200, 300}, shape{1, 1}, shape{0, 3}, shape{3000, 2}})
    check.whole([&](graph_builder& g, data_source&) {
      const value in = g.input("x", f32(x));
      g.output("y", g(op::relu, g(op::transpose, in, {})));
    });
  check.whole([](graph_builder& g, data_source&) {  // a transpose and what it is made of
    const value x = g(op::exp, g.input("x", f32({6, 6})));
    g.output("y", g(op::add, x, g(op::transpose, x, {})));
  });
  check.whole([](graph_builder& g, data_source&) {
    g.output("y", g(op::expand,
                    g(op::slice, g.input("x", f32({9, 5})), {.starts = {8, 2}, .steps = {-3, 1}, .extents = {3, 1}}),
                    {.dims = {4, 3, 6}}));
  });
  check.whole([](graph_builder& g, data_source&) {  // nothing but numbers
    g.output("y", g(op::expand, g(op::exp, g.scalar("c", 2)), {.dims = {3, 40}}));
  });
}

// Rules and refusals ----------------------------------------------------------------------------------------------------------

TEST(stacked, takes_what_it_computes) {
  graph_builder g;
  const value x = g.input("x", f32({2, 6})), i = g.input("i", {collage::dtype::i64, {2, 6}});
  const value yes = g.input("yes", {collage::dtype::boolean, {2, 6}});
  g.output("0", g(op::add, x, x));
  g.output("1", g(op::add, i, i));
  g.output("2", g(op::less, x, x));
  g.output("3", g(op::where, yes, x, x));
  g.output("4", g(op::softmax, x, {.axis = 1}));
  g.output("5", g(op::softmax, x, {.axis = 0}));
  g.output("6", g(op::reduce_sum, x, {.axes = {0, 1}}));
  g.output("7", g(op::reduce_sum, x, {.axes = {0}}));
  g.output("8", g(op::reshape, x, {.dims = {3, 4}}));
  g.output("9", g(op::concat, {x, x}, {.axis = 0}));
  g.output("10", g(op::transpose, x, {}));
  g.output("11", g(op::matmul, x, g(op::transpose, x, {})));
  g.output("12", g(op::add, g.input("n", f32({collage::unknown, 6})), x));
  const graph network = g.finish();
  std::string taken;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) taken += stacked::takes(network, n) ? '1' : '0';
  EXPECT_EQ(taken, "10001010001100");
}

TEST(stacked, refuses_what_is_no_group_of_its_rule) {
  stacked_checker check;
  const auto refusal = [&](const std::function<void(graph_builder&)>& build) -> std::string {
    graph_builder g;
    build(g);
    const graph network = g.finish();
    collage::packed_weights packed;
    collage::build_context context(network, 1, packed);
    try {
      stacked::build(collage::group_of(network, all_nodes(network)), context);
    } catch (const collage::error& e) {
      EXPECT_EQ(e.kind(), collage::error_kind::unsupported);
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([](graph_builder& g) {
              const value x = g.input("x", f32({4, 6}));
              g.output("y", g(op::softmax, g(op::transpose, g(op::softmax, x, {.axis = 1}), {}), {.axis = 1}));
            }),
            "stacked: its operators work on different rows");
  EXPECT_EQ(refusal([](graph_builder& g) {
              g.output("y", g(op::transpose, g(op::softmax, g.input("x", f32({4, 4})), {.axis = 1}), {}));
            }),
            "stacked: what its rows give is read in another order, or at other rows");
  EXPECT_EQ(refusal([](graph_builder& g) {
              const value x = g.input("x", f32({4, 6}));
              g.output("y", g(op::relu, x));
              g.output("z", g(op::transpose, x, {}));
            }),
            "stacked: its outputs have different shapes");
  EXPECT_NE(refusal([](graph_builder& g) {
              g.output("y", g(op::concat, {g.input("x", f32({4, 6})), g.input("y", f32({4, 6}))}, {.axis = 0}));
            }),
            "");
}

TEST(stacked, says_what_it_does_not_read) {
  graph_builder g;
  const value x = g.input("x", f32({2, 6}));
  g.output("y", g(op::add, g(op::mul, g.scalar("two", 2), x), g.scalar("one", 1)));
  const graph network = g.finish();
  collage::packed_weights packed;
  collage::build_context context(network, 1, packed);
  const collage::node_group group = collage::group_of(network, all_nodes(network));
  const collage::kernel built = stacked::build(group, context);
  ASSERT_EQ(group.arguments.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(built.reads(i), group.arguments[i] == x.index);
}

TEST(stacked, its_rule_lists_trees_and_several_outputs) {
  graph_builder g;
  data_source data;
  const value sum = g(op::add, g.input("x", f32({8, 64})), g.input("y", f32({8, 64})));
  g.output("sum", sum);
  g.output("norm", norm_of(g, data, sum));
  const graph network = g.finish();
  const fuse::group_list groups = groups_of(network);
  fuse::node_set whole;
  for (const std::uint32_t n : all_nodes(network)) {
    whole.insert(n);
    EXPECT_TRUE(groups.contains({n}));
  }
  EXPECT_TRUE(groups.contains(whole));
}

// Random groups -------------------------------------------------------------------------------------------------------------

class graph_maker {
 public:
  explicit graph_maker(data_source& data) : data_(data) {}

  graph make(std::size_t nodes) {
    base_ = random_shape();
    has_norm_ = false;
    pool_.clear();
    for (std::int64_t i = data_.number(1, 3); i > 0; --i) pool_.push_back(g_.input(name("x"), f32(base_)));
    for (std::int64_t i = data_.number(0, 2); i > 0; --i) pool_.push_back(g_.input(name("y"), f32(smaller(base_))));
    const std::size_t given = pool_.size();
    for (std::size_t n = 0; n < nodes; ++n) add();
    for (std::size_t i = given; i < pool_.size(); ++i)
      if (!is_read_[pool_[i].index] || data_.chance(0.1)) g_.output(name("out"), pool_[i]);
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
    if (draw < 30) y = unary(x);
    else if (draw < 65) y = binary(x, partner(x));
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
    for (std::int64_t i = data_.number(1, std::min<std::int64_t>(rank, 2)); i > 0; --i) a.axes.push_back(-i);
    switch (data_.number(0, 4)) {
      case 0: return g_(op::reduce_sum, x, a);
      case 1: return g_(op::reduce_max, x, a);
      case 2: return g_(op::reduce_min, x, a);
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
  std::vector<value> pool_;
  std::map<std::uint32_t, bool> is_read_;
  int named_ = 0;
};

void check_random_groups(int graphs, std::size_t most_of_each) {
  stacked_checker check;
  data_source& data = check.data();
  std::size_t listed = 0;
  for (int i = 0; i < graphs && !testing::Test::HasFailure(); ++i) {
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
    static constexpr data_range ranges[] = {{-0.5, 1}, {-4, 4},         {-1, 1, 0.02},
                                            {-90, 90}, {-1e-39, 1e-39}, {-3e38, 3e38}};
    const data_range& range = ranges[data.chance(0.6) ? data.number(0, 1) : data.number(0, maker.has_norm() ? 4 : 5)];
    const std::vector<std::int64_t> choices = targets();
    hwy::SetSupportedTargetsForTest(
        choices[static_cast<std::size_t>(data.number(0, static_cast<std::int64_t>(choices.size()) - 1))]);
    for (const node_list& nodes : groups) check(network, nodes, range);
  }
  hwy::SetSupportedTargetsForTest(0);
  std::cout << check.groups() << " groups of " << listed << " listed, the largest of " << check.largest() << " nodes, "
            << check.several_outputs() << " with several outputs; " << check.refused() << " refused; "
            << 100 * check.loosened() << " % of the elements are ill-conditioned\n";
  EXPECT_EQ(check.allocations_while_running(), 0U);
  if (testing::Test::HasFailure()) return;
  EXPECT_GT(check.groups(), static_cast<std::size_t>(graphs));
  EXPECT_GT(check.several_outputs(), static_cast<std::size_t>(graphs / 20));
  EXPECT_LT(check.refused() * 10, check.groups());
  EXPECT_LT(check.loosened(), 0.2);
}

TEST(stacked, every_target_is_chosen) {
  for_each_target([] {});
}

// Functions ------------------------------------------------------------------------------------------------------------------

/// Awkward numbers, and others of every magnitude.
std::vector<float> all_sorts_of_numbers(data_source& data, std::size_t count) {
  using limits = std::numeric_limits<float>;
  std::vector<float> list;
  for (const float x : {0.0F,
                        limits::denorm_min(),
                        1e-40F,
                        limits::min(),
                        1e-20F,
                        1e-7F,
                        0.25F,
                        0.5F,
                        1.0F,
                        1.5F,
                        2.0F,
                        2.5F,
                        3.0F,
                        9.0F,
                        17.0F,
                        87.3F,
                        88.72F,
                        88.73F,
                        89.0F,
                        103.9F,
                        104.1F,
                        1e3F,
                        8191.0F,
                        8193.0F,
                        39000.5F,
                        8388609.0F,
                        2147483648.0F,
                        3e9F,
                        1e19F,
                        3e38F,
                        limits::max(),
                        limits::infinity(),
                        limits::quiet_NaN()}) {
    list.push_back(x);
    list.push_back(-x);
  }
  while (list.size() < count) {
    switch (data.number(0, 3)) {
      case 0: list.push_back(static_cast<float>(data.real(-2, 2))); break;
      case 1: list.push_back(static_cast<float>(data.real(-110, 110))); break;
      case 2: list.push_back(static_cast<float>(data.real(-1e5, 1e5))); break;
      default: list.push_back(static_cast<float>(std::exp(data.real(-100, 88)) * (data.chance(0.5) ? 1 : -1))); break;
    }
  }
  return list;
}

/// How close a function must be: to the reference relatively, and absolutely where its body adds and subtracts.
struct closeness {
  double relative = 1e-6;
  double absolute = 1e-44;
};

/// One operator of operands of one shape, element by element.
class functions_test : public testing::Test {
 protected:
  template <class Kind>
  void all(const Kind&, std::size_t operands, const closeness& allowed = {},
           const typename Kind::attributes& attributes = {}) {
    constexpr std::size_t count = 4001;
    graph_builder g;
    std::vector<value> in;
    for (std::size_t i = 0; i < operands; ++i) in.push_back(g.input("x" + std::to_string(i), f32({count})));
    g.output("y", g.add(collage::kind_of<Kind>, in, collage::to_words(attributes), ""));
    const graph network = g.finish();
    std::vector<std::vector<float>> numbers;
    std::vector<oracle_value> known(operands, oracle_value(f32({count})));
    std::vector<const void*> pointers;
    for (std::size_t i = 0; i < operands; ++i) {
      numbers.push_back(all_sorts_of_numbers(data_, count));
      if (i > 0) std::shuffle(numbers[i].begin(), numbers[i].end(), std::minstd_rand(1));
      known[i].real.assign(numbers[i].begin(), numbers[i].end());
    }
    for (const std::vector<float>& n : numbers) pointers.push_back(n.data());
    const collage::attribute_words words = collage::to_words(attributes);
    const std::vector<double> expected =
        collage::evaluate_node(collage::kind_of<Kind>, {words.word, words.size}, known).front().real;
    for_each_target([&] {
      collage::packed_weights packed;
      collage::build_context context(network, 1, packed);
      const collage::kernel built = stacked::build(collage::group_of(network, all_nodes(network)), context);
      std::vector<float> y(count);
      void* const out[] = {y.data()};
      const guarded_memory workspace(built.workspace(), 0, 0xFF);
      built(collage::kernel_call{pointers.data(), out, workspace.data()});
      for (std::size_t i = 0; i < count; ++i) {
        const double r = collage::detail::finiteness_of(collage::dtype::f32, expected[i]);
        const auto a = static_cast<double>(y[i]);
        bool good = false;
        if (std::isnan(r)) good = std::isnan(a);
        else if (std::isinf(r)) good = a == r;
        else good = std::abs(a - r) <= allowed.relative * std::abs(r) + allowed.absolute;
        std::string at;
        for (const std::vector<float>& n : numbers) at += " " + std::to_string(n[i]) + " (" + std::to_string(i) + ")";
        ASSERT_TRUE(good) << Kind::name << " of" << at << " is " << a << ", the reference has " << r
                          << ", COLLAGE_SEED=" << data_.seed();
      }
    });
  }
  data_source data_;
};

TEST_F(functions_test, of_one_operand) {
  all(op::exp, 1);
  all(op::log, 1);
  all(op::tanh, 1);
  all(op::erf, 1);
  all(op::sigmoid, 1);
  all(op::sqrt, 1);
  all(op::sin, 1, {.absolute = 2e-7});
  all(op::cos, 1, {.absolute = 2e-7});
  all(op::tan, 1);
  all(op::asin, 1);
  all(op::acos, 1);
  all(op::atan, 1);
  all(op::sinh, 1);
  all(op::cosh, 1);
  all(op::asinh, 1);
  all(op::acosh, 1);
  all(op::atanh, 1);
  all(op::floor, 1);
  all(op::ceil, 1);
  all(op::round, 1);
  all(op::sign, 1);
  all(op::neg, 1);
  all(op::abs, 1);
  all(op::reciprocal, 1);
  all(op::relu, 1);
  all(op::leaky_relu, 1, {}, {.alpha = 0.01});
  all(op::elu, 1, {.absolute = 2e-7});
  all(op::celu, 1, {.absolute = 2e-7}, {.alpha = 0.7});
  all(op::selu, 1, {.absolute = 4e-7});
  all(op::thresholded_relu, 1);
  all(op::shrink, 1);
  all(op::hard_sigmoid, 1, {.absolute = 2e-7});
  all(op::hard_swish, 1, {.absolute = 2e-6});
  all(op::softplus, 1, {.absolute = 2e-7});
  all(op::softsign, 1);
  all(op::cast, 1);
}

TEST_F(functions_test, of_several_operands) {
  all(op::add, 2);
  all(op::sub, 2);
  all(op::mul, 2);
  all(op::div, 2);
  all(op::max, 2);
  all(op::min, 2);
  all(op::pow, 2, {.relative = 2e-6});
  all(op::remainder, 2);
  all(op::prelu, 2);
  all(op::clip, 3);
}

TEST(stacked_random, groups_agree_with_the_reference) { check_random_groups(300, 5); }
TEST(stacked_random_long, groups_agree_with_the_reference) { check_random_groups(3000, 8); }

}  // namespace
#endif
