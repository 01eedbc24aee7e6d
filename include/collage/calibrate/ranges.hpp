// Ranges: the interval in which each float32 value of a network lies, and the 8-bit numbers that stand for it.
#pragma once

#include <collage/dtype.hpp>
#include <collage/fwd.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// How 8-bit numbers are laid over an interval. Zero always has a number of its own, so zero padding is exact.
enum class quantisation_schema : std::uint8_t {
  asymmetric,          ///< uint8 with a zero point: all 256 numbers lie in the interval
  symmetric,           ///< int8 from -127 to 127, zero point 0
  symmetric_unsigned,  ///< as symmetric; an interval without negative numbers is uint8 with zero point 0
};
/// Its name in files and on the command line, as "symmetric-unsigned".
const char* name_of(quantisation_schema schema);

/// How an interval is chosen from what was seen of a value (docs/calibration.md).
enum class range_method : std::uint8_t {
  minmax,      ///< from the smallest to the largest number
  percentile,  ///< leaves out the given share of the numbers
  entropy,     ///< least divergence (Kullback-Leibler) of the quantised distribution from the one that was seen
  mse,         ///< least mean square error
};
const char* name_of(range_method method);

/// Both ends are finite, and low <= high.
struct interval {
  float low = 0, high = 0;
  friend bool operator==(const interval&, const interval&) = default;
};

/// Integers that stand for real numbers, each for scale * (number - zero point).
struct quantisation {
  dtype element = dtype::u8;              ///< i8 or u8; i32 for biases
  std::int32_t axis = -1;                 ///< the dimension with a scale for each index; -1: one scale for all
  std::vector<float> scales;              ///< positive and finite
  std::vector<std::int32_t> zero_points;  ///< as many as scales, each a number of the element type
  friend bool operator==(const quantisation&, const quantisation&) = default;
};

/// The smallest and the largest number that a schema uses of an element type: -127 to 127 for int8, 0 to 255 for uint8.
struct number_limits {
  std::int32_t low = 0, high = 255;
};
constexpr number_limits limits_of(dtype element) {
  return element == dtype::i8 ? number_limits{-127, 127} : number_limits{0, 255};
}

/// One scale for an interval. The interval is first widened to contain zero. Errors: its ends are not finite or in the wrong
/// order; it is empty, that is both ends are zero.
quantisation quantisation_of(interval range, quantisation_schema schema);

/// The dimension of a weight that has a scale for each index: that of filters of a convolution, or of columns of a product. -1 if the value
/// is no weight, or if its readers have different dimensions.
std::int32_t weight_axis(const graph& network, std::uint32_t value);

/// Symmetric int8 for contents of float32, with one scale for each index of dimension `axis`, or with one for all if `axis` is -1.
/// A channel of zeros has the scale 1. Errors: an axis outside of the shape; contents that are not finite.
quantisation weight_quantisation(std::span<const float> contents, const shape& dims, std::int32_t axis);

/// int32 numbers for a bias that is added to integer products. Each channel has the scale of the input times that of the weights, and no
/// zero point. Errors: the input has more than one scale.
quantisation bias_quantisation(const quantisation& input, const quantisation& weights);

/// The number that stands for x under scale `which`. It is x / scale in float32, rounded to nearest with ties to even, plus the zero
/// point. Outside of the limits it is the nearest of them. x is no NaN. (ops::quantize_linear says the same, over all 256 numbers.)
std::int32_t number_of(float x, const quantisation& how, std::size_t which = 0);

/// Replaces each element by what its number stands for. `dims` is the shape of `contents`, which has no NaN. Errors: the numbers of
/// scales and indices differ.
void round_to(const quantisation& how, std::span<float> contents, const shape& dims);

class value_histogram;

/// The range of one value. A value without scales stays in float32, and `why` says why.
struct value_range {
  std::uint32_t value = 0;  ///< in its graph
  std::string name;         ///< in its graph
  interval seen;            ///< from the smallest to the largest number of all samples, or of the constant
  interval kept;            ///< what the numbers cover; what lies outside is clipped
  quantisation how;
  std::string why;
  /// The value whose range this is, because this value only moves or picks its numbers, as a reshape or a maximum pooling does.
  std::optional<std::uint32_t> same_as;
  /// The first sample in which it was not finite, from 1; 0: none.
  std::uint64_t bad_sample = 0;
  bool is_nan = false;  ///< in that sample; it was infinite otherwise
  /// The numbers of all samples; null for constants, and for values that have the range of another.
  std::shared_ptr<const value_histogram> numbers;

  bool has_numbers() const { return !how.scales.empty(); }
};

struct body_ranges;

/// The ranges of a graph's float32 values, by value, and of the subgraphs of its branches and loops.
struct graph_ranges {
  std::vector<value_range> values;  ///< ascending by value
  std::vector<body_ranges> bodies;  ///< ascending by node, then by number
};
/// The ranges of a subgraph: number `which` of node `node`.
struct body_ranges {
  std::uint32_t node = 0;
  std::uint32_t which = 0;
  graph_ranges inside;
};

/// The method and the samples that made ranges.
struct range_origin {
  range_method method = range_method::minmax;
  double percentile = 99.99;  ///< only used by that method
  quantisation_schema schema = quantisation_schema::asymmetric;
  bool per_channel = false;  ///< weights have a scale for each output channel
  std::uint64_t samples = 0;
  bool is_random = false;  ///< the samples were random numbers and no data
};

/// The ranges of a network.
struct network_ranges {
  std::string network;            ///< a name for people
  std::uint64_t fingerprint = 0;  ///< of the graph (graph::fingerprint)
  range_origin made_by;
  graph_ranges top;
};

/// The range of a value; null if there is none.
const value_range* find_range(const graph_ranges& in, std::uint32_t value);

}  // namespace collage::inline v0
