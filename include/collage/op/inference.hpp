// The types in the members of an operator kind: arity, and the parameters of a shape rule, a count of work and a reference.
#pragma once

#include <collage/list_view.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// How an operator takes part in fusion. The classes and their order are those of TVM's fuser.
enum class fusion_kind : std::uint8_t {
  elementwise = 0,  ///< output element i depends on input elements i
  broadcast = 1,    ///< the same, with operands broadcast
  injective = 2,    ///< moves elements: reshape, transpose, concat, resize
  reduction = 3,    ///< sums or means over axes
  anchor = 4,       ///< conv, matmul, pool: elementwise operators can be fused after it
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

/// The types of a subgraph's inputs and outputs.
struct body_signature {
  list_view<const tensor_type> in;
  list_view<const tensor_type> out;
};

/// The facts that a shape rule reads, and the types that it fills in.
struct inference {
  list_view<const tensor_type> in;
  list_view<tensor_type> out;
  /// The contents of operand i where it is a known int64 constant (the target of a reshape), else empty. May be shorter
  /// than `in`; use `integers`.
  list_view<const list_view<const std::int64_t>> contents = {};
  list_view<const body_signature> bodies = {};  ///< of the subgraphs that the node owns

  constexpr list_view<const std::int64_t> integers(std::size_t operand) const {
    return operand < contents.size() ? contents[operand] : list_view<const std::int64_t>{};
  }
};

/// Arithmetic of one node. A multiply-add counts twice.
struct work {
  double flops = 0;
};

/// A tensor of the reference. All floating-point types are stored as double, all others as int64.
struct reference_tensor {
  tensor_type type;
  list_view<double> real;
  list_view<std::int64_t> integer;
};

/// Runs a node's subgraphs for its reference.
struct body_caller {
  void* state = nullptr;
  /// Computes subgraph `which` from `in` into `out`. The outputs are allocated and have their types.
  void (*run)(void* state, std::size_t which, list_view<const reference_tensor> in,
              list_view<const reference_tensor> out) = nullptr;
  void operator()(std::size_t which, list_view<const reference_tensor> in,
                  list_view<const reference_tensor> out) const {
    run(state, which, in, out);
  }
};

/// One evaluation of a node by the reference. Outputs are allocated and have the inferred types.
struct reference_call {
  list_view<const reference_tensor> in;
  list_view<const reference_tensor> out;
  list_view<const body_signature> signatures = {};  ///< of the node's subgraphs
  const body_caller* bodies = nullptr;              ///< set if the node has any
};

/// The ONNX operator that a kind stands for. A model's nodes of this operator become nodes of the kind, and their attributes
/// are read by the names of the kind's own. A kind without this member is no ONNX operator, or needs a lowering rule.
struct onnx_name {
  const char* domain = "";  ///< "" is ONNX's own
  const char* op_type = nullptr;
};

}  // namespace collage::inline v0
