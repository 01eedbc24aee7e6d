// The checks of an operator kind's description. Each fault gives one sentence where the kind is first used. Otherwise a
// member with a wrong signature would count as absent.
#pragma once

#include <collage/detail/indices.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/body.hpp>
#include <collage/op/inference.hpp>
#include <collage/verdict.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0 {
template <class Derived, class Defaults>
struct kind;
}  // namespace collage::inline v0

namespace collage::inline v0::detail {

/// The first fault of a description.
enum class kind_fault {
  none,
  base,
  name,
  is_final,
  fields,
  record,
  operands,
  outputs,
  commutative,
  infer,
  normalise,
  count,
  count_outputs,
  reference,
  onnx,
  body,
  body_size,
  body_attributes,
};

/// Counts the most words that encoded attributes can take. For attributes without lists, it also marks the words that
/// are doubles.
struct attribute_counter {
  std::size_t words = 0;
  bool has_lists = false;
  bool is_real[max_attribute_words] = {};

  constexpr void take(std::size_t count, bool real) {
    for (std::size_t i = 0; i < count; ++i, ++words)
      if (words < max_attribute_words) is_real[words] = real;
  }
  constexpr void list(std::size_t count) {
    has_lists = true;
    take(count, false);
  }
  constexpr void operator()(const char*, const shape&) { list(1 + shape::max_rank); }
  constexpr void operator()(const char*, const real_list&) { list(1 + shape::max_rank); }
  constexpr void operator()(const char*, const short_text&) { list(sizeof(short_text) / sizeof(std::uint64_t)); }
  constexpr void operator()(const char*, const double&) { take(1, true); }
  template <class T>
  constexpr void operator()(const char*, const T&) {
    static_assert(
        std::is_integral_v<T> || std::is_enum_v<T>,
        "a field of attributes must be bool, an integer, double, an enumeration, shape, real_list or short_text");
    take(1, false);
  }
};

template <class Attributes>
constexpr attribute_counter count_attributes() {
  attribute_counter counter;
  const Attributes attributes{};
  Attributes::visit(attributes, counter);
  return counter;
}

/// Makes the name of an optional member ambiguous in `member_probe` if the kind has the member, whatever its signature.
struct optional_members {
  int normalise, count, count_outputs, reference, onnx;
};
template <class K>
struct member_probe : K, optional_members {};

template <class Derived, class Defaults>
Derived kind_derived_by(const kind<Derived, Defaults>*);
template <class K>
concept derives_from_own_kind = requires(const K* k) {
  { detail::kind_derived_by(k) } -> std::same_as<K>;
};
template <class K>
concept names_itself = requires {
  { K::name[0] } -> std::convertible_to<char>;
};
template <class K>
concept lists_fields =
    requires(const typename K::attributes& a, attribute_counter& counter) { K::attributes::visit(a, counter); };
template <class K>
concept has_normalise = requires(typename K::attributes& a, list_view<const tensor_type> in) { K::normalise(a, in); };
template <class K>
concept has_count = requires(const typename K::attributes& a, const inference& io) {
  { K::count(a, io) } -> std::same_as<work>;
};
template <class K>
concept has_count_outputs = requires(const typename K::attributes& a, list_view<const body_signature> bodies) {
  { K::count_outputs(a, bodies) } -> std::convertible_to<std::size_t>;
};
template <class K>
concept has_reference =
    requires(const typename K::attributes& a, const reference_call& call) { K::reference(a, call); };
template <class K>
concept has_onnx_name = requires {
  { K::onnx } -> std::same_as<const onnx_name&>;
};
template <class K> concept has_body = requires { K::body_inputs; };

template <class K, std::size_t... I>
constexpr bool takes_symbols(indices<I...>) {
  // A function rather than an array: nvcc 13 fails on `s[I]...` here.
  return requires(const symbol& (*of)(std::size_t)) {
    { K::body(of(I)...) } -> std::same_as<symbol>;
  };
}

/// The traced body of an elementwise kind. Its attributes take one word each.
template <class K>
inline constexpr traced_body body_of = trace<K, K::body_inputs, to_words(typename K::attributes{}).size>();

/// Whether a body reads a word of the attributes that is not a double.
constexpr bool reads_other_than_doubles(const traced_body& body, const attribute_counter& attributes) {
  const auto is_wrong = [&](std::uint8_t which) {
    return body.code[which].code == opcode::attribute && !attributes.is_real[body.code[which].a];
  };
  for (std::uint32_t i = 0; i < body.size; ++i) {
    const instruction& now = body.code[i];
    const int operands = operands_of(now.code);
    if ((operands > 0 && is_wrong(now.a)) || (operands > 1 && is_wrong(now.b)) || (operands > 2 && is_wrong(now.c)))
      return true;
  }
  return body.code[body.size - 1].code == opcode::attribute && is_wrong(static_cast<std::uint8_t>(body.size - 1));
}

template <class K>
consteval kind_fault body_fault() {
  if constexpr (!has_body<K>) {
    return kind_fault::none;
  } else {
    constexpr attribute_counter attributes = count_attributes<typename K::attributes>();
    if constexpr (attributes.has_lists) return kind_fault::body_attributes;
    else if constexpr (!takes_symbols<K>(make_indices<K::body_inputs + attributes.words>{})) return kind_fault::body;
    else if constexpr (body_of<K>.size > traced_body::max_size) return kind_fault::body_size;
    else return reads_other_than_doubles(body_of<K>, attributes) ? kind_fault::body_attributes : kind_fault::none;
  }
}

/// The first fault of the members that a kind may leave out.
template <class K>
consteval kind_fault optional_fault() {
  using probe = member_probe<K>;
  if constexpr (!has_normalise<K> && !requires { &probe::normalise; }) return kind_fault::normalise;
  else if constexpr (!has_count<K> && !requires { &probe::count; }) return kind_fault::count;
  else if constexpr ((K::outputs == any_number) != has_count_outputs<K> ||
                     (!has_count_outputs<K> && !requires { &probe::count_outputs; }))
    return kind_fault::count_outputs;
  else if constexpr (!has_reference<K> && !requires { &probe::reference; }) return kind_fault::reference;
  else if constexpr (!has_onnx_name<K> && !requires { &probe::onnx; }) return kind_fault::onnx;
  else return body_fault<K>();
}

template <class K>
consteval kind_fault fault_of() {
  if constexpr (!derives_from_own_kind<K>) return kind_fault::base;
  else if constexpr (!names_itself<K>) return kind_fault::name;
  else if constexpr (K::name[0] == '\0') return kind_fault::name;
  else if constexpr (std::is_final_v<K>) return kind_fault::is_final;
  else if constexpr (!lists_fields<K>) return kind_fault::fields;
  else if constexpr (count_attributes<typename K::attributes>().words > max_attribute_words) return kind_fault::record;
  else if constexpr (K::inputs.least > K::inputs.most) return kind_fault::operands;
  else if constexpr (K::outputs == 0) return kind_fault::outputs;
  else if constexpr (K::commutative && K::inputs.least < 2) return kind_fault::commutative;
  else if constexpr (!requires(const typename K::attributes& a, inference& io) {
                       { K::infer(a, io) } -> std::same_as<verdict>;
                     })
    return kind_fault::infer;
  else return optional_fault<K>();
}

/// Reports the fault as a compile error.
template <kind_fault Fault>
consteval void tell() {
  using enum kind_fault;
  static_assert(Fault != base, "an operator kind must derive from kind<itself>: struct my_kind : kind<my_kind>");
  static_assert(Fault != name, "an operator kind needs a name: static constexpr char name[] = ...");
  static_assert(Fault != is_final,
                "an operator kind must not be final: the library derives from it to check its members");
  static_assert(Fault != fields,
                "the attributes of an operator kind must list their fields: "
                "template <class Self, class Visitor> static constexpr void visit(Self&, Visitor&&)");
  static_assert(
      Fault != record,
      "the attributes of an operator kind take more than 72 words: 9 for each list, 7 for text, 1 for all else");
  static_assert(Fault != operands,
                "the least number of operands of an operator kind is above the most: "
                "static constexpr arity inputs{least, most}");
  static_assert(Fault != outputs, "an operator kind must have an output");
  static_assert(Fault != commutative, "an operator kind that is commutative must take two operands or more");
  static_assert(Fault != infer,
                "an operator kind needs a shape rule: static constexpr verdict infer(const attributes&, inference&)");
  static_assert(Fault != normalise,
                "normalise of an operator kind must be declared as: "
                "static constexpr void normalise(attributes&, list_view<const tensor_type> in)");
  static_assert(Fault != count,
                "count of an operator kind must be declared as: "
                "static constexpr work count(const attributes&, const inference&)");
  static_assert(Fault != count_outputs,
                "an operator kind whose outputs are any_number, and no other, must say how many they are: static "
                "constexpr std::size_t count_outputs(const attributes&, list_view<const body_signature>)");
  static_assert(Fault != reference,
                "reference of an operator kind must be declared as: "
                "static void reference(const attributes&, const reference_call&)");
  static_assert(Fault != onnx,
                "onnx of an operator kind must be declared as: static constexpr onnx_name onnx{domain, operator}");
  static_assert(Fault != body,
                "an elementwise kind needs a body with a parameter for each operand and then each attribute: "
                "static constexpr auto body(auto x, auto alpha)");
  static_assert(Fault != body_size, "the body of an elementwise kind has at most 48 instructions");
  static_assert(Fault != body_attributes,
                "an elementwise kind must have no attributes that are lists or text, and its body may read only "
                "attributes that are double");
}

}  // namespace collage::inline v0::detail
