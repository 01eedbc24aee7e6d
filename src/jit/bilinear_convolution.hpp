// Convolutions by bilinear algorithms, on generated kernels. Each block of tiles is transformed, multiplied by transformed weights
// and transformed back.
//
// A tile of outputs is computed from sums of its inputs and of products. So NaN and infinity spread over a tile: an
// input that is not finite makes other outputs NaN than those that read it. `run` says if that may have happened.
#pragma once

#include "convolution_configuration.hpp"
#include "product.hpp"
#include "transforms.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace collage::inline v0::detail::jit {

/// The memory of one run. Nothing beside it is read or written. Images and scratch are fastest where they begin at
/// multiples of 64 bytes.
struct convolution_call {
  const float* from = nullptr;
  const float* weights = nullptr;               ///< made by `pack`
  std::span<const float* const> operands = {};  ///< of the epilogue
  std::span<float* const> to = {};              ///< the epilogue's outputs, or one output if it has none
  float* scratch = nullptr;                     ///< `scratch_bytes`
  int threads = 1;                              ///< at most those that the scratch memory is for
};

/// The constructor adds code to an arena; `bind`, after the arena was sealed, takes it into use. Where generated code cannot run,
/// the replica does.
///
/// Results do not depend on the number of threads nor on the partition, bit by bit.
class bilinear_convolution {
 public:
  /// Operands of the epilogue are `per_column` for one number for each output channel, `whole` for an image in the
  /// layout of the output, or `single`. An output may lie exactly where a whole operand lies.
  /// Error (invalid_argument): `fault_of` has a reason. Error (unsupported): an operand is `per_row`.
  bilinear_convolution(const convolution_configuration& how, const convolution_shape& shape, const epilogue& finish,
                       std::shared_ptr<code_arena> arena, unsigned features = processor_features());

  /// Selects generated code if the arena is executable. Before it, the replica runs.
  void bind();
  /// Why the replica runs, in one sentence; empty if generated code runs.
  const std::string& refusal() const { return full_.refusal(); }

  /// Packs weights [outputs][channels][depth][height][width]. Those that are kept transformed are transformed in double precision.
  /// `to` has `weight_bytes`. So many threads share the work.
  void pack(const float* weights, float* to, int threads = 1) const;

  /// False: some result was not finite before the epilogue. Then an input or weight is not finite, or a sum is too large,
  /// and results of whole tiles may differ from the definition's. True: every input that was read is finite, or
  /// has no influence on any output. A caller that must keep NaN and infinity computes the convolution in
  /// another way then.
  bool run(const convolution_call& call) const;

 private:
  /// The tiles and slices of a block.
  struct block_place {
    std::int64_t first_tile = 0, tiles = 0;
    std::int64_t first_slice = 0, slices = 0;              ///< of the output
    std::int64_t first_input_slice = 0, input_slices = 0;  ///< of the image, or of the pads
  };
  struct block_memory {
    float* input;   ///< V
    float* output;  ///< M
  };
  /// Transformed weights, of all panels or of one.
  struct panel_weights {
    const float* packed;
    std::int64_t step;  ///< floats between products
    std::int64_t first_panel = 0;
  };
  block_memory memory_of(float* scratch, int thread) const;
  block_place place_of(std::int64_t block) const;
  const product& product_of(const block_place& at) const {
    return (blocks_.rows_are_slices ? at.slices : at.tiles) == blocks_.rows() ? full_ : rest_;
  }
  input_transform input_of(const convolution_call& call, const block_place& at, const block_memory& memory) const;
  output_transform output_of(const convolution_call& call, const block_place& at, const block_memory& memory) const;
  void multiply(const panel_weights& weights, const block_place& at, const block_memory& memory, std::int64_t index,
                std::int64_t first_panel, std::int64_t last_panel) const;
  /// The product of one line of a block: of one of its slices, or of one of its tiles.
  void multiply_line(const panel_weights& weights, const block_place& at, const block_memory& memory,
                     std::int64_t index, std::int64_t line, std::int64_t first_panel, std::int64_t last_panel) const;
  bool is_on_the_fly() const { return how_.weights == weight_transform_time::on_the_fly; }
  /// Transforms the weights of a panel in a thread's memory, and multiplies by them.
  void multiply_panel(const convolution_call& call, const block_place& at, const block_memory& memory,
                      std::int64_t panel, int thread) const;
  void pack_taps(const float* weights, float* to) const;
  bool run_block(const convolution_call& call, std::int64_t block, int thread) const;
  bool run_phases(const convolution_call& call, std::int64_t block, const block_memory& memory) const;

  convolution_configuration how_;
  convolution_shape shape_;
  depth_taps taps_;
  convolution_blocks blocks_;
  epilogue finish_;
  image_steps from_, to_;
  transform_functions transforms_;
  product full_, rest_;      ///< for whole blocks, and for the last one
  std::int64_t packed_ = 0;  ///< floats of one product's weights
};

}  // namespace collage::inline v0::detail::jit
