// Candidates of backend sets in static graphs, enumerated by the compiler; and that what the adapters accept is known to
// it too.
#include <collage/backends/eigen.hpp>
#include <collage/backends/onednn.hpp>
#include <collage/backends/openblas.hpp>
#include <collage/backends/portable.hpp>
#include <collage/collage.hpp>
#include <collage/set/candidates.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace {

namespace c = collage;
namespace op = collage::ops;
using c::any, c::constant;

/// relu(conv), a reshape, relu of the reshaped, and a second convolution of two groups whose value is also an output.
struct net {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {1, 4, 8, 8});                                    // value 0
    const auto w = g.constant("w", {4, 4, 1, 1});                                 // 1
    const auto y = g(op::relu, g(op::conv, x, w));                                // nodes 0, 1: values 2, 3
    const auto z = g(op::relu, g(op::reshape, y, {.dims = {1, 4, 64, 1}}));       // nodes 2, 3: values 4, 5
    const auto v = g(op::conv, z, g.constant("v", {4, 2, 1, 1}), {.groups = 2});  // node 4: values 6 (v), 7
    g.output("v", v);
    g.output("z", g(op::relu, v));  // node 5: value 8
  });
};

struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(any, constant));
};
struct conv_escaping_relu : c::pattern<"conv_escaping_relu"> {
  static constexpr auto expr = op::relu(op::conv(any, constant).escaping());
};

struct fuser : c::backend<"fuser"> {
  using patterns = c::patterns<conv_relu, conv_escaping_relu>;
  static constexpr c::verdict accepts(const c::match<conv_escaping_relu>& m) {
    return {m[op::conv].groups == 2, "groups must be 2"};
  }
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
struct loops : c::backend<"loops"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::conv>>;
  static constexpr c::verdict accepts(const c::match<c::single<op::conv>>& m) {
    return {m[op::conv].groups == 1, "groups must be 1"};
  }
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};

struct expected {
  std::uint32_t backend, pattern, node;
  std::initializer_list<std::uint32_t> nodes, arguments;
};
constexpr bool is_list(c::list_view<const std::uint32_t> found, std::initializer_list<std::uint32_t> wanted) {
  if (found.size() != wanted.size()) return false;
  std::size_t i = 0;
  for (const std::uint32_t w : wanted)
    if (found[i++] != w) return false;
  return true;
}
template <class Candidates>
constexpr bool are(const Candidates& found, std::initializer_list<expected> wanted) {
  if (found.size() != wanted.size()) return false;
  std::size_t i = 0;
  for (const expected& w : wanted) {
    const c::static_candidate f = found[i++];
    if (f.backend != w.backend || f.pattern != w.pattern || f.node != w.node || !is_list(f.nodes, w.nodes) ||
        !is_list(f.arguments, w.arguments))
      return false;
  }
  return true;
}

// By node, then backend, then pattern. The reshape is nobody's. The second convolution's value is an output: conv_relu does
// not match, and a kernel of conv_escaping_relu writes both.
static_assert(are(c::candidates_of<c::backend_set<fuser, loops>, net>, {{1, 1, 0, {0}, {0, 1}},
                                                                        {0, 0, 1, {0, 1}, {0, 1}},
                                                                        {1, 0, 1, {1}, {2}},
                                                                        {1, 0, 3, {3}, {4}},
                                                                        {0, 1, 5, {4, 5}, {5, 6}},
                                                                        {1, 0, 5, {5}, {7}}}));
static_assert(are(c::candidates_of<c::backend_set<loops, fuser>, net>, {{0, 1, 0, {0}, {0, 1}},
                                                                        {0, 0, 1, {1}, {2}},
                                                                        {1, 0, 1, {0, 1}, {0, 1}},
                                                                        {0, 0, 3, {3}, {4}},
                                                                        {0, 0, 5, {5}, {7}},
                                                                        {1, 1, 5, {4, 5}, {5, 6}}}));
static_assert(c::candidates_of<c::backend_set<>, net>.size() == 0);

/// More nodes of one kind than one evaluation asks.
struct long_net {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {2});
    for (int i = 0; i < 300; ++i) x = g(op::relu, x);
    g.output("y", x);
  });
};
constexpr bool is_complete(const auto& found, std::size_t count) {
  for (std::uint32_t i = 0; i < found.size(); ++i)
    if (found[i].node != i || found[i].nodes[0] != i || found[i].arguments[0] != i) return false;
  return found.size() == count;
}
static_assert(is_complete(c::candidates_of<c::backend_set<loops>, long_net>, 300));

/// More kinds than a walk keeps apart, and more nodes than one evaluation asks.
struct many_kinds {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {2});
    for (int i = 0; i < 30; ++i) {
      x = g(op::tanh, g(op::relu, g(op::neg, g(op::abs, g(op::exp, x)))));
      x = g(op::floor, g(op::ceil, x));
    }
    g.output("y", x);
  });
};
struct taker : c::backend<"taker"> {
  struct either_of : c::pattern<"either_of"> {
    static constexpr auto expr = c::one_of(op::tanh, op::relu, op::neg, op::abs, op::exp, op::floor, op::ceil)(any);
  };
  struct whatever : c::pattern<"whatever"> {
    static constexpr auto expr = c::any_operator;
  };
  using patterns = c::patterns<whatever>;
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
struct other_taker : c::backend<"other_taker"> {
  using patterns = c::patterns<taker::either_of>;
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
static_assert(is_complete(c::candidates_of<c::backend_set<taker>, many_kinds>, 210));
static_assert(is_complete(c::candidates_of<c::backend_set<other_taker>, many_kinds>, 210));

// The adapters: what they accept, and what they refuse and why, is known to the compiler.
template <class B>
constexpr c::verdict ask(const char* pattern, const c::graph_view& graph, std::uint32_t node) {
  const c::declared_backend& backend = c::declaration_of<B>;
  for (std::uint32_t p = 0; p < backend.patterns.size(); ++p) {
    if (std::string_view(backend.patterns[p].name) != pattern) continue;
    c::match_record record;
    if (!c::match_at(graph, backend.patterns[p].nodes, node, record)) return {false, "no match"};
    return backend.patterns[p].accepts(graph, record);
  }
  return {false, "no pattern"};
}
constexpr bool refuses(const c::verdict& v, std::string_view rule) { return !v && rule == v.rule; }

struct doubles {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {c::dtype::f64, {1, 4, 8, 8}});
    g.output("y", g(op::conv, x, g.constant("w", {c::dtype::f64, {4, 4, 1, 1}})));
  });
};
constexpr c::graph_view floats_view = net::graph.view(), doubles_view = doubles::graph.view();
static_assert(ask<c::eigen>("conv", floats_view, 0) && ask<c::onednn>("conv", floats_view, 0) &&
              ask<c::openblas>("conv", floats_view, 0) && ask<c::portable>("loops", floats_view, 0));
static_assert(ask<c::eigen>("conv_activation", floats_view, 1) && ask<c::onednn>("conv_chain", floats_view, 1) &&
              ask<c::openblas>("conv_relu", floats_view, 1));
static_assert(refuses(ask<c::eigen>("conv", doubles_view, 0), "eigen computes this only in float32"));
static_assert(refuses(ask<c::onednn>("conv", doubles_view, 0), "onednn computes only in float32"));
static_assert(refuses(ask<c::openblas>("conv", doubles_view, 0), "openblas computes only in float32"));
static_assert(ask<c::portable>("loops", doubles_view, 0));

}  // namespace
