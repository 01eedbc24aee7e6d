// Convolutions by their definition, on generated kernels for products: any window, strides, dilations and pads, one group.
//
// Images have channels last. There a row of the window is one row of a product, whose next rows begin a stride further. So a row of
// outputs is a sum of products, one for each row of the window, and no patch is copied. Rows with pads are copied once.
#pragma once

#include "configuration.hpp"
#include "extent_check.hpp"
#include "product.hpp"

#include <collage/detail/sentence.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::detail::jit {

/// Raised with every change after which an old text would mean another kernel.
inline constexpr int direct_version = 1;

/// One dimension of a convolution.
struct direct_extent {
  std::int64_t size = 1, window = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;

  constexpr std::int64_t reach() const { return (window - 1) * dilation + 1; }
  constexpr std::int64_t padded() const { return size + pad_begin + pad_end; }
  constexpr std::int64_t outputs() const { return padded() < reach() ? 0 : (padded() - reach()) / stride + 1; }
  constexpr bool has_pads() const { return pad_begin > 0 || pad_end > 0; }
  friend constexpr bool operator==(const direct_extent&, const direct_extent&) = default;
};

struct direct_shape {
  std::int64_t batch = 1, channels = 1, outputs = 1;  ///< `outputs` are channels
  direct_extent depth, height, width;

  /// Rows of the window whose elements follow each other in an image: whole ones without dilation, else single elements.
  constexpr std::int64_t pieces() const { return width.dilation == 1 ? 1 : width.window; }
  /// The inner extent of one product.
  constexpr std::int64_t inner() const { return (width.dilation == 1 ? width.window : 1) * channels; }
  /// Products for each row of outputs.
  constexpr std::int64_t products() const { return depth.window * height.window * pieces(); }
  constexpr bool has_pads() const { return height.has_pads() || width.has_pads(); }
  constexpr std::int64_t output_floats() const {
    return batch * depth.outputs() * height.outputs() * width.outputs() * outputs;
  }
  friend constexpr bool operator==(const direct_shape&, const direct_shape&) = default;
};

/// A text is canonical, as in "direct1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows 4".
struct direct_configuration {
  configuration product = {};
  int rows = 4;  ///< of outputs that a thread computes at a time
  friend constexpr bool operator==(const direct_configuration&, const direct_configuration&) = default;
};

inline constexpr int most_direct_rows = 65536;

/// Why there is no such convolution, in one sentence; empty if there is.
sentence fault_of(const direct_shape& s);
sentence fault_of(const direct_configuration& c);

/// Bytes of the packed weights.
constexpr std::int64_t weight_bytes(const direct_configuration& c, const direct_shape& s) {
  return 4 * s.products() * packed_floats(c.product, s.inner(), s.outputs);
}

std::string to_text(const direct_configuration& c);
/// Error (invalid_argument): the text is not canonical, or `fault_of` has a reason.
direct_configuration parse_direct_configuration(std::string_view text);

/// The configurations that are worth measuring for a shape, at most 2.
std::vector<direct_configuration> propose_direct(const direct_shape& s, instruction_set set,
                                                 std::int64_t second_level_bytes, bool is_long);

/// The memory of one run. All images have channels last.
struct direct_call {
  const float* from = nullptr;
  const float* weights = nullptr;               ///< made by `pack`
  std::span<const float* const> operands = {};  ///< of the epilogue
  std::span<float* const> to = {};              ///< the epilogue's outputs, or one output if it has none
  float* scratch = nullptr;                     ///< `scratch_bytes`
};

/// The constructor adds code to an arena of its own. Where generated code cannot run, the replica does. Results do not depend on the
/// number of threads, bit by bit.
class direct_convolution {
 public:
  /// Operands of the epilogue are `per_column`, `whole` with channels last, or `single`. An output may lie exactly where a whole
  /// operand lies. Error (invalid_argument): `fault_of` has a reason. Error (unsupported): an operand is `per_row`.
  direct_convolution(const direct_configuration& how, const direct_shape& shape, const epilogue& finish, int threads,
                     unsigned features = processor_features());

  /// Why the replica runs, in one sentence; empty if generated code runs.
  const std::string& refusal() const { return only_.refusal(); }
  std::size_t scratch_bytes() const { return static_cast<std::size_t>(4 * scratch_floats_ * threads_); }

  /// Packs weights [outputs][channels][depth][height][width].
  void pack(const float* weights, float* to) const;
  void run(const direct_call& call) const;

 private:
  /// Rows of outputs of one slice, and some panels of their channels.
  struct part {
    std::int64_t image, slice, first_row, last_row, first_panel, last_panel;
  };
  /// Rows of the input, from the first one of the window on.
  struct rows_of_input {
    const float* first;
    std::int64_t step;
  };
  part part_of(std::int64_t index) const;
  rows_of_input rows_for(const direct_call& call, const part& at, std::int64_t slice, float* scratch) const;
  void copy_rows(const float* slice, std::int64_t first, std::int64_t count, float* to) const;
  void run_part(const direct_call& call, const part& at, float* scratch) const;
  void multiply(const direct_call& call, const part& at, const rows_of_input& in, float* sums, std::int64_t index,
                std::int64_t offset, const product& chosen, bool is_empty) const;

  direct_configuration how_;
  direct_shape shape_;
  epilogue finish_;
  int threads_;
  std::shared_ptr<code_arena> arena_;
  /// For the first, a middle and the last product of a sum, and for one alone.
  product first_, middle_, last_, only_;
  std::int64_t blocks_ = 1, panel_parts_ = 1;  ///< of rows in a slice; of the channels
  std::int64_t row_floats_ = 0;                ///< of a copied row
  std::int64_t copied_floats_ = 0, scratch_floats_ = 0;
};

}  // namespace collage::inline v0::detail::jit
