// Values in other layouts than the plain one: the memory they take, and how they are made from plain ones and back. Plain loops,
// for tests, checks and printing; between kernels, backends convert.
#pragma once

#include <algorithm>
#include <array>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/layout.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/form.hpp>
#include <collage/run/tensor.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The layouts that backends share, by the names that plans spell, the plain one first.
inline constexpr std::array shared_layouts{plain, channels_last, blocked_8, blocked_16};

namespace detail {

/// The order of a tensor's elements, seen as [images, channels, places]. Element (n, c, p) lies at
/// `(n * blocks + c / block) * places * block + p * block + c % block`.
struct channel_blocks {
  std::int64_t images = 1, channels = 1, places = 1, block = 1, blocks = 1;

  std::int64_t elements() const { return images * blocks * places * block; }
};

inline channel_blocks channel_blocks_of(const tensor_type& type, const layout& order) {
  const shape& s = type.dims;
  channel_blocks b;
  if (order == plain) {
    b.places = s.elements();
    return b;
  }
  if (s.rank < 2)
    throw error(error_kind::invalid_argument,
                "a tensor of rank " + std::to_string(s.rank) + " has no channels to lay out as " + order.name,
                "layout " + std::string(order.name));
  b.images = s[0];
  b.channels = s[1];
  b.places = s.from(2).elements();
  if (order == channels_last) b.block = std::max<std::int64_t>(b.channels, 1);
  else if (order == blocked_8) b.block = 8;
  else if (order == blocked_16) b.block = 16;
  else throw error(error_kind::unsupported, "only its own backend can convert it", std::string("layout ") + order.name);
  b.blocks = (b.channels + b.block - 1) / b.block;
  return b;
}

/// Calls visit(offset in plain order, offset in the layout, elements with the steps 1 and `block`).
template <class Visit>
void for_each_channel(const channel_blocks& b, const Visit& visit) {
  for (std::int64_t n = 0; n < b.images; ++n)
    for (std::int64_t c = 0; c < b.channels; ++c)
      visit((n * b.channels + c) * b.places, (n * b.blocks + c / b.block) * b.places * b.block + c % b.block);
}

}  // namespace detail

/// The type of the elements of a value in a form.
inline dtype element_in(const tensor_type& type, const form& stored) { return stored.element.value_or(type.type); }

/// Bytes of a value in a form, what fills up blocks included.
inline std::size_t bytes_in(const tensor_type& type, const form& stored) {
  const std::int64_t elements =
      stored.order == plain ? type.dims.elements() : detail::channel_blocks_of(type, stored.order).elements();
  return static_cast<std::size_t>(elements) * size_of(element_in(type, stored));
}

namespace detail {

/// Elements of a floating-point type as integers of 8 bits, or back. Errors: one of the types is neither; no scale.
inline void in_integers(dtype from, const std::byte* elements, dtype to, std::byte* made, std::int64_t count,
                        const integer_scale* how) {
  if (how == nullptr || !(is_8_bit_integer(from) ? is_floating(to) : is_floating(from)))
    throw error(error_kind::unsupported, "only floating-point elements with a scale are stored as integers of 8 bits",
                "form of elements");
  std::vector<double> numbers(static_cast<std::size_t>(count));
  std::vector<std::int64_t> integers(numbers.size());
  if (is_8_bit_integer(from)) {
    load_elements(from, elements, std::span<std::int64_t>(integers));
    std::ranges::transform(integers, numbers.begin(),
                           [&](std::int64_t n) { return double{number_for(static_cast<std::int32_t>(n), *how)}; });
    store_elements(to, std::span<const double>(numbers), made);
  } else {
    load_elements(from, elements, std::span<double>(numbers));
    std::ranges::transform(numbers, integers.begin(),
                           [&](double x) { return integer_for(static_cast<float>(x), *how, to); });
    store_elements(to, std::span<const std::int64_t>(integers), made);
  }
}

/// `count` elements of a floating-point type in another type, rounded to nearest. `how` is the scale of integers of 8 bits, if one of the
/// types is so. Errors: other types.
inline std::vector<std::byte> in_another_type(dtype from, const std::byte* elements, dtype to, std::int64_t count,
                                              const integer_scale* how) {
  std::vector<std::byte> made(static_cast<std::size_t>(count) * size_of(to));
  if (is_8_bit_integer(from) || is_8_bit_integer(to)) {
    in_integers(from, elements, to, made.data(), count, how);
    return made;
  }
  if (!is_floating(from) || !is_floating(to))
    throw error(error_kind::unsupported, "only floating-point elements are stored in another type here",
                "form of elements");
  std::vector<double> wide(static_cast<std::size_t>(count));
  load_elements(from, elements, wide);
  store_elements(to, std::span<const double>(wide), made.data());
  return made;
}

}  // namespace detail

/// Writes plain elements in another form: `made` has bytes_in(type, to) bytes. All memory here is the host's, whatever space
/// the form names. Elements are rounded to nearest. `how` is the scale of the value, if it is stored as integers of 8 bits. Errors: an
/// integer type in another element type; such integers without a scale.
inline void from_plain(const tensor_type& type, const form& to, const std::byte* from, std::byte* made,
                       const integer_scale* how = nullptr) {
  if (const dtype element = element_in(type, to); element != type.type) {
    const std::vector<std::byte> plain_ones =
        detail::in_another_type(type.type, from, element, type.dims.elements(), how);
    return from_plain({element, type.dims}, to.order, plain_ones.data(), made);
  }
  const std::size_t size = size_of(type.type);
  const detail::channel_blocks b = detail::channel_blocks_of(type, to.order);
  if (bytes_in(type, to) != 0) std::memset(made, 0, bytes_in(type, to));
  detail::for_each_channel(b, [&](std::int64_t in, std::int64_t out) {
    for (std::int64_t p = 0; p < b.places; ++p)
      std::memcpy(made + static_cast<std::size_t>(out + p * b.block) * size,
                  from + static_cast<std::size_t>(in + p) * size, size);
  });
}

/// Reads what lies in another form back into plain order. Errors: as of from_plain.
inline void to_plain(const tensor_type& type, const form& stored, const std::byte* from, std::byte* made,
                     const integer_scale* how = nullptr) {
  if (const dtype element = element_in(type, stored); element != type.type) {
    std::vector<std::byte> in_order(static_cast<std::size_t>(type.dims.elements()) * size_of(element));
    to_plain({element, type.dims}, stored.order, from, in_order.data());
    const std::vector<std::byte> widened =
        detail::in_another_type(element, in_order.data(), type.type, type.dims.elements(), how);
    if (!widened.empty()) std::memcpy(made, widened.data(), widened.size());
    return;
  }
  const std::size_t size = size_of(type.type);
  const detail::channel_blocks b = detail::channel_blocks_of(type, stored.order);
  detail::for_each_channel(b, [&](std::int64_t out, std::int64_t in) {
    for (std::int64_t p = 0; p < b.places; ++p)
      std::memcpy(made + static_cast<std::size_t>(out + p) * size,
                  from + static_cast<std::size_t>(in + p * b.block) * size, size);
  });
}

/// Rounds the elements of a tensor to those that a type has: a floating-point type, or integers of 8 bits with this scale. Does nothing
/// to integers.
inline void round_elements(dtype type, const tensor& t, const integer_scale* how = nullptr) {
  const bool is_known = is_floating(type) || is_8_bit_integer(type);
  if (type == t.type().type || !is_floating(t.type().type) || !is_known) return;
  const std::int64_t count = t.type().dims.elements();
  const std::vector<std::byte> rounded = detail::in_another_type(t.type().type, t.data(), type, count, how);
  const std::vector<std::byte> back = detail::in_another_type(type, rounded.data(), t.type().type, count, how);
  if (!back.empty()) std::memcpy(t.data(), back.data(), back.size());
}

/// Whether what fills up the last block is zero, on which every reader of the layout may rely where all elements are finite.
inline bool is_filled_with_zeros(const tensor_type& type, const form& stored, const std::byte* made) {
  const layout& order = stored.order;
  const std::size_t size = size_of(element_in(type, stored));
  const detail::channel_blocks b = detail::channel_blocks_of(type, order);
  const std::int64_t used = b.channels - (b.blocks - 1) * b.block;  // of the last block
  if (order == plain || used == b.block || b.elements() == 0) return true;
  const auto is_zero = [](std::byte x) { return x == std::byte{0}; };
  for (std::int64_t n = 0; n < b.images; ++n)
    for (std::int64_t p = 0; p < b.places; ++p) {
      const std::int64_t first = (((n + 1) * b.blocks - 1) * b.places + p) * b.block;
      const std::byte* const rest = made + static_cast<std::size_t>(first + used) * size;
      if (!std::all_of(rest, rest + static_cast<std::size_t>(b.block - used) * size, is_zero)) return false;
    }
  return true;
}

}  // namespace collage::inline v0
