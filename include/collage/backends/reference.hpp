// The reference: every operator kind in double precision. All other backends are compared with it. Never placed.
//
// Declarations; the definitions are in collage/backends/impl/reference.hpp, compiled in exactly one file (by default
// the target collage::reference).
#pragma once

#include <collage/backend.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/tensor.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The reference as a backend. It is listed with the others, but has no patterns, so no plan can contain it.
struct reference : backend<"reference"> {
  using patterns = collage::patterns<>;
  static probe_result probe();
};

/// A value that is known before a group is evaluated. The elements are read during the call.
struct known_value {
  std::uint32_t value = 0;
  const_tensor_view elements;
};

/// Called with each value as soon as it is computed, before it may be released. A caller can compare every value of a
/// network without holding all of them.
using value_observer = std::function<void(std::uint32_t value, const oracle_value& computed)>;

/// Computes a network in double precision. `inputs` are the graph's inputs in its order; returns the graph's outputs in
/// its order. Errors: an input of another type or shape, a constant that is not loaded, an unknown extent, a kind
/// without a reference.
std::vector<oracle_value> evaluate(const graph& network, std::span<const const_tensor_view> inputs);

/// The same for a list of `wanted` values of any role. Nodes that no wanted value needs are not computed. Intermediate
/// values are released after their last reader.
std::vector<oracle_value> evaluate(const graph& network, std::span<const const_tensor_view> inputs,
                                   std::span<const std::uint32_t> wanted, const value_observer& observer = {});

/// Computes a group of nodes (in any order, each once) from the values in `known`; constants come from the graph.
/// Returns the `wanted` values, which the group must produce or know. A known value is taken as given even where the
/// group computes it. Error: an operand that is neither known, nor constant, nor computed by the group.
std::vector<oracle_value> evaluate_group(const graph& network, std::span<const std::uint32_t> nodes,
                                         std::span<const known_value> known, std::span<const std::uint32_t> wanted,
                                         const value_observer& observer = {});

/// Some elements of a value: their numbers in the dense tensor, in any order.
struct selected_elements {
  std::uint32_t value = 0;
  std::vector<std::int64_t> at;
};

/// Like evaluate_group, but computes only the selected elements, and of other values only what these need. The elements of each
/// entry of `wanted` are a tensor of rank 1. Extents must be known. A convolution does not multiply infinite weights with its
/// padding. Error: a kind that is not among these: elementwise ones; conv, conv_transpose, matmul and pools of floating-point
/// types; reductions; reshape, transpose, concat, slice and expand.
std::vector<oracle_value> evaluate_elements(const graph& network, std::span<const std::uint32_t> nodes,
                                            std::span<const known_value> known,
                                            std::span<const selected_elements> wanted);

/// How many elements evaluate_elements reads if it knows all that the group does not compute. Nothing if these are more than
/// `most`, or if it lacks a kind.
std::optional<double> reads_of_elements(const graph& network, std::span<const std::uint32_t> nodes,
                                        std::span<const selected_elements> wanted, double most);

/// Computes one node of any kind; `in` are its operands. Error: operands that do not fit the kind's shape rule.
std::vector<oracle_value> evaluate_node(const kind_info& kind, std::span<const std::uint64_t> words,
                                        std::span<oracle_value> in);

namespace detail {

/// Runs one kind on operands and allocated outputs, whose types have passed the kind's shape rule. `where` names the
/// node in errors.
void run_kind(const kind_info& kind, std::span<const std::uint64_t> words, const reference_call& call,
              const std::string& where);

/// A matrix in memory, with steps in elements. A transposed matrix has its steps exchanged.
struct matrix_view {
  const double* data = nullptr;
  std::int64_t row_step = 0;
  std::int64_t column_step = 0;
};

/// c += a b, where a is rows x depth, b depth x columns, and c has consecutive elements in each row. The order of the
/// additions depends only on the extents, not on the number of threads.
void gemm(std::int64_t rows, std::int64_t columns, std::int64_t depth, matrix_view a, matrix_view b, double* c,
          std::int64_t c_row_step);

/// The instruction set that gemm uses on this machine: "avx512f", "avx2" or "portable".
const char* gemm_instruction_set();

}  // namespace detail
}  // namespace collage::inline v0
