// Operator kinds as a user's own header would define them, one of each sort: what is tested with such kinds.
#pragma once

#include <collage/collage.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace own {

namespace c = collage;

/// An elementwise kind: its body is all there is to say.
struct snake_attributes {
  double alpha = 1;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("alpha", self.alpha);
  }
};
/// snake(x): x + sin(alpha x)^2 / alpha.
inline constexpr struct snake : c::elementwise_kind<snake, 1> {
  static constexpr char name[] = "snake";
  static constexpr c::onnx_name onnx{"com.example", "Snake"};
  using attributes = snake_attributes;
  static constexpr auto body(auto x, auto alpha) {
    const auto wave = c::math::sin(alpha * x);
    return x + wave * wave / alpha;
  }
} snake{};

/// One field of each type that attributes may have.
enum class rounding : std::uint8_t { none, down, up };
struct spread_attributes {
  std::int64_t axis = -1;  ///< stored non-negative
  double scale = 1;
  bool centred = true;
  rounding mode = rounding::none;
  c::shape lag{0};                 ///< the rows before this one that are added to it
  c::real_list weights{1, {1.0}};  ///< of each of them
  c::short_text unit = "m";        ///< "km" are 1000 of "m"
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("axis", self.axis);
    visitor("scale", self.scale);
    visitor("centred", self.centred);
    visitor("mode", self.mode);
    visitor("lag", self.lag);
    visitor("weights", self.weights);
    visitor("unit", self.unit);
  }
};

/// spread(x[, bias]): how far x is from its mean along an axis, scaled, plus the bias; and, int64, how many elements
/// along the axis lie above the mean.
inline constexpr struct spread : c::kind<spread> {
  static constexpr char name[] = "spread";
  static constexpr c::onnx_name onnx{"com.example", "Spread"};
  static constexpr c::arity inputs{1, 2};
  static constexpr std::uint32_t outputs = 2;
  static constexpr c::fusion_kind fusion = c::fusion_kind::opaque;
  using attributes = spread_attributes;

  static constexpr void normalise(attributes& a, c::list_view<const c::tensor_type> in) {
    if (a.axis < 0) a.axis += static_cast<std::int64_t>(in[0].rank());
  }
  static constexpr c::verdict infer(const attributes& a, c::inference& io) {
    const c::tensor_type& x = io.in[0];
    if (!c::is_floating(x.type)) return {false, "its input must have a floating-point type", 0};
    if (a.axis < 0 || a.axis >= static_cast<std::int64_t>(x.rank()))
      return {false, "its axis must be within the rank of its input"};
    if (a.lag.size() != a.weights.size()) return {false, "it must have a weight for each lag"};
    if (a.mode > rounding::up) return {false, "its mode must be 0, 1 or 2"};
    if (io.in.size() > 1 && io.in[1] != x) return {false, "its bias must have its input's type and shape", 1};
    io.out[0] = x;
    io.out[1] = {c::dtype::i64, x.dims};
    io.out[1].dims[static_cast<std::size_t>(a.axis)] = 1;
    return {};
  }
  static constexpr c::work count(const attributes& a, const c::inference& io) {
    return {static_cast<double>(io.in[0].dims.elements()) * (3 + 2 * static_cast<double>(a.lag.size()))};
  }
  static void reference(const attributes& a, const c::reference_call& call) {
    const c::shape& dims = call.in[0].type.dims;
    const auto axis = static_cast<std::size_t>(a.axis);
    std::int64_t inner = 1;
    for (std::size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
    const std::int64_t extent = dims[axis], rows = dims.elements() / (extent * inner);
    const double unit = a.unit.text[0] == 'k' ? 1000 : 1;
    for (std::int64_t row = 0; row < rows * inner; ++row) {
      const std::int64_t start = row / inner * extent * inner + row % inner;
      const auto x = [&](std::int64_t i) { return call.in[0].real[static_cast<std::size_t>(start + i * inner)]; };
      double mean = 0;
      for (std::int64_t i = 0; i < extent; ++i) mean += x(i) / static_cast<double>(extent);
      std::int64_t above = 0;
      for (std::int64_t i = 0; i < extent; ++i) {
        double y = 0;
        for (std::size_t k = 0; k < a.lag.size(); ++k)
          if (i >= a.lag[k]) y += a.weights[k] * (x(i - a.lag[k]) - (a.centred ? mean : 0.0));
        y *= a.scale / unit;
        if (a.mode != rounding::none) y = a.mode == rounding::down ? std::floor(y) : std::ceil(y);
        const auto at = static_cast<std::size_t>(start + i * inner);
        call.out[0].real[at] = y + (call.in.size() > 1 ? call.in[1].real[at] : 0.0);
        above += x(i) > mean ? 1 : 0;
      }
      call.out[1].integer[static_cast<std::size_t>(row)] = above;
    }
  }
} spread{};

/// pieces(x): x cut along its first dimension into as many outputs as are asked for.
struct pieces_attributes {
  std::int64_t count = 2;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("count", self.count);
  }
};
inline constexpr struct pieces : c::kind<pieces> {
  static constexpr char name[] = "pieces";
  static constexpr c::onnx_name onnx{"com.example", "Pieces"};
  static constexpr std::uint32_t outputs = c::any_number;
  using attributes = pieces_attributes;

  static constexpr std::size_t count_outputs(const attributes& a, c::list_view<const c::body_signature>) {
    return a.count < 1 ? 1 : static_cast<std::size_t>(a.count);
  }
  static constexpr c::verdict infer(const attributes& a, c::inference& io) {
    const c::tensor_type& x = io.in[0];
    if (a.count < 1 || x.rank() == 0 || x.dims[0] % a.count != 0)
      return {false, "its first dimension must divide into equal pieces", 0};
    for (c::tensor_type& piece : io.out) {
      piece = x;
      piece.dims[0] = x.dims[0] / a.count;
    }
    return {};
  }
  static void reference(const attributes&, const c::reference_call& call) {
    std::size_t at = 0;
    for (const c::reference_tensor& piece : call.out)
      for (double& y : piece.real) y = call.in[0].real[at++];
  }
} pieces{};

/// sealed(x): x. Nothing says how it is computed: it has no reference.
inline constexpr struct sealed : c::kind<sealed> {
  static constexpr char name[] = "sealed";
  static constexpr c::onnx_name onnx{"com.example", "Sealed"};
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
} sealed{};

}  // namespace own
