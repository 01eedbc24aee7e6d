// What the members of an operator kind are written with: arity, and what a shape rule, a count of work and a reference get.
#pragma once

#include <collage/list_view.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>

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
  list_view<const tensor_type> in;
  list_view<const tensor_type> out;
};

/// What a shape rule sees and fills.
struct inference {
  list_view<const tensor_type> in;
  list_view<tensor_type> out;
  /// The contents of operand i where it is a known int64 constant (the target of a reshape), else empty. May be shorter
  /// than `in`; use `integers`.
  list_view<const list_view<const std::int64_t>> contents = {};
  list_view<const body_signature> bodies = {};  ///< of the sub-graphs that the node owns

  constexpr list_view<const std::int64_t> integers(std::size_t operand) const {
    return operand < contents.size() ? contents[operand] : list_view<const std::int64_t>{};
  }
};

/// Arithmetic of one node. A multiply-add counts twice.
struct work {
  double flops = 0;
};

/// A tensor of the reference: all floating-point types as double, all others as int64.
struct reference_tensor {
  tensor_type type;
  list_view<double> real;
  list_view<std::int64_t> integer;
};

/// Runs a node's sub-graphs for its reference.
struct body_caller {
  void* state = nullptr;
  /// Computes body `which` from `in` and puts its outputs into `out`, allocated and of its types.
  void (*run)(void* state, std::size_t which, list_view<const reference_tensor> in,
              list_view<const reference_tensor> out) = nullptr;
  void operator()(std::size_t which, list_view<const reference_tensor> in,
                  list_view<const reference_tensor> out) const {
    run(state, which, in, out);
  }
};

/// One evaluation of a node by the reference. Outputs are allocated and of the inferred types.
struct reference_call {
  list_view<const reference_tensor> in;
  list_view<const reference_tensor> out;
  list_view<const body_signature> signatures = {};  ///< of the node's sub-graphs
  const body_caller* bodies = nullptr;              ///< set where the node has any
};

/// Which operator of ONNX a kind is, so that a model's nodes become nodes of this kind: their attributes are read by the
/// names of the kind's own. A kind without one is no operator of ONNX, or needs a lowering rule.
struct onnx_name {
  const char* domain = "";  ///< "" is ONNX's own
  const char* op_type = nullptr;
};

}  // namespace collage::inline v0
