// Products by a scheme. The left operand is summed by blocks, and the packed right one was summed before. The products of
// both are added to blocks of the result.
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

/// C = A B by a scheme, followed by an epilogue. A is m x k in rows, B is packed, and C is m x n in rows. Operands and outputs of
/// the epilogue that are whole have rows of n.
///
/// Blocks at the lower and right edge are filled up with zeros in packed memory and in scratch memory. Each element is
/// computed by the same operations for every number of threads.
class scheme_product {
 public:
  /// `threads` is the most that `run` uses. Error (unsupported): the epilogue needs too many registers.
  scheme_product(const scheme& algorithm, const configuration& how, const product_extents& extents,
                 const epilogue& finish, int threads, unsigned features = processor_features());

  /// Why the replica runs, in one sentence; empty if generated code runs.
  const std::string& refusal() const { return refusal_; }

  /// Floats of B when it is packed, and a text that names the packed form.
  std::size_t packed_size() const { return packed_floats(algorithm_, how_, extents_); }
  std::string packing() const { return packing_of(algorithm_, how_); }
  /// Sums the blocks of B for all products, in double precision. `transposed`: B lies as [n, k].
  void pack(const float* b, bool transposed, float* to) const;

  /// Bytes of scratch memory of a run.
  std::size_t workspace() const { return static_cast<std::size_t>(sums_size() + threads_ * room_size()) * 4; }

  struct call {
    const float* a = nullptr;
    const float* packed = nullptr;
    std::array<const float*, tile_call::most_operands> operands = {};
    float* output = nullptr;
    float* workspace = nullptr;  ///< of `workspace` bytes, aligned to 64
  };
  void run(const call& c) const;

 private:
  static constexpr std::size_t most_values = 256;  ///< of a left program
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
  /// Rows of each block, and one panel of columns of each block. A thread computes it.
  struct task {
    std::int64_t first_row = 0, last_row = 0, panel = 0;
  };

  // Building.
  void choose_sums();
  void divide_rows();
  void make_kernels(const epilogue& finish);
  void make_steps(const epilogue& finish);
  void make_finish(const epilogue& finish);
  std::size_t kernel_for(const configuration& how, std::int64_t rows, std::int64_t columns,
                         std::span<const store_mode> modes, const epilogue& finish);
  void bind();

  // Sizes.
  std::int64_t blocks() const { return static_cast<std::int64_t>(algorithm_.rows * algorithm_.columns); }
  std::int64_t panels() const { return (block_n_ + how_.columns() - 1) / how_.columns(); }
  std::int64_t panel_columns(std::int64_t panel) const;
  /// Floats of a packed row.
  std::int64_t panel_width(std::int64_t panel) const;
  std::int64_t value_step() const { return (block_k_ + 15) / 16 * 16; }
  std::int64_t sums_size() const { return slots_ * block_m_ * sum_step_; }
  std::int64_t part_size() const { return chunk_ * how_.columns(); }
  /// Floats of scratch memory of a thread: values of the left program for one row, or a part of each block.
  std::int64_t room_size() const;

  // Running.
  void sum_row(const call& c, std::int64_t row, float* room) const;
  const float* input_row(const call& c, std::int64_t row, std::size_t block, float* room) const;
  void run_task(const call& c, const task& t, float* room) const;
  void multiply(const call& c, const task& t, std::size_t product, float* room) const;
  void finish_block(const call& c, const task& t, std::size_t block, float* part) const;
  void point_at(tile_call& tile, const call& c, std::int64_t row, std::int64_t column) const;
  task task_of(std::int64_t index) const;

  const scheme& algorithm_;
  configuration how_;
  product_extents extents_;
  std::vector<operand_shape> operands_;
  bool has_epilogue_ = false;
  std::int64_t threads_ = 1;
  unsigned features_ = 0;
  std::string refusal_;
  std::shared_ptr<code_arena> arena_;

  std::int64_t block_m_ = 0, block_k_ = 0, block_n_ = 0;
  std::int64_t chunk_ = 1, chunks_ = 0;  ///< rows of a block in one task, and how many such parts there are
  bool panels_first_ = false;            ///< tasks that follow each other share rows, and not a panel
  bool is_direct_ = false;               ///< the kernels of the only product write the result themselves

  std::vector<std::int64_t> slot_of_;  ///< by value of the left program: where its rows are kept; -1: nowhere
  std::int64_t slots_ = 0, sum_step_ = 0;

  std::vector<product_step> steps_;
  std::vector<kernel> kernels_;
  int finish_rows_ = 1;
  /// By the number of columns: the kernels that finish `finish_rows_` rows and one row.
  std::vector<std::array<std::size_t, 2>> finish_;
};

}  // namespace collage::inline v0::detail::jit
