// Backends as types, and their static composition.
#include <collage/collage.hpp>
#include <collage/run/backend_table.hpp>
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
};

/// The oracle has no patterns.
struct oracle : c::backend<"oracle"> {
  using patterns = c::patterns<>;
};

static_assert(c::backend_type<everything> && c::backend_type<choosy> && c::backend_type<oracle>);
static_assert(!c::backend_type<int>);
struct without_patterns : c::backend<"without_patterns"> {};
static_assert(!c::backend_type<without_patterns>);
struct wrong_patterns : c::backend<"wrong_patterns"> {
  using patterns = int;
};
static_assert(!c::backend_type<wrong_patterns>);

using set = c::backend_set<oracle, everything, choosy>;
static_assert(set::size == 3);
static_assert(set::ids[1] == c::detail::hash("everything"));
static_assert(c::backend_set<>::size == 0, "a build without libraries is a smaller set");
static_assert(c::table_of<c::backend_set<>>.empty());
static_assert(std::string_view(choosy::name) == "choosy");

// The same as an array of values.
constexpr c::backend_table table = c::table_of<set>;
static_assert(table.size() == 3 && std::string_view(table[1].name) == "everything");
static_assert(table[0].patterns.empty() && table[1].patterns.size() == 3 && table[2].patterns.size() == 2);
static_assert(std::string_view(table[1].patterns[0].name) == "conv_relu" &&
              table[1].patterns[0].nodes.size() == conv_relu::expr.size);
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
  if (!c::match_at(view, c::single<op::conv>::expr.node, 0, record)) throw "no match";
  return c::detail::accepts<choosy>(c::match<c::single<op::conv>>(view, record));
}
static_assert(bool(asked<1>()));
static_assert(!asked<2>() && std::string_view(asked<2>().rule) == "groups must be 1");

static_assert([] {
  const c::verdict none = c::detail::accepts<everything>(c::match<conv_relu>(c::graph_view{}, c::match_record{}));
  return bool(none);
}());

}  // namespace
