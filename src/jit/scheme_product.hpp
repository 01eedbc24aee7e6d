// Products by a scheme. The left operand is summed by blocks, and packed right ones were summed before. The products of
// both are added to blocks of the results.
#pragma once

#include "code_arena.hpp"
#include "product.hpp"
#include "scheme.hpp"
#include "tile_plan.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::detail::jit {

/// A text that names the packed form of B, and its floats.
std::string packing_of(const scheme& algorithm, const configuration& how);
std::size_t packed_floats(const scheme& algorithm, const configuration& how, const product_extents& extents);

/// C = A B by a scheme, followed by an epilogue, for one or several right operands B of one A. A is m x k in rows, each B is
/// packed for itself, and each C has rows of its own columns. Whole operands of an epilogue and all its outputs have such rows, too.
///
/// Blocks of A are summed once for all of them, and their panels of columns are tasks of one parallel loop. Blocks at the
/// lower and right edge are filled up with zeros in packed memory and in scratch memory. Each element is computed by the
/// same operations for every number of threads, and whatever the other right operands are.
class scheme_product {
 public:
  static constexpr std::size_t most_rights = 3;

  struct right_operand {
    std::int64_t columns = 0;
    epilogue finish;  ///< of its product
  };

  /// `threads` is the most that `run` uses. Errors: unsupported if an epilogue needs too many registers; invalid_argument if
  /// there are no right operands or too many.
  scheme_product(const scheme& algorithm, const configuration& how, std::int64_t rows, std::int64_t depth,
                 std::span<const right_operand> rights, int threads, unsigned features = processor_features());
  /// With one right operand.
  scheme_product(const scheme& algorithm, const configuration& how, const product_extents& extents,
                 const epilogue& finish, int threads, unsigned features = processor_features());

  /// Why the replica runs, in one sentence; empty if generated code runs.
  const std::string& refusal() const { return refusal_; }

  /// Floats of a right operand when it is packed. The packed form does not depend on the other right operands.
  std::size_t packed_size(std::size_t which = 0) const {
    return packed_floats(algorithm_, how_, {rows_, strips_[which].columns, depth_});
  }
  /// Sums the blocks of a right operand for all products, in double precision. `transposed`: it lies as [columns, depth].
  void pack(const float* b, bool transposed, float* to, std::size_t which = 0) const;

  /// Bytes of scratch memory of a run.
  std::size_t workspace() const { return static_cast<std::size_t>(sums_size() + threads_ * room_size()) * 4; }

  /// The memory of one right operand and its results.
  struct right_call {
    const float* packed = nullptr;
    std::array<const float*, tile_call::most_operands> operands = {};
    std::array<float*, tile_call::most_outputs> outputs = {};  ///< of its epilogue; one without an epilogue
  };
  struct call {
    const float* a = nullptr;
    std::array<right_call, most_rights> right = {};
    float* workspace = nullptr;  ///< of `workspace` bytes, aligned to 64
  };
  void run(const call& c) const;

 private:
  static constexpr std::size_t no_kernel = static_cast<std::size_t>(-1);

  struct kernel {
    std::shared_ptr<const tile_plan> plan;
    std::size_t ticket = 0;
    tile_function run = nullptr;
  };
  /// One product of the scheme.
  struct product_step {
    std::uint16_t left = 0;           ///< the value of the left program
    std::vector<std::size_t> blocks;  ///< of the result that it is added to
    /// [whether of the last rows][whether of the last columns]
    std::array<std::array<std::size_t, 2>, 2> kernels = {};
  };
  /// The columns of one right operand.
  struct strip {
    std::int64_t columns = 0;
    std::int64_t block_n = 0;
    std::vector<operand_shape> operands;
    std::size_t outputs = 0;             ///< of the epilogue; none without one
    bool is_direct = false;              ///< the kernels of the only product write the result themselves
    std::int64_t chunk = 1, chunks = 0;  ///< rows of a block in one task, and how many such parts there are
    bool panels_first = false;           ///< tasks that follow each other share rows, and not a panel
    std::vector<product_step> steps = {};
    int finish_rows = 1;
    /// By the number of columns: the kernels that finish `finish_rows` rows and one row.
    std::vector<std::array<std::size_t, 2>> finish = {};
  };
  /// Rows of each block, and one panel of columns of each block. A thread computes it.
  struct task {
    std::size_t which = 0;  ///< the strip
    std::int64_t first_row = 0, last_row = 0, panel = 0;
  };

  // Building.
  void choose_sums();
  void divide_rows(strip& s) const;
  void make_kernels(std::span<const right_operand> rights);
  void make_strip(strip& s, const epilogue& finish);
  void make_steps(strip& s, const epilogue& finish);
  void make_finish(strip& s, const epilogue& finish);
  std::size_t kernel_for(const configuration& how, std::int64_t rows, std::int64_t columns,
                         std::span<const store_mode> modes, const epilogue& finish);
  void bind();

  // Sizes.
  std::int64_t blocks() const { return static_cast<std::int64_t>(algorithm_.rows * algorithm_.columns); }
  std::int64_t panels(const strip& s) const { return (s.block_n + how_.columns() - 1) / how_.columns(); }
  std::int64_t tasks(const strip& s) const { return panels(s) * s.chunks; }
  std::int64_t panel_columns(const strip& s, std::int64_t panel) const;
  /// Floats of a packed row.
  std::int64_t panel_width(const strip& s, std::int64_t panel) const;
  std::int64_t value_step() const { return (block_k_ + 15) / 16 * 16; }
  std::int64_t sums_size() const { return slots_ * block_m_ * sum_step_; }
  std::int64_t part_size(const strip& s) const { return s.chunk * how_.columns(); }
  /// Floats of scratch memory of a thread: values of the left program for one row, or a part of each block.
  std::int64_t room_size() const;

  // Running.
  void sum_row(const call& c, std::int64_t row, float* room) const;
  const float* input_row(const call& c, std::int64_t row, std::size_t block, float* room) const;
  void run_task(const call& c, const task& t, float* room) const;
  void multiply(const call& c, const task& t, std::size_t product, float* room) const;
  void finish_block(const right_call& c, const task& t, std::size_t block, float* part) const;
  static void point_at(tile_call& tile, const right_call& c, const strip& s, std::int64_t row, std::int64_t column);
  task task_of(std::int64_t index) const;

  const scheme& algorithm_;
  configuration how_;
  std::int64_t rows_ = 0, depth_ = 0;
  std::int64_t threads_ = 1;
  unsigned features_ = 0;
  std::string refusal_;
  std::shared_ptr<code_arena> arena_;

  std::int64_t block_m_ = 0, block_k_ = 0;
  std::vector<std::int64_t> slot_of_;  ///< by value of the left program: where its rows are kept; -1: nowhere
  std::int64_t slots_ = 0, sum_step_ = 0;

  std::vector<strip> strips_;
  std::vector<kernel> kernels_;  ///< of all strips; equal ones are one
};

}  // namespace collage::inline v0::detail::jit
