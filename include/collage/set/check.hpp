// Checks a list of types that should be a set of backends, and describes a fault in one sentence.
//
// The members of each backend are examined once for each of its patterns. The findings are plain values, which ordinary code
// judges.
#pragma once

#include <collage/backend.hpp>
#include <collage/detail/sentence.hpp>
#include <collage/detail/type_name.hpp>
#include <collage/set/algebra.hpp>
#include <collage/set/kinds.hpp>
#include <collage/set/sample.hpp>
#include <collage/set/variants.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0::detail {

/// Examines only the type, so that a set can be composed, and covered, where kernels are only declared.
template <class B, class P>
concept builds = requires(const match<P>& m, build_context& context) {
  requires std::is_same_v<decltype(B::build(m, context)), kernel>;
};
/// The same with any result. Only `decltype` may name a call whose result is the incomplete type `kernel`.
template <class B, class Match, class Context>
concept has_build = requires(Match m, Context context) { typename std::void_t<decltype(B::build(m, context))>; };
template <class B, class Match> concept has_accepts = requires(Match m) { B::accepts(m); };

template <class B, class P>
consteval member check_build() {
  using m = const match<P>&;
  using context = build_context&;
  if constexpr (builds<B, P>) return member::fine;
  else if constexpr (has_build<B, m, context>) return member::other_result;
  else if constexpr (requires(B& b, m x, context c) { typename std::void_t<decltype(b.build(x, c))>; })
    return member::not_static;
  else if constexpr (has_build<B, match<P>&, context> || has_build<B, m, build_context*> ||
                     requires(m x) { typename std::void_t<decltype(B::build(x))>; })
    return member::other_arguments;
  else return member::missing;
}

template <class B, class P>
consteval member check_accepts() {
  using m = const match<P>&;
  if constexpr (has_accepts<B, m>) {
    constexpr bool judges = requires(m x) { requires judgement<decltype(B::accepts(x))>; };
    return judges ? member::fine : member::other_result;
  } else if constexpr (requires(B& b, m x) { b.accepts(x); }) {
    return member::not_static;
  } else if constexpr (has_accepts<B, match<P>&> || requires(m x, build_context& c) { B::accepts(x, c); }) {
    return member::other_arguments;
  } else {
    return member::missing;
  }
}

/// Calls `accepts` for the sample of its pattern.
template <class B, class P>
constexpr bool try_accepts() {
  sample_graph<graph_view> sample;
  match_record record;
  if (sample.make(nodes_of<P>, record)) static_cast<void>(B::accepts(match<P>(sample.view(), record)));
  return true;
}
template <class P>
constexpr bool try_sample() {
  sample_graph<graph_view> sample;
  match_record record;
  return sample.make(nodes_of<P>, record);
}
/// If no sample can be made, the fault is the operator kind's, not the backend's.
template <class P> concept has_sample = requires { requires try_sample<P>(); };
template <class B, class P>
concept accepts_in_constant_evaluation = requires { typename std::bool_constant<try_accepts<B, P>()>; };

struct named_accepts {
  int accepts;
};
template <class B>
consteval bool names_accepts() {
  if constexpr (std::is_final_v<B>) return requires { &B::accepts; };
  else return !requires { &beside<B, named_accepts>::accepts; };
}

struct pattern_facts {
  const char* name = "";
  std::uint64_t id = 0;
  member build = member::fine, accepts = member::fine, choices = member::fine;
};

template <class B, class P>
consteval pattern_facts ask_pattern() {
  return {P::name, hash(P::name), check_build<B, P>(), check_accepts<B, P>(), check_choices<B, P>()};
}

/// The members of the whole backend: `probe`, `enter`, `leave`. For a fusion rule or regions, the members that belong to it.
struct backend_facts {
  member probe = member::fine, enter = member::fine, leave = member::fine;
  member rule = member::fine, build_group = member::fine, takes = member::fine;
};

template <class B>
concept builds_groups = requires(const node_group& group, build_context& context) {
  requires std::is_same_v<decltype(B::build(group, context)), kernel>;
};
template <class B> concept has_takes = requires(const graph& network) { B::takes(network, std::uint32_t{}); };

template <class B>
consteval backend_facts ask_rule(backend_facts f) {
  if constexpr (has_regions<B>) f.rule = requires { B::rule; } ? member::other_result : member::fine;
  else if constexpr (!requires(const fuse::dataflow& flow, fuse::group_list& to) { B::rule.collect(flow, to); })
    f.rule = member::other_result;
  if constexpr (builds_groups<B>) f.build_group = member::fine;
  else if constexpr (has_build<B, const node_group&, build_context&>) f.build_group = member::other_result;
  else f.build_group = member::missing;
  if constexpr (has_takes<B>)
    f.takes = requires(const graph& g) {
      requires std::is_same_v<decltype(B::takes(g, std::uint32_t{})), bool> ||
                   std::is_same_v<decltype(B::takes(g, std::uint32_t{})), verdict>;
    } ? member::fine : member::other_result;
  else if constexpr (requires(B& b, const graph& g) { b.takes(g, std::uint32_t{}); }) f.takes = member::not_static;
  else f.takes = requires { &B::takes; } ? member::other_arguments : member::missing;
  return f;
}

template <class B>
consteval backend_facts ask_backend() {
  backend_facts f;
  if constexpr (requires { B::probe(); })
    f.probe = std::is_same_v<decltype(B::probe()), probe_result> ? member::fine : member::other_result;
  else if constexpr (requires(B& b) { b.probe(); }) f.probe = member::not_static;
  else f.probe = requires { &B::probe; } ? member::other_arguments : member::missing;
  if constexpr (requires { B::enter(1); })
    f.enter = std::is_same_v<decltype(B::enter(1)), int> ? member::fine : member::other_result;
  else if constexpr (requires(B& b) { b.enter(1); }) f.enter = member::not_static;
  else f.enter = requires { &B::enter; } ? member::other_arguments : member::missing;
  if constexpr (requires { B::leave(1); }) f.leave = member::fine;
  else if constexpr (requires(B& b) { b.leave(1); }) f.leave = member::not_static;
  else f.leave = requires { &B::leave; } ? member::other_arguments : member::missing;
  if constexpr (has_rule<B> || has_regions<B>) return ask_rule<B>(f);
  else return f;
}

enum class set_rule : std::uint8_t { none, reserved, member, of_nothing, two_ways, pattern_twice, twice, one_name };

/// A broken rule; `none` if the list is sound. A sentence is only made if there is a fault.
struct set_fault {
  set_rule rule = set_rule::none;
  member state = member::fine;
  const char* backend = "";
  const char* pattern = nullptr;
  const char* name = "";  ///< of the member
  const char* declaration = "";
  std::uint32_t first = 0, second = 0;  ///< the indices of two backends that cannot be in one set
};

inline constexpr char build_declaration[] = "static kernel build(const match<P>&, build_context&) for every pattern P";
inline constexpr char accepts_declaration[] = "static constexpr verdict accepts(const match<P>&), or bool";
inline constexpr char rule_declaration[] =
    "static constexpr auto rule, a rule for groups of collage/fuse, and no takes_regions beside it";
inline constexpr char build_group_declaration[] =
    "static kernel build(const node_group&, build_context&) beside the rule, or takes_regions";
inline constexpr char takes_declaration[] = "static bool takes(const graph&, std::uint32_t node)";
inline constexpr char choices_declaration[] = "static std::size_t choices(const match<P>&)";
inline constexpr char configurations_declaration[] = "static void configurations(const match<P>&, configuration_list&)";
inline constexpr char knows_declaration[] = "static verdict knows(const match<P>&, const configuration&), or bool";
inline constexpr char search_space_declaration[] =
    "static std::shared_ptr<const tune::any_space> search_space(const match<P>&, const configuration& like, int threads)";
inline constexpr char layouts_declaration[] = "static void layouts(const match<P>&, std::size_t choice, value_forms&)";
inline constexpr char layouts_of_configurations_declaration[] =
    "static void layouts(const match<P>&, const configuration&, value_forms&)";

constexpr bool is_wrong(auto state, bool needed) {
  return state != member::fine && (needed || state != member::missing);
}

// Templates over the types that they read and write, so that only includers that compose a set compile them.
template <class Facts>
constexpr set_fault judge_patterns(const char* backend, const Facts* list, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const Facts& p = list[i];
    if (p.id == hash(by_rule)) return {set_rule::reserved, {}, backend, p.name};
    for (std::size_t j = 0; j < i; ++j)
      if (list[j].id == p.id) return {set_rule::pattern_twice, {}, backend, p.name};
    if (is_wrong(p.build, true)) return {set_rule::member, p.build, backend, p.name, "build", build_declaration};
    if (is_wrong(p.accepts, false))
      return {set_rule::member, p.accepts, backend, p.name, "accepts", accepts_declaration};
    if (is_wrong(p.choices, false))
      return {set_rule::member, p.choices, backend, p.name, "choices", choices_declaration};
  }
  return {};
}

template <class Facts>
constexpr set_fault judge_backend(const char* backend, const Facts& f) {
  const bool either = f.enter != member::missing || f.leave != member::missing;
  if (is_wrong(f.probe, false))
    return {set_rule::member, f.probe, backend, nullptr, "probe", "static probe_result probe()"};
  if (is_wrong(f.enter, either))
    return {set_rule::member, f.enter, backend, nullptr, "enter", "static int enter(int threads) beside leave"};
  if (is_wrong(f.leave, either))
    return {set_rule::member, f.leave, backend, nullptr, "leave", "static void leave(int token) beside enter"};
  if (is_wrong(f.rule, true)) return {set_rule::member, f.rule, backend, nullptr, "rule", rule_declaration};
  if (is_wrong(f.build_group, true))
    return {set_rule::member, f.build_group, backend, nullptr, "build", build_group_declaration};
  if (is_wrong(f.takes, false)) return {set_rule::member, f.takes, backend, nullptr, "takes", takes_declaration};
  return {};
}

template <class B>
consteval const char* find_not_constant(const patterns<>*) {
  return nullptr;
}
/// The first pattern for which `accepts` cannot be evaluated by the compiler.
template <class B, class First, class... P>
consteval const char* find_not_constant(const patterns<First, P...>*) {
  if constexpr (has_accepts<B, const match<First>&>) {
    if constexpr (has_sample<First>) {
      if constexpr (!accepts_in_constant_evaluation<B, First>) return First::name;
      else if constexpr (requires { &B::accepts; }) return nullptr;  // one function for all: one trial is enough
      else return find_not_constant<B>(static_cast<const patterns<P...>*>(nullptr));
    } else {
      return find_not_constant<B>(static_cast<const patterns<P...>*>(nullptr));
    }
  } else {
    return find_not_constant<B>(static_cast<const patterns<P...>*>(nullptr));
  }
}
template <class B, class... P>
consteval set_fault try_backend(const patterns<P...>& list) {
#ifdef __SANITIZE_ADDRESS__
  return {};  // under its sanitizers, g++ 12 takes comparisons of pointers for no constants
#endif
  const char* pattern = find_not_constant<B>(&list);
  if (pattern == nullptr) return {};
  return {set_rule::member, member::not_constant, B::name, pattern, "accepts", accepts_declaration};
}

/// Judges one member of a backend by its state for each pattern. At least one pattern must have it.
template <class B, class... P>
consteval set_fault judge_member(const member (&states)[sizeof...(P)], const char* name, const char* declaration) {
  const char* const names[] = {P::name...};
  bool any = false;
  for (std::size_t i = 0; i < sizeof...(P); ++i) {
    any = any || states[i] == member::fine;
    if (is_wrong(states[i], false)) return {set_rule::member, states[i], B::name, names[i], name, declaration};
  }
  if (any) return {};
  return {set_rule::of_nothing, {}, B::name, nullptr, name, declaration};
}
/// Configurations replace choices, and `knows` and `search_space` need them.
template <class B, class P>
consteval set_fault judge_configurations() {
  constexpr bool has = has_configurations<B, const match<P>&>;
  if (has && has_choices<B, const match<P>&>) return {set_rule::two_ways, {}, B::name, P::name};
  if (!has && (has_knows<B, const match<P>&> || has_search_space<B, const match<P>&>))
    return {set_rule::member, member::missing, B::name, P::name, "configurations", configurations_declaration};
  return {};
}
/// Few backends have these members, so backends without them are not examined for each pattern.
template <class B, class... P>
consteval set_fault judge_variants() {
  set_fault fault;
  constexpr bool has_texts = names_configurations<B>();
  if constexpr (has_texts)
    fault = judge_member<B, P...>({check_configurations<B, P>()...}, "configurations", configurations_declaration);
  if constexpr (names_knows<B>())
    if (fault.rule == set_rule::none)
      fault = judge_member<B, P...>({check_knows<B, P>()...}, "knows", knows_declaration);
  if constexpr (names_search_space<B>())
    if (fault.rule == set_rule::none)
      fault = judge_member<B, P...>({check_search_space<B, P>()...}, "search_space", search_space_declaration);
  if constexpr (has_texts || names_knows<B>() || names_search_space<B>())
    ((fault.rule == set_rule::none ? static_cast<void>(fault = judge_configurations<B, P>()) : void()), ...);
  if constexpr (names_layouts<B>())
    if (fault.rule == set_rule::none)
      fault = judge_member<B, P...>({check_layouts<B, P>()...}, "layouts",
                                    has_texts ? layouts_of_configurations_declaration : layouts_declaration);
  return fault;
}

template <class B, class... P>
consteval set_fault check_backend(const patterns<P...>& list) {
  constexpr set_fault whole = judge_backend(B::name, ask_backend<B>());
  if constexpr (whole.rule != set_rule::none || sizeof...(P) == 0) {
    return whole;
  } else {
    constexpr pattern_facts facts[] = {ask_pattern<B, P>()...};
    constexpr set_fault found = judge_patterns(B::name, facts, sizeof...(P));
    if constexpr (found.rule != set_rule::none) return found;
    if constexpr (!(has_choices<B, const match<P>&> || ...)) {
      if (names_choices<B>()) return {set_rule::of_nothing, {}, B::name, nullptr, "choices", choices_declaration};
    }
    constexpr set_fault variants = judge_variants<B, P...>();
    if constexpr (variants.rule != set_rule::none) return variants;
    if constexpr (!(has_accepts<B, const match<P>&> || ...)) {
      if (names_accepts<B>()) return {set_rule::of_nothing, {}, B::name, nullptr, "accepts", accepts_declaration};
      return {};
    } else {
      return try_backend<B>(list);
    }
  }
}

/// Finds backends that cannot be in one set.
template <class... B>
consteval set_fault judge_names() {
  const char* const names[] = {B::name..., nullptr};
  const std::uint64_t ids[] = {hash(B::name)..., 0};
  const std::size_t first[] = {index_in<B>(backend_list<B...>{})..., 0};
  for (std::uint32_t i = 0; i < sizeof...(B); ++i) {
    for (const char* taken : {"", "alias", "control", "view", "copy", "plan"})
      if (ids[i] == hash(taken)) return {set_rule::reserved, {}, names[i]};
    for (std::uint32_t j = 0; j < i; ++j)
      if (ids[i] == ids[j])
        return {first[i] == first[j] ? set_rule::twice : set_rule::one_name, {}, names[i], nullptr, "", "", j, i};
  }
  return {};
}

template <class... B>
consteval set_fault find_fault() {
  set_fault fault = judge_names<B...>();
  ((fault.rule == set_rule::none ? static_cast<void>(fault = check_backend<B>(patterns_of<B>{})) : void()), ...);
  return fault;
}

template <class Text>
constexpr void tell_member(Text& out, const set_fault& f) {
  out << "backend (" << f.backend << ")";
  if (f.pattern != nullptr) out << ", pattern (" << f.pattern << ")";
  out << ": " << f.name;
  switch (f.state) {
    case member::other_arguments: out << " takes other arguments"; break;
    case member::not_static: out << " is not static"; break;
    case member::other_result: out << " returns another type"; break;
    case member::not_constant:
      out << " cannot be evaluated at compile time (tried with tensors of one element), and may depend only on the "
             "match";
      break;
    default: out << " is missing or private"; break;
  }
  out << "; declare " << f.declaration;
}
template <class... B, class Text>
constexpr void tell_fault(Text& out, const set_fault& f) {
  if (f.rule == set_rule::member) tell_member(out, f);
  if (f.rule == set_rule::of_nothing)
    out << "backend (" << f.backend << "): " << f.name
        << " takes a match of none of its patterns, or is private; declare " << f.declaration;
  if (f.rule == set_rule::two_ways)
    out << "backend (" << f.backend << "), pattern (" << f.pattern
        << "): it has both choices and configurations; declare only one of them";
  if (f.rule == set_rule::pattern_twice)
    out << "backend (" << f.backend << ") declares the pattern (" << f.pattern
        << ") twice, and costs are kept by its name; declare it once, or give the other another name";
  if (f.rule == set_rule::reserved && f.pattern != nullptr)
    out << "backend (" << f.backend << "): a pattern is called (" << f.pattern
        << "), which is a reserved name in plans; rename it";
  if (f.rule == set_rule::reserved && f.pattern == nullptr)
    out << "a backend is called (" << f.backend << "), which is a reserved name in plans; rename it";
  if (f.rule == set_rule::twice) out << "a backend_set names the backend (" << f.backend << ") twice; name it once";
  if (f.rule == set_rule::one_name) {
    const Text types[] = {type_name<B>()...};
    out << "a backend_set holds two backends called (" << f.backend << "), the types " << types[f.first].text << " and "
        << types[f.second].text << ", and plans identify backends by name; rename one of them";
  }
}
template <class B, class Text>
constexpr void tell_type(Text& out) {
  if (!out.empty() || backend_type<B>) return;
  out << "a backend_set holds " << type_name<B>().text << ", which is not a backend; "
      << (derives_from_backend<B> ? "" : "derive it from collage::backend<name>, and ")
      << "list what it runs: using patterns = collage::patterns<...>";
}

/// The reason why the types are not a set of backends; empty if they are.
template <class... B>
struct set_check {
  static constexpr sentence why() {
    sentence out;
    if constexpr (!(backend_type<B> && ...)) {
      (tell_type<B>(out), ...);
    } else if constexpr (!(are_sound(patterns_of<B>{}) && ...)) {
      ((out = out.empty() ? tell_unsound(patterns_of<B>{}) : out), ...);
    } else {
      constexpr set_fault fault = find_fault<B...>();
      // Only backends without a fault of their own are lowered.
      if constexpr (fault.rule != set_rule::none) tell_fault<B...>(out, fault);
      else if constexpr (kinds_named_by<B...>.has_twin) tell_twins<B...>(out);
    }
    return out;
  }
};

}  // namespace collage::inline v0::detail
