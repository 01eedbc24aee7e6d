// The families of the backend's kernels. Each has files of its own, which read matches and configurations.
#pragma once

#include "direct_kernel.hpp"

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_attention_rules.hpp>
#include <collage/backends/jit_quantised_rules.hpp>
#include <collage/backends/jit_rules.hpp>

#include <cstdint>
#include <string_view>

namespace collage::inline v0::detail::jit {

enum class kernel_family : std::uint8_t {
  products,   ///< one or several, of 1x1 convolutions, too
  bilinear,   ///< convolutions with fewer multiplications
  direct,     ///< other convolutions with a window
  depthwise,  ///< a depthwise convolution and the pointwise one after it
  bytes,      ///< a depthwise convolution of 8-bit values
  attention
};

/// The family of a match with a configuration. Windows that have bilinear algorithms may also be computed directly, if the text says so.
inline kernel_family family_of(const any_match& m, std::string_view text) {
  if (is_on_bytes(m)) return kernel_family::bytes;
  if (is_attention(m)) return kernel_family::attention;
  const product_match shape(m);
  if (shape.is_windowed) return is_direct(text) ? kernel_family::direct : kernel_family::bilinear;
  return shape.is_depthwise() ? kernel_family::depthwise : kernel_family::products;
}

/// The family whose configurations are proposed for a match.
inline kernel_family proposed_family_of(const any_match& m) {
  const kernel_family found = family_of(m, "");
  return found == kernel_family::bilinear && !product_match(m).suits_bilinear ? kernel_family::direct : found;
}

}  // namespace collage::inline v0::detail::jit
