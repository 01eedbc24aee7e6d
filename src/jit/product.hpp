// A product of matrices by kernels for tiles: C (+)= A B, with A[m x k] in rows, B packed, and C[m x n] in rows.
#pragma once

#include "code_arena.hpp"
#include "tile_plan.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::detail::jit {

struct product_extents {
  std::int64_t m = 0, n = 0, k = 0;
};

/// The memory of one product. All steps are in floats.
struct product_call {
  const float* a = nullptr;
  std::int64_t a_step = 0;
  const float* packed = nullptr;    ///< made by `product::pack`
  std::int64_t first_panel = 0;     ///< with which `packed` begins
  std::span<float* const> to = {};  ///< the destinations; null for the first one if only outputs are written
  std::int64_t to_step = 0;
  std::span<const float* const> operands = {};       ///< of the epilogue
  std::span<const std::int64_t> operand_steps = {};  ///< read for whole operands only
  std::span<float* const> outputs = {};              ///< of the epilogue
  std::span<const std::int64_t> output_steps = {};
};

/// A part of a product: whole panels of columns and bands of rows. Different parts may run at the same time.
struct product_part {
  std::int64_t first_panel = 0, last_panel = 0, first_band = 0, last_band = 0;
  /// Steps over k, of which B has all. A begins with the first of them.
  std::int64_t first_step = 0, last_step = std::numeric_limits<std::int64_t>::max();
};

/// Kernels for all tiles of a product. The constructor adds their code to an arena; `bind`, after the arena was sealed, takes
/// them into use. Where generated code cannot run, the replica does.
class product {
 public:
  /// `features` are the processor's.
  product(const configuration& how, const product_extents& extents, std::span<const store_mode> destinations,
          const epilogue& finish, std::shared_ptr<code_arena> arena, unsigned features = processor_features());

  /// Selects generated code if the arena is executable. Before it, the replica runs.
  void bind();
  /// Why the replica runs, in one sentence; empty if generated code runs.
  const std::string& refusal() const { return refusal_; }

  /// Floats of B when it is packed.
  std::size_t packed_size() const;
  /// Packs B, whose rows are `step` floats apart. Columns that fill the last vector are 0.
  void pack(const float* b, std::int64_t step, float* to) const;

  std::int64_t panels() const { return (extents_.n + how_.columns() - 1) / how_.columns(); }
  std::int64_t bands() const { return (extents_.m + how_.rows - 1) / how_.rows; }

  void run(const product_call& call) const { run(call, {0, panels(), 0, bands()}); }
  void run(const product_call& call, const product_part& part) const;

 private:
  struct kernel {
    std::shared_ptr<const tile_plan> plan;  ///< null: no tile has this size
    std::size_t ticket = 0;
    tile_function run = nullptr;
  };
  int panel_width(std::int64_t panel) const;  ///< floats of a packed row
  void add(kernel& to, std::int64_t rows, std::int64_t columns, std::span<const store_mode> destinations,
           const epilogue& finish);

  configuration how_;
  product_extents extents_;
  std::shared_ptr<code_arena> arena_;
  std::string refusal_;
  std::vector<operand_shape> operands_;
  std::size_t outputs_ = 0, destinations_ = 0;
  std::array<std::array<kernel, 2>, 2> kernels_;  ///< [whether the last band][whether the last panel]
};

}  // namespace collage::inline v0::detail::jit
