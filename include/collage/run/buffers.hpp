// Memory for a network's inputs and outputs, and random contents for them.
#pragma once

#include <collage/detail/small_types.hpp>
#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace collage::inline v0 {

/// Random contents for a value that is not a constant: uniform in [-1, 1], or small integers.
inline void fill_random(const tensor& t, std::mt19937_64& random) {
  std::uniform_real_distribution<float> real(-1.0F, 1.0F);
  std::uniform_int_distribution<int> integer(0, 3);
  const auto fill = [&]<class T>(T) {
    for (T& x : t.as<T>()) {
      if constexpr (std::is_floating_point_v<T>) x = static_cast<T>(real(random));
      else x = static_cast<T>(integer(random));
    }
  };
  switch (t.type().type) {
    case dtype::f32: fill(float{}); break;
    case dtype::f64: fill(double{}); break;
    case dtype::i8: fill(std::int8_t{}); break;
    case dtype::i16: fill(std::int16_t{}); break;
    case dtype::i32: fill(std::int32_t{}); break;
    case dtype::i64: fill(std::int64_t{}); break;
    case dtype::u8: fill(std::uint8_t{}); break;
    case dtype::u16: fill(std::uint16_t{}); break;
    case dtype::u32: fill(std::uint32_t{}); break;
    case dtype::u64: fill(std::uint64_t{}); break;
    case dtype::boolean:
      for (std::uint8_t& x : t.as<std::uint8_t>()) x = static_cast<std::uint8_t>(integer(random) > 1);
      break;
    case dtype::i4:
    case dtype::u4:
    case dtype::i2:
    case dtype::u2:
      for (std::uint8_t& x : t.as<std::uint8_t>())
        x = static_cast<std::uint8_t>(detail::wrap_small(t.type().type, integer(random)));
      break;
    default: {
      std::vector<double> numbers(static_cast<std::size_t>(t.type().dims.elements()));
      for (double& x : numbers) x = static_cast<double>(real(random));
      if (t.type().type == dtype::f8e8m0)  // it has no sign
        for (double& x : numbers) x = x < 0 ? -x : x;
      store_elements(t.type().type, std::span<const double>(numbers), t.data());
      break;
    }
  }
}

/// Floating-point contents that are not finite.
enum class non_finite : std::uint8_t { nan, infinity };

/// Makes a few elements in random places NaN, or infinite with either sign. Returns false for tensors that cannot hold them,
/// such as integers, or infinity in a type that has none.
inline bool spoil(const tensor& t, non_finite what, std::mt19937_64& random) {
  constexpr int places = 8;
  const dtype type = t.type().type;
  const std::int64_t count = t.type().dims.elements();
  const bool has_infinities = !is_small(type) || type == dtype::f8e5m2;
  if (!is_floating(type) || count == 0 || type == dtype::f4e2m1 || (what == non_finite::infinity && !has_infinities))
    return false;
  std::uniform_int_distribution<std::int64_t> place(0, count - 1);
  double value =
      what == non_finite::nan ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  for (int i = 0; i < places; ++i, value = -value)
    store_elements(type, std::span<const double>(&value, 1),
                   t.data() + static_cast<std::size_t>(place(random)) * size_of(type));
  return true;
}

/// A network's inputs and outputs in memory of their own.
struct run_buffers {
  std::vector<tensor> in, out;
  std::vector<const_tensor_view> inputs;
  std::vector<tensor_view> outputs;

  explicit run_buffers(const graph& network) {
    for (const std::uint32_t v : network.inputs()) in.emplace_back(network.type_of(v));
    for (const std::uint32_t v : network.outputs()) out.emplace_back(network.type_of(v));
    for (const tensor& t : in) inputs.emplace_back(t);
    for (const tensor& t : out) outputs.emplace_back(t);
  }
  /// Random inputs that depend only on the seed.
  void randomise(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (const tensor& t : in) fill_random(t, random);
  }
};

}  // namespace collage::inline v0
