// Backends as types, their static composition, and sets made from sets.
#include <collage/collage.hpp>
#include <collage/run/backend_table.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace {

namespace c = collage;
namespace op = collage::ops;
using c::any, c::constant;

struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(any, constant));
};

/// One function builds all its patterns; nothing is refused.
struct everything : c::backend<"everything"> {
  using patterns = c::patterns<conv_relu, c::single<op::conv>, c::single<op::relu>>;
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&) {
    return {};
  }
};

/// One overload for each pattern; opinions on one of them.
struct choosy : c::backend<"choosy"> {
  using patterns = c::patterns<c::single<op::conv>, c::single<op::relu>>;
  static constexpr c::verdict accepts(const c::match<c::single<op::conv>>& m) {
    return {m[op::conv].groups == 1, "groups must be 1"};
  }
  static c::kernel build(const c::match<c::single<op::conv>>&, c::build_context&) { return {}; }
  static c::kernel build(const c::match<c::single<op::relu>>&, c::build_context&) { return {}; }
  static c::probe_result probe() { return {}; }
};

/// The oracle has no patterns.
struct oracle : c::backend<"oracle"> {
  using patterns = c::patterns<>;
};

static_assert(c::backend_type<everything> && c::backend_type<choosy> && c::backend_type<oracle>);
static_assert(!c::backend_type<int> && !c::backend_type<conv_relu>);
struct without_patterns : c::backend<"without_patterns"> {};
static_assert(!c::backend_type<without_patterns>);
struct wrong_patterns : c::backend<"wrong_patterns"> {
  using patterns = int;
};
static_assert(!c::backend_type<wrong_patterns>);
struct by_name_alone {
  [[maybe_unused]] static constexpr const char* name = "by_name_alone";
  using patterns = c::patterns<>;
};
static_assert(!c::backend_type<by_name_alone>);

using set = c::backend_set<oracle, everything, choosy>;
static_assert(set::is_sound && set::size == 3);
static_assert(std::string_view(set::names[0]) == "oracle" && std::string_view(set::names[2]) == "choosy" &&
              set::names[3] == nullptr);
static_assert(c::backend_set<>::size == 0, "a build without libraries is a smaller set");
static_assert(c::table_of<c::backend_set<>>.empty());
static_assert(std::string_view(choosy::name) == "choosy");

// Sets made from sets.
static_assert(set::contains<choosy> && !c::backend_set<oracle>::contains<choosy>);
static_assert(set::index_of<choosy> == 2 && c::backend_set<oracle>::index_of<choosy> == 1);
static_assert(std::is_same_v<c::backend_set<oracle>::add<everything, choosy>, set>);
static_assert(std::is_same_v<c::backend_set<>::add<oracle>, c::backend_set<oracle>>);
static_assert(std::is_same_v<set::remove<everything>, c::backend_set<oracle, choosy>>);
static_assert(std::is_same_v<set::remove<oracle, everything, choosy>, c::backend_set<>>);
static_assert(std::is_same_v<set::prefer<choosy>, c::backend_set<choosy, oracle, everything>>);
static_assert(std::is_same_v<set::prefer<choosy, everything>, c::backend_set<choosy, everything, oracle>>);
static_assert(std::is_same_v<c::set_union<>, c::backend_set<>>);
static_assert(std::is_same_v<c::set_union<c::backend_set<everything>, c::backend_set<>, c::backend_set<choosy>>,
                             c::backend_set<everything, choosy>>);
static_assert(
    std::is_same_v<c::set_union<c::backend_set<choosy, oracle>, set>, c::backend_set<choosy, oracle, everything>>);
static_assert(std::is_same_v<c::set_intersection<set, c::backend_set<choosy, oracle>>, c::backend_set<oracle, choosy>>);
static_assert(std::is_same_v<c::set_intersection<set, c::backend_set<>>, c::backend_set<>>);
static_assert(std::is_same_v<c::set_difference<set, c::backend_set<choosy, oracle>>, c::backend_set<everything>>);
static_assert(std::is_same_v<c::set_difference<set, set>, c::backend_set<>>);

// Properties: what a type has, what it declares, and one of a user's.
static_assert(std::is_same_v<set::filter<c::has_probe>, c::backend_set<choosy>>);
static_assert(std::is_same_v<set::filter<c::lacks<c::has_probe>>, c::backend_set<oracle, everything>>);
static_assert(std::is_same_v<set::filter<c::declares<op::conv>>, c::backend_set<everything, choosy>>);
static_assert(std::is_same_v<set::filter<c::declares<op::tanh>>, c::backend_set<>>);
static_assert(std::is_same_v<c::backend_set<>::filter<c::has_probe>, c::backend_set<>>);
struct has_a_long_name {
  template <class B>
  static constexpr bool holds = std::string_view(B::name).size() > 6;
};
static_assert(std::is_same_v<set::filter<has_a_long_name>, c::backend_set<everything>>);

/// A set may have a short name of its own.
struct named_set : c::backend_set<everything, choosy> {};
static_assert(c::backend_set_type<named_set> && c::backend_set_type<set> && !c::backend_set_type<oracle>);
static_assert(std::is_same_v<named_set::remove<choosy>, c::backend_set<everything>>);
static_assert(std::is_same_v<c::set_union<c::backend_set<oracle>, named_set>, set>);
static_assert(c::table_of<named_set>.size() == 2);

// The same as an array of values.
constexpr c::backend_table table = c::table_of<set>;
static_assert(table.size() == 3 && std::string_view(table[1].name) == "everything");
static_assert(table[0].patterns.empty() && table[1].patterns.size() == 3 && table[2].patterns.size() == 2);
static_assert(std::string_view(table[1].patterns[0].name) == "conv_relu" &&
              table[1].patterns[0].nodes.size == conv_relu::expr.size());
static_assert(table[1].enter == nullptr && table[1].leave == nullptr, "it has no threads of its own");

static_assert(c::detail::builds<everything, conv_relu> && !c::detail::builds<choosy, conv_relu>);

// `accepts` is asked where it has an opinion.
constexpr c::kind_info conv_info = c::kind_of<decltype(op::conv)>;
constexpr c::attribute_words words(std::int64_t groups) { return c::to_words(op::conv_attributes{.groups = groups}); }
template <std::int64_t Groups>
constexpr c::verdict asked() {
  const c::attribute_words list = words(Groups);
  const c::node_record nodes[] = {{&conv_info, 0, 2, 2, 1, 0, static_cast<std::uint32_t>(list.size)}};
  c::value_record values[3];
  values[1].role = c::value_role::constant;
  values[2].producer = 0;
  const std::uint32_t operands[] = {0, 1};
  const c::graph_view view{nodes, values, operands, {}, list.list()};
  c::match_record record;
  if (!c::match_at(view, c::single<op::conv>::expr, 0, record)) throw "no match";
  return table[2].patterns[0].accepts(view, record);
}
static_assert(bool(asked<1>()));
static_assert(!asked<2>() && std::string_view(asked<2>().rule) == "groups must be 1");
static_assert(bool(table[1].patterns[0].accepts({}, {})), "no opinion is none against it");

// What a check tries `accepts` on: a match made from the pattern.
constexpr bool has_sample(c::pattern_view pattern) {
  c::detail::sample_graph<c::graph_view> sample;
  c::match_record record;
  return sample.make(pattern, record) && record.nodes != 0;
}
struct repeated : c::pattern<"repeated"> {
  static constexpr auto expr =
      c::repeat<1, 3>(op::relu(c::previous), c::either(op::conv(any, constant), op::add(any, any)));
};
static_assert(has_sample(conv_relu::expr) && has_sample(repeated::expr) && has_sample(c::single<op::matmul>::expr) &&
              has_sample(c::single<op::reduce_mean>::expr));
static_assert(has_sample(op::relu(any).rank(2)) && has_sample(op::matmul(any.rank(2), any.rank(2))) &&
              has_sample(op::relu(any.of(c::dtype::f16))) &&
              has_sample(c::outputs(op::exp(any.as<"x">()), op::neg(c::same<"x">()))));
static_assert(!has_sample(op::conv(any, any).where([](const op::conv_attributes& a) { return a.groups == 2; })));

}  // namespace
