// Conditions in patterns: turns the type of a user's predicate into a pointer to a function.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/kind.hpp>
#include <collage/pattern/node.hpp>
#include <collage/verdict.hpp>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0::detail {

// The parameter and the result of a predicate with one parameter; only declared.
template <class Result, class Predicate, class Parameter>
Parameter parameter_of(Result (Predicate::*)(Parameter) const);
template <class Result, class Predicate, class Parameter>
Result result_of(Result (Predicate::*)(Parameter) const);

/// A lambda with one parameter and without captures, which is not generic.
template <class Predicate>
concept plain_predicate = std::is_empty_v<Predicate> && std::default_initializable<Predicate> &&
                          requires { typename std::void_t<decltype(parameter_of(&Predicate::operator()))>; };

template <class Predicate>
using parameter_type = std::remove_cvref_t<decltype(parameter_of(&Predicate::operator()))>;
template <class Predicate>
using result_type = std::remove_cvref_t<decltype(result_of(&Predicate::operator()))>;

struct ignore_attribute {
  template <class T>
  constexpr void operator()(const char*, const T&) const {}
};
/// The attributes of an operator, as a condition reads them.
template <class A> concept attribute_record = requires(const A& a) { A::visit(a, ignore_attribute{}); };

constexpr verdict to_verdict(bool holds) { return {holds, "its condition does not hold"}; }
constexpr verdict to_verdict(const verdict& v) { return v; }

template <class Predicate>
constexpr verdict test_condition(const graph_view& graph, std::uint32_t value) {
  using read = parameter_type<Predicate>;
  if constexpr (std::is_same_v<read, tensor_type>) return to_verdict(Predicate{}(graph.values[value].type));
  else if constexpr (std::is_same_v<read, value_record>) return to_verdict(Predicate{}(graph.values[value]));
  else
    return to_verdict(
        Predicate{}(from_words<read>(graph.words_of(static_cast<std::uint32_t>(graph.values[value].producer)))));
}

template <class Predicate>
constexpr pattern_condition make_condition(const char* text) {
  constexpr bool plain = plain_predicate<Predicate>;
  static_assert(plain, "where(...) takes a lambda without captures, of one parameter that is not auto");
  if constexpr (plain) {
    using read = parameter_type<Predicate>;
    constexpr bool returns_verdict =
        std::is_same_v<result_type<Predicate>, bool> || std::is_same_v<result_type<Predicate>, verdict>;
    static_assert(returns_verdict, "where(...): the predicate must return exactly bool or verdict");
    constexpr bool reads_value = std::is_same_v<read, tensor_type> || std::is_same_v<read, value_record>;
    static_assert(reads_value || attribute_record<read>,
                  "where(...): the parameter says what is read: the attributes of the operator, as in "
                  "const ops::conv_attributes&, or const tensor_type&, or const value_record&");
    if constexpr (!returns_verdict) return {};
    else if constexpr (reads_value) return {test_condition<Predicate>, text};
    else if constexpr (attribute_record<read>) return {test_condition<Predicate>, text, true, &attributes_tag<read>};
    else return {};
  } else {
    return {};
  }
}

}  // namespace collage::inline v0::detail
