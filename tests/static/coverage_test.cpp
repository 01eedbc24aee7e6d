// What a set declares, and what of a graph it covers.
#include <collage/backends/eigen.hpp>
#include <collage/backends/onednn.hpp>
#include <collage/backends/openblas.hpp>
#include <collage/backends/portable.hpp>
#include <collage/collage.hpp>
#include <collage/set/coverage.hpp>
#include <collage/set/covers.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

namespace c = collage;
namespace op = collage::ops;
using c::any, c::constant;

struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(any, constant));
};
struct conv_maybe_relu : c::pattern<"conv_maybe_relu"> {
  static constexpr auto expr = c::optional(op::relu(c::previous), op::conv(any, constant));
};
struct two_relu : c::pattern<"two_relu"> {
  static constexpr auto expr = op::relu(op::relu(any));
};

struct fuser : c::backend<"fuser"> {
  using patterns = c::patterns<conv_relu, two_relu>;
  static constexpr c::verdict accepts(const c::match<conv_relu>& m) {
    return {m[op::conv].groups == 1, "groups must be 1"};
  }
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
struct loops : c::backend<"loops"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::tanh>>;
  static constexpr c::verdict accepts(const c::match<c::single<op::tanh>>& m) {
    return {m.output().type == c::dtype::f32, "it computes float32 only"};
  }
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
struct chooser : c::backend<"chooser"> {
  using patterns = c::patterns<conv_maybe_relu>;
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
struct last : c::backend<"last"> {
  struct whatever : c::pattern<"whatever"> {
    static constexpr auto expr = c::any_operator;
    static constexpr bool last_resort = true;
  };
  using patterns = c::patterns<whatever>;
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};

// The table of a set.
using pair = c::backend_set<fuser, loops>;
constexpr const auto& table = c::coverage_of<pair>;
static_assert(table.rows() == 3 && table.backends() == 2);
static_assert(std::string_view(table.kind[0]) == "conv" && std::string_view(table.kind[1]) == "relu" &&
              std::string_view(table.kind[2]) == "tanh");
static_assert(std::string_view(table.backend[0]) == "fuser" && std::string_view(table.backend[1]) == "loops");
static_assert(table.cell[0][0] == c::coverage_cell{false, 1} && table.cell[0][1] == c::coverage_cell{});
static_assert(table.cell[1][0] == c::coverage_cell{false, 2} && table.cell[1][1] == c::coverage_cell{true, 0});
static_assert(std::string_view(c::coverage_text<pair>.c_str()) ==
              "operator  fuser    loops\n"
              "conv      1 fused  -\n"
              "relu      2 fused  alone\n"
              "tanh      -        alone\n");
static_assert(c::coverage_text<pair>.size() == std::string_view(c::coverage_text<pair>.c_str()).size());
static_assert(std::string_view(c::coverage_text<c::backend_set<>>.c_str()) == "operator\n");

// Alternatives are not fused with each other; an operand that may be missing need not be there; several outputs are.
struct shapes : c::backend<"shapes"> {
  struct one_of_two : c::pattern<"one_of_two"> {
    static constexpr auto expr = c::either(op::relu(any), op::tanh(any));
  };
  struct fused_or_alone : c::pattern<"fused_or_alone"> {
    static constexpr auto expr = c::either(op::add(op::conv(any, constant), any), op::sigmoid(any));
  };
  struct two_ends : c::pattern<"two_ends"> {
    static constexpr auto expr = c::outputs(op::exp(any.as<"x">()), op::neg(c::same<"x">()));
  };
  using patterns = c::patterns<one_of_two, fused_or_alone, two_ends>;
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
static_assert(std::string_view(c::coverage_text<c::backend_set<shapes>>.c_str()) ==
              "operator  shapes\n"
              "relu      alone\n"
              "tanh      alone\n"
              "conv      1 fused\n"
              "add       1 fused\n"
              "sigmoid   alone\n"
              "exp       1 fused\n"
              "neg       1 fused\n");

// What may be missing from a match counts as alone too; what takes any operator takes those of all rows.
static_assert(std::string_view(c::coverage_text<c::backend_set<chooser, last>>.c_str()) ==
              "operator   chooser         last\n"
              "conv       alone, 1 fused  alone\n"
              "relu       1 fused         alone\n"
              "any other  -               alone\n");

// What of a graph is covered.
struct net {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {1, 4, 8, 8});
    const auto y = g(op::relu, g(op::conv, x, g.constant("w", {4, 4, 1, 1})));
    g.output("z", g(op::tanh, g(op::reshape, y, {.dims = {4, 64}})));
  });
};
struct grouped {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 4, 8, 8});
    const auto w = g.constant("w", {4, 2, 1, 1});
    for (int i = 0; i < 2; ++i) x = g(op::relu, g(op::conv, x, w, {.groups = 2}));
    x = g(op::conv, x, g.constant("v", {4, 4, 1, 1}));
    g.output("t", g(op::tanh, g(op::softmax, x)));
    const auto d = g.input("d", {c::dtype::f64, {2}});
    g.output("e", g(op::tanh, d));
  });
};
static_assert(c::covers<pair, net>, "a reshape needs nobody");
static_assert(c::holes_of<pair, net>.empty());
static_assert(c::no_holes<c::holes<pair, net>>);
static_assert(!c::covers<c::backend_set<fuser>, net> && !c::covers<c::backend_set<loops>, net> &&
              !c::covers<c::backend_set<>, net>);
static_assert(c::covers<c::backend_set<last>, grouped>, "a last resort covers");
static_assert(!c::covers<pair, fuser> && !c::covers<net, pair>, "neither a graph nor a set");

// Holes are told by kind and reason, in order.
constexpr const c::hole_list& found = c::holes_of<pair, grouped>;
constexpr bool is_hole(const c::hole& h, std::string_view kind, std::uint32_t count, std::string_view why) {
  return h.kind == kind && h.count == count && why == h.why.text;
}
static_assert(found.size == 4 && found.others == 0);
static_assert(is_hole(found[0], "conv", 2, "fuser refuses it in pattern (conv_relu): groups must be 1"));
static_assert(is_hole(found[1], "conv", 1, "fuser has it in pattern (conv_relu), which does not match here"));
static_assert(is_hole(found[2], "softmax", 1, "no backend declares it"));
static_assert(is_hole(found[3], "tanh", 1, "loops refuses it: it computes float32 only"));
static_assert(found[1].first == 4);

/// Holes of more kinds than are listed.
struct many {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {2});
    x = g(op::abs, g(op::neg, g(op::exp, g(op::log, g(op::sqrt, x)))));
    x = g(op::abs, g(op::floor, g(op::ceil, g(op::sin, g(op::cos, x)))));
    g.output("y", x);
  });
};
static_assert(c::holes_of<pair, many>.size == c::hole_list::most && c::holes_of<pair, many>.others == 1);
/// Of the same reason than are explained.
struct long_net {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {2});
    for (int i = 0; i < 100; ++i) x = g(op::neg, x);
    g.output("y", x);
  });
};
static_assert(c::holes_of<pair, long_net>.size == 1 && c::holes_of<pair, long_net>[0].count == 100);

// How many nodes each backend can run.
constexpr const auto& taken = c::coverage_in<pair, grouped>;
static_assert(taken.rows() == 4 && taken.backends() == 2);
static_assert(std::string_view(c::graph_coverage_text<pair, grouped>.c_str()) ==
              "operator  nodes  fuser  loops\n"
              "conv      3      0      0\n"
              "relu      2      0      2\n"
              "softmax   1      0      0\n"
              "tanh      2      0      1\n");
static_assert(c::coverage_in<pair, net>.taken[0][0] == 1 && c::coverage_in<pair, net>.nodes[0] == 1);

// The adapters together declare what the built-in networks are made of.
using adapters = c::backend_set<c::onednn, c::openblas, c::eigen, c::portable>;
static_assert(c::covers<adapters, net> && c::covers<adapters, grouped> && c::covers<c::backend_set<c::eigen>, net>);
static_assert(!c::covers<c::backend_set<c::openblas>, net>);
constexpr bool has_row(std::string_view kind, bool alone, std::uint32_t fused, std::size_t backend) {
  const auto& all = c::coverage_of<adapters>;
  for (std::size_t r = 0; r < all.rows(); ++r)
    if (all.kind[r] == kind) return all.cell[r][backend] == c::coverage_cell{alone, fused};
  return false;
}
static_assert(has_row("matmul", true, 3, 1) && has_row("clip", false, 9, 0) && has_row("any other", true, 0, 3));

}  // namespace
