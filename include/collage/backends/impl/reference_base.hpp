// The part of the reference that everything needs: evaluating networks, elementwise kinds, products, windows, reductions,
// movers, control flow. The others are in headers of their own; reference.hpp has them all.
#pragma once

#include <collage/backends/impl/reference_control.hpp>
#include <collage/backends/impl/reference_elementwise.hpp>
#include <collage/backends/impl/reference_gemm.hpp>
#include <collage/backends/impl/reference_graph.hpp>
#include <collage/backends/impl/reference_matmul.hpp>
#include <collage/backends/impl/reference_movement.hpp>
#include <collage/backends/impl/reference_reduce.hpp>
#include <collage/backends/impl/reference_window.hpp>
#include <collage/backends/reference.hpp>
#include <collage/fwd.hpp>
#include <string>

namespace collage::inline v0 {

probe_result reference::probe() {
  static const std::string details = std::string("double precision, ") + detail::gemm_instruction_set();
  return {.version = COLLAGE_VERSION, .details = details.c_str()};
}

namespace detail {

void gemm(std::int64_t rows, std::int64_t columns, std::int64_t depth, matrix_view a, matrix_view b, double* c,
          std::int64_t c_row_step) {
  multiply_all(1, rows, columns, depth, c_row_step,
               [&](std::int64_t) { return gemm_problem<matrix_columns>{a, {b}, c}; });
}

const char* gemm_instruction_set() { return gemm_kernels().front().instruction_set; }

}  // namespace detail
}  // namespace collage::inline v0
