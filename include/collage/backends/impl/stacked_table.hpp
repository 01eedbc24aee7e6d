// The functions that run tiles, one for each operator and form of its operands, compiled for each target.
#pragma once

#include <collage/op/body.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::host {
namespace {

/// A tile: rows of neighbouring elements, each row one step after the row before. In an operand with one number for
/// each row, `step` leads from one number to the next. A step of 0 means one number for all rows.
struct tile_call {
  float* y = nullptr;
  const float* a = nullptr;
  const float* b = nullptr;
  const float* c = nullptr;
  std::int64_t y_step = 0, a_step = 0, b_step = 0, c_step = 0;
  std::int64_t rows = 0, columns = 0;
  // Used in place of `y` or `a` where elements are booleans.
  std::uint8_t* y_bytes = nullptr;
  const std::uint8_t* a_bytes = nullptr;
};
using tile_function = void (*)(const tile_call& call);

/// Whether the operands of an operator are tiles or numbers, one for each row.
enum class tile_form : std::uint8_t { tiles, tile_number, number_tile };

/// Further functions, beside the instructions of bodies.
enum class tile_extra : std::uint8_t {
  copy,
  spread,  ///< copies the number of each row to all of the row
  sigmoid,
  root_of_power,        ///< pow(a, 0.5)
  distance_exponential  ///< exp(a - b), b a number in each row
};

enum class row_fold : std::uint8_t { sum, sum_of_squares, largest, smallest };

/// How a fold's result is computed from the value that it has gathered from a row.
enum class fold_answer : std::uint8_t {
  all,
  mean,
  inverse_deviation  ///< for squares: 1 / sqrt(their mean - the square of the partner's mean + epsilon)
};

struct tile_table {
  static constexpr std::size_t opcodes = static_cast<std::size_t>(opcode::select) + 1;
  static constexpr std::size_t extras = static_cast<std::size_t>(tile_extra::distance_exponential) + 1;
  const char* target = "";
  tile_function by_opcode[opcodes][3] = {};  ///< by form; null if the form has no function
  tile_function extra[extras] = {};
  tile_function transpose = nullptr;    ///< y[row][column] = a[column][row]; the step of `a` is by columns
  tile_function load_bytes = nullptr;   ///< y = whether a_bytes is not 0
  tile_function store_bytes = nullptr;  ///< y_bytes = a, which is 0 or 1
  tile_function fold[4][2] = {};        ///< y[row] from each row of a; or y[column] from each column
  tile_function select[2][2] = {};      ///< [whether b, or c, is a number in each row]
  // Frequent pairs of operators: [whether b, or c, is a number in each row][whether max(_, 0) follows].
  tile_function add[2][2] = {};              ///< a + b
  tile_function multiply_add[2][2][2] = {};  ///< a b + c, rounded once where the processor can

  tile_function of(opcode code, tile_form form) const {
    return by_opcode[static_cast<std::size_t>(code)][static_cast<std::size_t>(form)];
  }
  tile_function of(tile_extra code) const { return extra[static_cast<std::size_t>(code)]; }
  tile_function of(row_fold code, bool columns) const { return fold[static_cast<std::size_t>(code)][columns ? 1 : 0]; }
};

}  // namespace
}  // namespace collage::inline v0::detail::host
