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
//     static void reference(const attributes& a, const reference_call& call);  // double precision, the oracle
//   } softmax{};
//
// The set is open: a kind defined in a user's header works like those in collage/op/.
#pragma once

#include <collage/detail/hash.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/body.hpp>
#include <collage/verdict.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace collage::inline v0 {

/// How an operator takes part in fusion; the classes and their order are those of TVM's fuser.
enum class fusion_kind : std::uint8_t {
  elementwise = 0,  ///< output element i depends on input elements i
  broadcast = 1,    ///< the same, with operands broadcast
  injective = 2,    ///< moves elements: reshape, transpose, concat, resize
  reduction = 3,    ///< sums or means over axes
  anchor = 4,       ///< conv, matmul, pool: elementwise operators can be fused behind it
  tuple = 7,
  opaque = 8,
};

/// How many operands a kind takes. Optional ones come last.
struct arity {
  std::uint32_t least = 1;
  std::uint32_t most = 1;
};
/// As many operands as wanted, for `concat`.
inline constexpr std::uint32_t any_number = 0xFFFF;

/// The types that a sub-graph takes and answers.
struct body_signature {
  std::span<const tensor_type> in;
  std::span<const tensor_type> out;
};

/// What a shape rule sees and fills.
struct inference {
  std::span<const tensor_type> in;
  std::span<tensor_type> out;
  /// The contents of operand i where it is a known int64 constant (the target of a reshape), else empty. May be shorter
  /// than `in`; use `integers`.
  std::span<const std::span<const std::int64_t>> contents = {};
  std::span<const body_signature> bodies = {};  ///< of the sub-graphs that the node owns

  constexpr std::span<const std::int64_t> integers(std::size_t operand) const {
    return operand < contents.size() ? contents[operand] : std::span<const std::int64_t>{};
  }
};

/// Arithmetic of one node. A multiply-add counts twice.
struct work {
  double flops = 0;
};

/// A tensor of the reference: all floating-point types as double, all others as int64.
struct reference_tensor {
  tensor_type type;
  std::span<double> real;
  std::span<std::int64_t> integer;
};

/// Runs a node's sub-graphs for its reference.
struct body_caller {
  void* state = nullptr;
  /// Computes body `which` from `in` and puts its outputs into `out`, allocated and of its types.
  void (*run)(void* state, std::size_t which, std::span<const reference_tensor> in,
              std::span<const reference_tensor> out) = nullptr;
  void operator()(std::size_t which, std::span<const reference_tensor> in,
                  std::span<const reference_tensor> out) const {
    run(state, which, in, out);
  }
};

/// One evaluation of a node by the reference. Outputs are allocated and of the inferred types.
struct reference_call {
  std::span<const reference_tensor> in;
  std::span<const reference_tensor> out;
  std::span<const body_signature> signatures = {};  ///< of the node's sub-graphs
  const body_caller* bodies = nullptr;              ///< set where the node has any
};

/// The run-time view of one kind's description. Made only by `kind_of`; compared by id.
struct kind_info {
  std::uint64_t id = 0;
  const char* name = "";
  fusion_kind fusion = fusion_kind::opaque;
  arity inputs;
  std::uint32_t outputs = 1;                ///< `any_number` where `count_outputs` says how many
  std::uint32_t bodies = 0;                 ///< how many sub-graphs a node owns
  bool commutative = false;                 ///< its first two operands may be swapped
  const traced_body* body = nullptr;        ///< set for the elementwise kinds alone
  attribute_words (*defaults)() = nullptr;  ///< the attributes of a node that states none, before `normalise`
  void (*normalise)(attribute_words& words, std::span<const tensor_type> in) = nullptr;
  verdict (*infer)(std::span<const std::uint64_t> words, inference& io) = nullptr;
  std::size_t (*count_outputs)(std::span<const std::uint64_t> words, std::span<const body_signature> bodies) = nullptr;
  work (*count)(std::span<const std::uint64_t> words, const inference& io) = nullptr;
  void (*list)(std::span<const std::uint64_t> words, const attribute_sink& sink) = nullptr;
  void (*reference)(std::span<const std::uint64_t> words, const reference_call& call) = nullptr;
};

/// The base of every kind; `Derived` is the kind itself. The defaults suit a kind without attributes, with one operand
/// and one output of the same type.
template <class Derived>
struct kind {
  static constexpr arity inputs{1, 1};
  static constexpr std::uint32_t outputs = 1;
  static constexpr std::uint32_t bodies = 0;
  static constexpr bool commutative = false;
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  using attributes = no_attributes;

  /// In a pattern: this operator applied to sub-patterns. Needs collage/pattern/expression.hpp.
  template <class... Operands>
  constexpr auto operator()(const Operands&... operands) const {
    return make_pattern(static_cast<const Derived&>(*this), operands...);
  }
};

/// A type that describes an operator kind.
template <class K>
concept operator_kind = std::derived_from<K, kind<K>> && requires {
  { K::name[0] } -> std::convertible_to<char>;
  typename K::attributes;
};

/// The 64-bit id of a kind: the hash of its name.
template <operator_kind K>
inline constexpr std::uint64_t kind_id = detail::hash(K::name);

namespace detail {

template <class K>
constexpr verdict infer_words(std::span<const std::uint64_t> words, inference& io) {
  return K::infer(from_words<typename K::attributes>(words), io);
}
template <class K>
constexpr std::size_t count_outputs_words(std::span<const std::uint64_t> words,
                                          std::span<const body_signature> bodies) {
  return K::count_outputs(from_words<typename K::attributes>(words), bodies);
}
template <class K>
constexpr work count_words(std::span<const std::uint64_t> words, const inference& io) {
  return K::count(from_words<typename K::attributes>(words), io);
}
template <class K>
constexpr attribute_words default_words() {
  return to_words(typename K::attributes{});
}
template <class K>
constexpr void normalise_words(attribute_words& words, std::span<const tensor_type> in) {
  auto attributes = from_words<typename K::attributes>(words.list());
  K::normalise(attributes, in);
  words = to_words(attributes);
}
template <class K>
void list_words(std::span<const std::uint64_t> words, const attribute_sink& sink) {
  const auto attributes = from_words<typename K::attributes>(words);
  K::attributes::visit(attributes, attribute_lister{sink});
}
template <class K>
void reference_words(std::span<const std::uint64_t> words, const reference_call& call) {
  K::reference(from_words<typename K::attributes>(words), call);
}

/// The traced body of an elementwise kind; all its attributes are doubles, one word each.
template <class K>
inline constexpr traced_body body_of = trace<K, K::body_inputs, to_words(typename K::attributes{}).size>();

template <class K>
constexpr kind_info describe_kind() {
  static_assert(
      requires(const typename K::attributes& a, inference& io) {
        { K::infer(a, io) } -> std::same_as<verdict>;
      }, "an operator kind needs a shape rule: static constexpr verdict infer(const attributes&, inference&)");
  kind_info info;
  info.id = kind_id<K>;
  info.name = K::name;
  info.fusion = K::fusion;
  info.inputs = K::inputs;
  info.outputs = K::outputs;
  info.bodies = K::bodies;
  info.commutative = K::commutative;
  info.defaults = default_words<K>;
  info.infer = infer_words<K>;
  info.list = list_words<K>;
  if constexpr (K::outputs == any_number) info.count_outputs = count_outputs_words<K>;
  if constexpr (requires { K::body_inputs; }) info.body = &body_of<K>;
  if constexpr (requires(typename K::attributes& a, std::span<const tensor_type> in) { K::normalise(a, in); })
    info.normalise = normalise_words<K>;
  if constexpr (requires(const typename K::attributes& a, const inference& io) { K::count(a, io); })
    info.count = count_words<K>;
  if constexpr (requires(const typename K::attributes& a, const reference_call& c) { K::reference(a, c); })
    info.reference = reference_words<K>;
  return info;
}

}  // namespace detail

/// The run-time description of a kind: `kind_of<decltype(ops::relu)>` or, of a constant, `kind_of<struct relu>`.
template <class K>
  requires operator_kind<std::remove_cv_t<K>>
inline constexpr kind_info kind_of = detail::describe_kind<std::remove_cv_t<K>>();

namespace detail {

/// An axis counted from the end if negative; the rank itself is out of range.
constexpr std::int64_t wrap_axis(std::int64_t axis, std::size_t rank) {
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

/// Numpy's broadcasting of two extents; 0 answers "does not fit" through `fits`.
constexpr std::int64_t broadcast_extent(std::int64_t a, std::int64_t b, bool& fits) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  if (a < 0) return b < 0 ? unknown : b;
  if (b < 0) return a;
  fits = false;
  return a;
}

/// The shape two operands have together after broadcasting; `fits` becomes false when they cannot.
constexpr shape broadcast(const shape& a, const shape& b, bool& fits) {
  const std::size_t rank = a.rank > b.rank ? a.rank : b.rank;
  shape result = shape::filled(rank, 1);
  for (std::size_t i = 1; i <= rank; ++i) {
    const std::int64_t x = i <= a.rank ? a[a.rank - i] : 1;
    const std::int64_t y = i <= b.rank ? b[b.rank - i] : 1;
    result[rank - i] = broadcast_extent(x, y, fits);
  }
  return result;
}

}  // namespace detail
}  // namespace collage::inline v0
