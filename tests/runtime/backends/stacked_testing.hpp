// Checks groups of `stacked` against the reference, on each target of Highway that this processor has.
#pragma once

#include "support/backend_check.hpp"
#include "support/effort.hpp"

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
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace collage_test::stacked_testing {

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

inline tensor_type f32(const shape& dims) { return {collage::dtype::f32, dims}; }
inline tensor_type boolean(const shape& dims) { return {collage::dtype::boolean, dims}; }

/// The groups that the rule lists in a network, asked as it is meant to be: what is not taken is opaque.
inline fuse::group_list groups_of(const graph& network) {
  const fuse::dataflow flow = fuse::dataflow_of(network).restricted(
      [&](const fuse::dataflow&, std::uint32_t n) { return stacked::takes(network, n); });
  return fuse::list(stacked::rule, flow);
}
inline node_list all_nodes(const graph& network) {
  node_list nodes;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) nodes.push_back(n);
  return nodes;
}

/// The targets that the backend is compiled for and this processor has, whatever this version of Highway knows: where a
/// target is missing, another one is chosen.
inline std::vector<std::int64_t> targets() {
  hwy::SetSupportedTargetsForTest(0);
  const std::int64_t all = hwy::SupportedTargets() | HWY_STATIC_TARGET;
  std::vector<std::int64_t> list;
  for (int bit = 0; bit < 63; ++bit) {
    const std::int64_t target = std::int64_t{1} << bit;
    if ((all & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    if (std::strcmp(stacked::probe().details, hwy::TargetName(target)) == 0) list.push_back(target);
  }
  hwy::SetSupportedTargetsForTest(0);
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

/// Real numbers, booleans as 0 and 1.
inline std::vector<double> numbers_of(const oracle_value& v) {
  if (collage::is_floating(v.type.type)) return v.real;
  return {v.integer.begin(), v.integer.end()};
}

inline bool is_exact(const collage::kind_info& kind) {
  for (const std::uint64_t id : {collage::kind_id<struct op::sub>,       collage::kind_id<struct op::mul>,
                                 collage::kind_id<struct op::div>,       collage::kind_id<struct op::relu>,
                                 collage::kind_id<struct op::neg>,       collage::kind_id<struct op::abs>,
                                 collage::kind_id<struct op::max>,       collage::kind_id<struct op::min>,
                                 collage::kind_id<struct op::sqrt>,      collage::kind_id<struct op::floor>,
                                 collage::kind_id<struct op::ceil>,      collage::kind_id<struct op::round>,
                                 collage::kind_id<struct op::sign>,      collage::kind_id<struct op::clip>,
                                 collage::kind_id<struct op::transpose>, collage::kind_id<struct op::slice>,
                                 collage::kind_id<struct op::expand>,    collage::kind_id<struct op::concat>,
                                 collage::kind_id<struct op::tile>,      collage::kind_id<struct op::pad>,
                                 collage::kind_id<struct op::trilu>,     collage::kind_id<struct op::where>,
                                 collage::kind_id<struct op::cast>,      collage::kind_id<struct op::reduce_max>,
                                 collage::kind_id<struct op::reduce_min>})
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
      expected_.push_back({numbers_of(v), std::vector<double>(v.size(), 0.0), std::vector<bool>(v.size(), true)});
    for (const direction moved : {up, down, to_zero, some_to_zero, anywhere, anywhere, anywhere, anywhere}) look(moved);
  }
  const expectation& of(std::size_t output) const { return expected_[output]; }

  /// A few looks may all miss a jump, say of the sign of a sine of something large. True where there is more to know.
  bool look_closer() {
    if (std::exchange(is_close_, true)) return false;
    for (int i = 0; i < 300; ++i) look(i % 3 == 0 ? some_to_zero : anywhere);
    return true;
  }

 private:
  enum direction : std::uint8_t { nowhere, up, down, to_zero, some_to_zero, anywhere };

  void look(direction moved) {
    const std::vector<oracle_value> seen = run(moved);
    for (std::size_t o = 0; o < seen.size(); ++o) {
      expectation& e = expected_[o];
      const std::vector<double> moved_to = numbers_of(seen[o]);
      for (std::size_t i = 0; i < e.middle.size(); ++i) {
        const double m = e.middle[i], x = moved_to[i];
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
      const bool goes_to_zero = moved == to_zero || moved == some_to_zero;
      const bool is_moved = moved != nowhere && !is_exact(kind) && !(moved == some_to_zero && data_.chance(0.5));
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
        if (is_moved && std::isfinite(x)) x = goes_to_zero ? (std::abs(x) <= most ? 0 : x) : x + by() * most;
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
  /// How often a kernel has run in place, as it lets the engine have it.
  std::size_t in_place() const { return in_place_; }

  /// Builds and runs a group; false where it was refused.
  bool operator()(const graph& network, const node_list& nodes, const data_range& range = {}, int most_threads = 2) {
    const collage::node_group group = collage::group_of(network, nodes);
    std::vector<std::shared_ptr<const std::byte>> contents;
    std::map<std::uint32_t, oracle_value> known;
    for (const std::uint32_t v : group.arguments) {
      contents.push_back(network.view().is_constant(v) ? network.constant(v).bytes
                                                       : contents_of(network.type_of(v), range));
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
      for (std::size_t i = 0; i < contents.size(); ++i) {
        if (!built.writes_over(i)) continue;
        ++in_place_;
        run(network, group, built, contents, *expected, 0, 0xFF, true, i);
      }
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
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  std::shared_ptr<const std::byte> contents_of(const tensor_type& type, const data_range& range) {
    if (type.type != collage::dtype::boolean) return data_.contents(type, range);
    const std::shared_ptr<std::byte> bytes = collage::allocate_bytes(type.bytes());
    // Any byte but 0 is true.
    for (std::size_t i = 0; i < type.bytes(); ++i)
      bytes.get()[i] = static_cast<std::byte>(data_.chance(0.5) ? 0 : data_.chance(0.9) ? 1 : data_.number(2, 255));
    return bytes;
  }

  void run(const graph& network, const collage::node_group& group, const collage::kernel& built,
           const std::vector<std::shared_ptr<const std::byte>>& contents, group_oracle& expected, std::size_t shift,
           unsigned char fill, bool alone = true, std::size_t over = nowhere) {
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
    if (over != nowhere) {  // the argument lies where the output goes
      const std::size_t bytes = network.type_of(group.outputs[0]).bytes();
      ASSERT_EQ(network.type_of(group.arguments[over]).bytes(), bytes)
          << where_ << ": it would write over argument " << over;
      if (bytes != 0) std::memcpy(out[0].data(), contents[over].get(), bytes);
      pointers[over] = out[0].data();
    }
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
      if (actual.type.type == collage::dtype::boolean) {
        EXPECT_TRUE(std::all_of(out[o].data(), out[o].data() + actual.size(),
                                [](std::byte b) { return b == std::byte{0} || b == std::byte{1}; }))
            << where_ << ": output " << o << " has bytes other than 0 and 1";
      }
      const std::lock_guard lock(comparing_);
      compare(network, group, numbers_of(actual), expected, o, alone);
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
  std::size_t groups_ = 0, refused_ = 0, several_outputs_ = 0, largest_ = 0, allocations_ = 0, in_place_ = 0;
  std::size_t elements_ = 0, loosened_ = 0;
};

/// Of one range for each kind of trouble.
inline const std::vector<data_range>& ranges() {
  static const std::vector<data_range> list = {{-0.5, 1}, {-4, 4, 0.05}, {-90, 90}, {-1e-39, 1e-39}};
  return list;
}

}  // namespace collage_test::stacked_testing
