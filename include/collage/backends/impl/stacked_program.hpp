// A group as a program over tiles, which a kernel of `stacked` keeps and runs.
//
// The program walks over the elements of one shape, cut into rows. A *tile* is a few rows, or a piece of one long row.
// Every step computes one tile from others, held in registers that stay in the first-level cache. Values that do not
// change along a row are *numbers*, one for each row: operands that broadcast along it, and results of folds. A fold
// needs its whole rows. Steps are therefore in phases: a step that reads a fold's result is in a later phase than the
// fold.
#pragma once

#include <collage/backends/impl/stacked_table.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Where an operand or result of a step lies.
struct tile_place {
  enum class role : std::uint8_t {
    tile,            ///< register `index`
    numbers,         ///< register `index` of numbers
    leaf,            ///< elements of leaf `index`, read in place
    leaf_numbers,    ///< the same, with one number for each row
    leaf_beyond,     ///< elements of leaf `index` that are loaded into a register
    output,          ///< elements of output `index`, written in place
    output_numbers,  ///< the same, with one number for each row
    output_beyond,   ///< elements of output `index` that are stored from a register
    constant,        ///< number `index` of the program
  };
  role what = role::tile;
  std::uint32_t index = 0;

  bool is_tile() const { return what == role::tile || what == role::leaf || what == role::output; }
  bool is_output() const { return what == role::output || what == role::output_numbers || what == role::output_beyond; }
};

/// Elements of an argument, a table or an output, and how they are walked over.
struct tile_leaf {
  std::uint32_t argument = 0;  ///< for an output its index; tables count after the arguments
  std::int64_t offset = 0;
  shape outer_steps{};                ///< by the program's outer dimensions
  shape inner_dims{}, inner_steps{};  ///< along a row; neighbours are joined where one step traverses both
  bool is_bytes = false;              ///< booleans
  std::int64_t row_step() const { return outer_steps.empty() ? 0 : outer_steps[outer_steps.size() - 1]; }
  bool varies() const {
    for (const std::int64_t step : inner_steps)
      if (step != 0) return true;
    return false;
  }
  /// Whether elements that are adjacent in memory belong to adjacent rows.
  bool is_transposed() const { return inner_dims.size() == 1 && inner_steps[0] != 1 && row_step() == 1; }
  /// Whether each of its rows lies in one piece.
  bool is_dense() const { return inner_dims.empty() || (inner_dims.size() == 1 && inner_steps[0] == 1); }
};

/// A part of rows that are made of several parts: indices [begin, end) of a row's dimensions.
struct tile_part {
  shape begin{}, end{};
  bool is_number = false;
  float number = 0;
  tile_leaf from{};  ///< its inner dimensions are the row's
};
struct tile_pieces {
  shape dims{};  ///< of a row
  std::vector<tile_part> parts;
};

struct tile_step {
  enum class action : std::uint8_t {
    compute,          ///< on a tile
    compute_numbers,  ///< on the numbers of all rows
    load,             ///< copies elements of leaf `index`
    load_pieces,      ///< copies elements of pieces `index`
    load_numbers,
    store,  ///< copies tile `a` to output `index`
    store_numbers,
    fold,  ///< folds each row of `a` into fold `index`
  };
  action what = action::compute;
  tile_function run = nullptr;
  std::uint32_t index = 0;
  std::uint32_t y = 0, a = 0, b = 0, c = 0;  ///< places
  bool joins_rows = false;                   ///< there are no gaps between the rows of its operands
};

struct tile_fold {
  row_fold how = row_fold::sum;
  fold_answer answer = fold_answer::all;
  std::uint32_t result = 0;   ///< a place
  std::uint32_t partner = 0;  ///< another fold of the same phase
  double epsilon = 0;
  bool is_direct = false;  ///< a row is one tile, so the fold of the tile is the result
};

struct tile_phase {
  std::vector<tile_step> numbers;  ///< run once for a few rows
  std::vector<tile_step> tiles;    ///< run once for each tile of these rows
  std::vector<std::uint32_t> folds;
};

struct tile_program {
  static constexpr std::size_t max_places = 256;

  shape outer;                 ///< a tile has rows along the last of them, and does not cross the others
  std::int64_t row = 1;        ///< elements of a row
  std::int64_t tile_rows = 1;  ///< of a tile, at most
  std::int64_t tile_columns = 1;
  /// Tiles are turned: a vector holds the same element of neighbouring rows, and numbers are vectors as well.
  bool has_lanes = false;
  bool pieces_apart = true;  ///< nothing is folded, so different threads may compute pieces of one row
  std::vector<tile_phase> phases;
  std::vector<tile_place> places;
  std::vector<std::uint32_t> moving;  ///< the places in arguments and outputs
  std::vector<tile_leaf> leaves;
  std::vector<tile_pieces> pieces;
  std::vector<tile_leaf> outputs;
  std::vector<tile_fold> folds;
  std::vector<float> constants;
  std::uint32_t arguments = 0;
  std::vector<std::vector<float>> tables;  ///< read as arguments, after the group's
  std::uint32_t tile_registers = 0, number_registers = 0;
  double cost = 0;  ///< of one element, in elements moved

  /// Whether rows are held as a whole, so that the next phase finds the tiles that a phase has computed.
  bool holds_rows() const {
    constexpr std::int64_t most = 4096, most_in_lanes = 64;
    return pieces_apart || row <= (has_lanes ? most_in_lanes : most);
  }
  /// Whether a place is one number for all rows.
  bool is_uniform(std::uint32_t place) const {
    const tile_place& p = places[place];
    return p.what == tile_place::role::constant ||
           (p.what == tile_place::role::leaf_numbers && leaves[p.index].row_step() == 0);
  }

  std::int64_t last() const { return outer.empty() ? 1 : outer[outer.size() - 1]; }
  std::int64_t rows() const { return outer.elements(); }

  // The items that threads share out: bands of rows that tiles do not cross, and pieces of such rows.
  std::int64_t width() const { return pieces_apart ? tile_columns : row; }
  std::int64_t bands() const { return (last() + tile_rows - 1) / tile_rows; }
  std::int64_t pieces_of_row() const { return row == 0 ? 1 : (row + width() - 1) / width(); }
  std::int64_t items() const { return rows() == 0 ? 0 : rows() / last() * bands() * pieces_of_row(); }

  // The memory of one thread, in bytes: registers, then the values that folds have gathered, then numbers.
  std::size_t tile_bytes() const { return padded(static_cast<std::size_t>(tile_rows * tile_columns) * sizeof(float)); }
  std::size_t number_bytes() const { return padded(static_cast<std::size_t>(tile_rows) * sizeof(float)); }
  std::size_t gathered_bytes() const { return padded(static_cast<std::size_t>(tile_rows) * sizeof(double)); }
  std::size_t thread_bytes() const {
    // One more register of numbers, for a fold's result of one tile.
    return tile_registers * tile_bytes() + folds.size() * gathered_bytes() + (number_registers + 1) * number_bytes();
  }
  static std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
};

}  // namespace
}  // namespace collage::inline v0::detail::host
