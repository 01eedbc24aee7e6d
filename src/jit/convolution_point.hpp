// Points of the space of convolutions: an algorithm, how it is computed, and how its images lie.
#pragma once

#include "convolution_configuration.hpp"

#include <collage/layout.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::detail::jit {

/// The layout of collage/layout.hpp that an image has.
constexpr const layout& layout_of(image_layout order) {
  switch (order) {
    case image_layout::channels_last: return channels_last;
    case image_layout::blocked_16: return blocked_16;
    default: return plain;
  }
}

struct convolution_point {
  convolution_configuration how;
  image_layout from = image_layout::plain, to = image_layout::plain;

  /// As in "winograd1 F(2,3) avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory block 56 threads tiles from plain to plain".
  /// It is canonical.
  std::string text() const;
  struct reading;
  /// Reads a canonical text.
  static reading read(std::string_view text);
  friend bool operator==(const convolution_point&, const convolution_point&) = default;
};

struct convolution_point::reading {
  std::optional<convolution_point> point;
  const char* fault = "";  ///< if there is no point: one sentence that says why
};

/// The points that are worth measuring for a shape, at most 12: each algorithm, with both images in each of the layouts.
/// `machine.threads` is the largest number of threads that may run it. The layouts of `s` are not read.
std::vector<convolution_point> promising_points(const convolution_shape& s, const convolution_machine& machine);

/// The processor that this process runs on.
convolution_machine this_machine();

}  // namespace collage::inline v0::detail::jit
