// A depthwise convolution and the pointwise one after it, in one pass. Rows of the first are computed into scratch memory. They
// are multiplied by the weights of the second while they are in a cache. The tensor between both is never complete.
//
// A configuration is a text, as in "depthwise1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows 4 threads blocks".
// It is canonical.
#pragma once

#include "code_arena.hpp"
#include "depthwise.hpp"
#include "product.hpp"

#include <collage/detail/sentence.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::detail::jit {

/// Raised with every change after which an old text would mean another kernel.
inline constexpr int depthwise_version = 1;

/// How threads share the work. Results are the same bit by bit.
enum class depthwise_partition : std::uint8_t {
  blocks,  ///< each thread computes blocks of rows, in scratch memory of its own
  shared   ///< all threads work on one block: on its channels, then on its products
};

struct depthwise_configuration {
  configuration product = {};
  int rows = 1;  ///< of outputs in one block
  depthwise_partition partition = depthwise_partition::blocks;

  friend constexpr bool operator==(const depthwise_configuration&, const depthwise_configuration&) = default;
};

inline constexpr int most_depthwise_rows = 65536;

/// Why there is no such configuration, in one sentence; empty if there is.
constexpr sentence fault_of(const depthwise_configuration& c) {
  if (c.rows >= 1 && c.rows <= most_depthwise_rows) return fault_of(c.product);
  sentence why;
  why << "the number of rows of a block is " << c.rows << ", and must be from 1 to " << most_depthwise_rows;
  return why;
}

/// The canonical text.
std::string to_text(const depthwise_configuration& c);
/// Reads a canonical text. Error (invalid_argument): it is not one, or `fault_of` has a reason.
depthwise_configuration parse_depthwise_configuration(std::string_view text);

/// The configurations that are worth measuring, at most 12. `outputs` are channels, `is_long` says whether the epilogue needs many
/// registers, and `threads` is the largest number of threads that may run it.
std::vector<depthwise_configuration> promising_configurations(const depthwise_shape& s, std::int64_t outputs,
                                                              bool is_long, int threads,
                                                              unsigned features = processor_features());

/// The sizes of a run's blocks.
struct depthwise_blocks {
  std::int64_t rows = 1;       ///< of outputs in one block; the last block of an image may have fewer
  std::int64_t per_image = 1;  ///< blocks
  std::int64_t step = 0;       ///< floats between the pixels of a block
  std::int64_t floats = 0;     ///< of scratch memory for one block
};
depthwise_blocks blocks_of(const depthwise_configuration& c, const depthwise_shape& s);

/// The memory of one run. Nothing beside it is read or written. Images have channels last.
struct depthwise_product_call {
  const float* from = nullptr;
  const float* window = nullptr;  ///< made by `pack_depthwise`
  const float* bias = nullptr;    ///< of the depthwise convolution; null: there is none
  const float* packed = nullptr;  ///< made by `pack`
  std::array<const float*, epilogue::most_operands> operands = {};
  float* to = nullptr;
  float* scratch = nullptr;  ///< `workspace` bytes
};

/// The constructor makes the code. Where generated code cannot run, the replica does.
class depthwise_product {
 public:
  /// Results of the depthwise convolution outside of these bounds become the bound.
  struct bounds {
    float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
  };

  /// Rows of the product are pixels of the result, and its columns are `outputs` channels. `threads` is the most that `run` uses.
  /// Error (invalid_argument): `fault_of` has a reason. Error (unsupported): the epilogue needs too many registers.
  depthwise_product(const depthwise_configuration& how, const depthwise_shape& shape, std::int64_t outputs,
                    const bounds& between, const epilogue& finish, int threads,
                    unsigned features = processor_features());

  /// Why the replica runs, in one sentence; empty if generated code runs.
  const std::string& refusal() const { return full_.refusal(); }

  /// Floats of the packed weights of the pointwise convolution. They lie as [outputs][channels] before.
  std::size_t packed_size() const {
    return static_cast<std::size_t>(packed_floats(how_.product, shape_.channels, outputs_));
  }
  void pack(const float* weights, float* to) const;

  /// Bytes of scratch memory of a run.
  std::size_t workspace() const;
  void run(const depthwise_product_call& call) const;

 private:
  /// Rows of outputs of one image.
  struct block_place {
    std::int64_t image = 0, first_row = 0, last_row = 0;
  };
  block_place place_of(std::int64_t block) const;
  void convolve(const depthwise_product_call& call, const block_place& at, float* room, std::int64_t first_channel,
                std::int64_t last_channel) const;
  void multiply(const depthwise_product_call& call, const block_place& at, const float* room, std::int64_t first_panel,
                std::int64_t last_panel) const;

  depthwise_configuration how_;
  depthwise_shape shape_;
  std::int64_t outputs_;
  bounds between_;
  bool has_epilogue_;
  std::vector<operand_shape> operands_;
  int threads_;
  depthwise_blocks blocks_;
  depthwise_function rows_;
  std::shared_ptr<code_arena> arena_;
  product full_, rest_;  ///< for whole blocks, and for the last one of an image
};

}  // namespace collage::inline v0::detail::jit
