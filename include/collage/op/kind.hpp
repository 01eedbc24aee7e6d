// Operator kinds: one description each, from which checks, shape rule, costs, printing and reference follow.
//
// A kind is a small named struct with a constant of the same name:
//
//   inline constexpr struct softmax : kind<softmax> {
//     static constexpr char name[] = "softmax";
//     static constexpr fusion_kind fusion = fusion_kind::opaque;
//     using attributes = softmax_attributes;
//     static constexpr verdict infer(const attributes& a, inference& io);      // shape rule: fills io.out
//     static constexpr work count(const attributes& a, const inference& io);   // flops
//     static void reference(const attributes& a, const reference_call& call);  // in double precision
//     static constexpr onnx_name onnx{"com.example", "Softmax"};               // optional: its name in models
//   } softmax{};
//
// The set is open: a kind in a user's header works like the kinds in collage/op/.
#pragma once

#include <collage/detail/hash.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/body.hpp>
#include <collage/op/inference.hpp>
#include <collage/op/kind_check.hpp>
#include <collage/verdict.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0 {

namespace detail {
/// Its address distinguishes types of attributes in constant evaluation, where there is no typeid.
template <class Attributes>
inline constexpr char attributes_tag = 0;
}  // namespace detail

/// The description of one kind as run-time values. Only `kind_of` makes it. Descriptions are compared by id.
struct kind_info {
  std::uint64_t id = 0;
  const char* name = "";
  fusion_kind fusion = fusion_kind::opaque;
  arity inputs;
  std::uint32_t outputs = 1;  ///< `any_number` if `count_outputs` returns the number
  std::uint32_t bodies = 0;   ///< how many subgraphs a node owns
  bool commutative = false;   ///< its first two operands may be swapped
  // Whether the pointers below are set. Under -fsanitize=undefined, g++ rejects comparing the address of a function or
  // constant with null in a constant expression.
  bool has_body = false, has_normalise = false, counts_outputs = false, has_reference = false;
  onnx_name onnx;                           ///< no op_type: none
  const char* attributes_tag = nullptr;     ///< equal for kinds with the same type of attributes
  const traced_body* body = nullptr;        ///< set for elementwise kinds only
  attribute_words (*defaults)() = nullptr;  ///< the attributes of a node that states none, before `normalise`
  void (*normalise)(attribute_words& words, list_view<const tensor_type> in) = nullptr;
  verdict (*infer)(list_view<const std::uint64_t> words, inference& io) = nullptr;
  std::size_t (*count_outputs)(list_view<const std::uint64_t> words, list_view<const body_signature> bodies) = nullptr;
  work (*count)(list_view<const std::uint64_t> words, const inference& io) = nullptr;
  void (*list)(list_view<const std::uint64_t> words, const attribute_sink& sink) = nullptr;
  void (*reference)(list_view<const std::uint64_t> words, const reference_call& call) = nullptr;

  /// The number of outputs of a node with these attributes and subgraphs.
  constexpr std::size_t output_count(list_view<const std::uint64_t> words,
                                     list_view<const body_signature> of_bodies = {}) const {
    return counts_outputs ? count_outputs(words, of_bodies) : outputs;
  }
};

/// The error for a node with no outputs, or with more than `any_number`.
inline constexpr char output_count_rule[] = "its attributes must give it 1 to 65535 outputs";

/// Whether two descriptions are of one kind. A description may exist more than once: for the type and for the constant,
/// and in several shared objects. There its functions have different addresses, so the other members decide.
constexpr bool is_same_kind(const kind_info& a, const kind_info& b) {
  if (&a == &b || a.infer == b.infer) return true;
  if (std::is_constant_evaluated() || a.id != b.id) return false;
  const attribute_words first = a.defaults(), second = b.defaults();
  bool same = first.size == second.size && a.fusion == b.fusion && a.inputs.least == b.inputs.least &&
              a.inputs.most == b.inputs.most && a.outputs == b.outputs && a.bodies == b.bodies &&
              a.commutative == b.commutative && a.has_body == b.has_body && a.has_normalise == b.has_normalise;
  for (std::size_t i = 0; same && i < first.size; ++i) same = first.word[i] == second.word[i];
  return same;
}

/// The members that a kind may leave out. They suit a kind without attributes, with one operand and one output of the
/// same type. Not a template, so that it is not instantiated for every kind.
struct kind_defaults {
  static constexpr arity inputs{1, 1};
  static constexpr std::uint32_t outputs = 1;
  static constexpr std::uint32_t bodies = 0;
  static constexpr bool commutative = false;
  static constexpr bool takes_small_types = false;  ///< as element types of operands (`is_small`)
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  using attributes = no_attributes;
};

/// The base of every kind; `Derived` is the kind itself.
template <class Derived, class Defaults = kind_defaults>
struct kind : Defaults {
  /// In a pattern: this operator applied to sub-patterns. Needs collage/pattern/expression.hpp.
  template <class... Operands>
  constexpr auto operator()(const Operands&... operands) const {
    return make_pattern(static_cast<const Derived&>(*this), operands...);
  }
};

/// A type that describes an operator kind. The description is checked where the kind is first used.
template <class K>
concept operator_kind = requires(const K& k) { static_cast<const kind_defaults&>(k); };  // no class for each K

namespace detail {

template <class K>
constexpr std::uint64_t hash_of_name() {
  static_assert(names_itself<K>, "an operator kind needs a name: static constexpr char name[] = ...");
  if constexpr (names_itself<K>) return hash(K::name);
  else return 0;
}

}  // namespace detail

/// The 64-bit id of a kind: the hash of its name.
template <operator_kind K>
inline constexpr std::uint64_t kind_id = detail::hash_of_name<K>();

namespace detail {

constexpr verdict refuse_small_types(const inference& io) {
  for (std::size_t i = 0; i < io.in.size(); ++i)
    if (is_small(io.in[i].type))
      return {false, "numbers of its element type are only stored, moved and converted: cast it to a larger type first",
              static_cast<std::int32_t>(i)};
  return {};
}
template <class K>
constexpr verdict infer_words(list_view<const std::uint64_t> words, inference& io) {
  if constexpr (!K::takes_small_types)
    if (const verdict v = refuse_small_types(io); !v) return v;
  return K::infer(from_words<typename K::attributes>(words), io);
}
template <class K>
constexpr std::size_t count_outputs_words(list_view<const std::uint64_t> words,
                                          list_view<const body_signature> bodies) {
  return K::count_outputs(from_words<typename K::attributes>(words), bodies);
}
template <class K>
constexpr work count_words(list_view<const std::uint64_t> words, const inference& io) {
  return K::count(from_words<typename K::attributes>(words), io);
}
template <class K>
constexpr attribute_words default_words() {
  return to_words(typename K::attributes{});
}
template <class K>
constexpr void normalise_words(attribute_words& words, list_view<const tensor_type> in) {
  auto attributes = from_words<typename K::attributes>(words);
  K::normalise(attributes, in);
  words = to_words(attributes);
}
template <class K>
void list_words(list_view<const std::uint64_t> words, const attribute_sink& sink) {
  const auto attributes = from_words<typename K::attributes>(words);
  K::attributes::visit(attributes, attribute_lister{sink});
}
template <class K>
void reference_words(list_view<const std::uint64_t> words, const reference_call& call) {
  K::reference(from_words<typename K::attributes>(words), call);
}

template <class K>
constexpr kind_info lower_kind() {
  kind_info info;
  info.id = kind_id<K>;
  info.name = K::name;
  info.fusion = K::fusion;
  info.inputs = K::inputs;
  info.outputs = K::outputs;
  info.bodies = K::bodies;
  info.commutative = K::commutative;
  info.attributes_tag = &attributes_tag<typename K::attributes>;
  if constexpr (has_onnx_name<K>) info.onnx = K::onnx;
  info.defaults = default_words<K>;
  info.infer = infer_words<K>;
  info.list = list_words<K>;
  info.has_body = has_body<K>;
  info.has_normalise = has_normalise<K>;
  info.counts_outputs = K::outputs == any_number;
  info.has_reference = has_reference<K>;
  if constexpr (K::outputs == any_number) info.count_outputs = count_outputs_words<K>;
  if constexpr (has_body<K>) info.body = &body_of<K>;
  if constexpr (has_normalise<K>) info.normalise = normalise_words<K>;
  if constexpr (has_count<K>) info.count = count_words<K>;
  if constexpr (has_reference<K>) info.reference = reference_words<K>;
  return info;
}

/// The description as values. A fault in it is a compile error of one sentence.
template <class K>
constexpr kind_info describe_kind() {
  if constexpr (constexpr kind_fault fault = fault_of<K>(); fault == kind_fault::none) return lower_kind<K>();
  else return tell<fault>(), kind_info{};
}

}  // namespace detail

/// The run-time description of a kind: `kind_of<struct ops::relu>` of its type, `kind_of<decltype(ops::relu)>` of its constant.
template <class K>
  requires operator_kind<std::remove_cv_t<K>>
inline constexpr kind_info kind_of = detail::describe_kind<std::remove_cv_t<K>>();

namespace detail {

/// An axis, counted from the end if it is negative. The rank itself stays out of range.
constexpr std::int64_t wrap_axis(std::int64_t axis, std::size_t rank) {
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

/// Numpy's broadcasting of two extents. Sets `fits` to false if they do not fit.
constexpr std::int64_t broadcast_extent(std::int64_t a, std::int64_t b, bool& fits) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  if (a < 0) return b < 0 ? unknown : b;
  if (b < 0) return a;
  fits = false;
  return a;
}

/// The shape of two operands after broadcasting. Sets `fits` to false if they do not fit.
constexpr shape broadcast(const shape& a, const shape& b, bool& fits) {
  // Reads `extent` without a call: each call costs steps of the compiler's limit.
  const bool a_is_longer = a.rank >= b.rank;
  shape result = a_is_longer ? a : b;
  const shape& other = a_is_longer ? b : a;
  std::int64_t* extent = result.extent + (result.rank - other.rank);
  for (std::uint32_t i = 0; i < other.rank; ++i)
    if (extent[i] != other.extent[i])
      extent[i] = a_is_longer ? broadcast_extent(extent[i], other.extent[i], fits)
                              : broadcast_extent(other.extent[i], extent[i], fits);
  return result;
}

}  // namespace detail
}  // namespace collage::inline v0
