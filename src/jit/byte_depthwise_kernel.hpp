// Depthwise convolutions of 8-bit values: how the backend reads matches of quantised files, and the kernels that it builds.
#pragma once

#include "byte_depthwise.hpp"

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_quantised_rules.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/weights.hpp>
#include <collage/verdict.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace collage::inline v0::detail::jit {

/// Stored integers stand for (number - zero) * scale.
struct byte_form {
  dtype type = dtype::u8;  ///< u8 or i8. As a result also f32, for which the others are not used
  float scale = 1;         ///< positive
  int zero = 0;
};

/// A depthwise convolution of quantised values, whatever pattern it is from. The result is
///   limit(sum of products + bias, least, most), in real numbers, stored in the form `result`.
struct byte_convolution {
  byte_depthwise_shape shape;
  byte_form image, result;
  std::vector<float> weight_scales;  ///< one for all, or one for each channel
  std::vector<float> bias;           ///< of each channel; empty: there is none
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
};

/// The same in the numbers that kernels read. Factors are rounded once.
byte_depthwise_terms terms_of(const byte_convolution& c);

/// Where a kernel finds its operands, and the constant whose packed form it keeps.
struct byte_operands {
  std::size_t image = 0;  ///< the position among a call's inputs
  std::uint32_t weights =
      0;  ///< the value, [channels][1][rows][columns]: int8, uint8 that stand for numbers from -128, or float32
};

/// The kernel of a configuration. Error (invalid_argument): `parse_byte_depthwise_configuration` refuses its text. Error (unsupported):
/// a factor is not finite, or the configuration is not for this shape.
kernel build_byte_depthwise(const byte_convolution& c, const byte_operands& from, build_context& context);

// Matches of the patterns `quantised_depthwise` and `byte_depthwise`, which `accepts_on_bytes` took -----------------------------

byte_depthwise_shape byte_depthwise_of(const any_match& m);
/// Adds the configurations that are worth measuring for a match.
void propose_byte_depthwise(const any_match& m, configuration_list& to);
verdict knows_byte_depthwise(const any_match& m, const collage::configuration& how);
kept_constants weights_of_byte_depthwise(const any_match& m, const collage::configuration& how);
/// Image and result have channels last: as in the file, or as uint8.
void set_byte_depthwise_forms(const any_match& m, value_forms& to);
/// Error (unsupported): also if int8 weights have a zero point other than 0, or uint8 weights one other than 128.
kernel build_byte_depthwise(const any_match& m, build_context& context);

}  // namespace collage::inline v0::detail::jit
