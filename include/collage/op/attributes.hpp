// Attributes of operators: each kind has a plain struct; graphs store it as a flat record of 64-bit words.
//
// A kind's struct lists its fields once, in `visit`; reading, writing, printing and importing all follow from that
// list:
//   struct pool_attributes {
//     shape window{}, strides{};
//     bool count_padding = false;
//     template <class Self, class Visitor>
//     static constexpr void visit(Self& self, Visitor&& visitor) {
//       visitor("window", self.window);
//       visitor("strides", self.strides);
//       visitor("count_padding", self.count_padding);
//     }
//   };
// Fields may be bool, std::int64_t, double, an enumeration, shape, real_list, or short_text. `visit` may leave out fields that have
// no meaning beside the others, as in `cast`. They come last, are neither lists nor text, and are left out of the default.
#pragma once

#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0 {

/// Text kept in place, for the few attributes that are text (an Einsum equation). At most 55 characters.
struct short_text {
  char text[56] = {};
  constexpr short_text() = default;
  constexpr short_text(const char* from) {
    for (std::size_t i = 0; i + 1 < sizeof(text) && from[i] != '\0'; ++i) text[i] = from[i];
  }
};

/// Real numbers kept in place, as many as a shape has extents: scales, corners of a region.
struct real_list {
  std::uint32_t count = 0;
  double number[shape::max_rank] = {};

  constexpr std::size_t size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr double operator[](std::size_t i) const { return number[i]; }
  constexpr const double* begin() const { return number; }
  constexpr const double* end() const { return number + count; }
  constexpr void push_back(double value) { number[count++] = value; }
};

/// The attributes of a kind that has none.
struct no_attributes {
  template <class Self, class Visitor>
  static constexpr void visit(Self&, Visitor&&) {}
};

/// Room enough for the record of any kind: eight shapes of full rank.
inline constexpr std::size_t max_attribute_words = 72;

/// A record being built; its first `size` words count.
struct attribute_words {
  std::uint64_t word[max_attribute_words] = {};
  std::size_t size = 0;
  constexpr list_view<const std::uint64_t> list() const { return {word, size}; }
};

namespace detail {

struct attribute_writer {
  attribute_words& out;

  // Few statements: writing and reading is most of what a static graph costs.
  constexpr void put(std::uint64_t w) { out.word[out.size++] = w; }
  constexpr void operator()(const char*, const shape& s) {
    out.word[out.size++] = s.rank;
    for (std::uint32_t i = 0; i < s.rank; ++i) out.word[out.size++] = static_cast<std::uint64_t>(s.extent[i]);
  }
  constexpr void operator()(const char*, const real_list& r) {
    put(r.count);
    for (const double number : r) put(__builtin_bit_cast(std::uint64_t, number));
  }
  constexpr void operator()(const char*, const short_text& t) {
    for (std::size_t i = 0; i < 7; ++i) {
      std::uint64_t w = 0;
      for (std::size_t j = 0; j < 8; ++j) w |= std::uint64_t{static_cast<unsigned char>(t.text[8 * i + j])} << (8 * j);
      put(w);
    }
  }
  constexpr void operator()(const char*, double v) { put(__builtin_bit_cast(std::uint64_t, v)); }
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  constexpr void operator()(const char*, const T& v) {
    out.word[out.size++] = static_cast<std::uint64_t>(v);
  }
};

struct attribute_reader {
  const std::uint64_t* next;

  constexpr std::uint64_t get() { return *next++; }
  constexpr void operator()(const char*, shape& s) {
    s.rank = static_cast<std::uint32_t>(*next++);
    for (std::uint32_t i = 0; i < s.rank; ++i) s.extent[i] = static_cast<std::int64_t>(*next++);
  }
  constexpr void operator()(const char*, real_list& r) {
    const std::uint64_t count = get();
    r = real_list{};
    for (std::uint64_t i = 0; i < count; ++i) r.push_back(__builtin_bit_cast(double, get()));
  }
  constexpr void operator()(const char*, short_text& t) {
    for (std::size_t i = 0; i < 7; ++i) {
      const std::uint64_t w = get();
      for (std::size_t j = 0; j < 8; ++j)
        t.text[8 * i + j] = static_cast<char>(static_cast<unsigned char>(w >> (8 * j)));
    }
  }
  constexpr void operator()(const char*, double& v) { v = __builtin_bit_cast(double, get()); }
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  constexpr void operator()(const char*, T& v) {
    v = static_cast<T>(*next++);
  }
};

}  // namespace detail

/// Writes a kind's attributes as words.
template <class Attributes>
constexpr attribute_words to_words(const Attributes& attributes) {
  attribute_words words;
  detail::attribute_writer writer{words};
  Attributes::visit(attributes, writer);
  return words;
}

/// Reads a kind's attributes back; `words` must come from to_words of the same struct.
template <class Attributes>
constexpr Attributes from_words(list_view<const std::uint64_t> words) {
  Attributes attributes{};
  detail::attribute_reader reader{words.data()};
  Attributes::visit(attributes, reader);
  return attributes;
}
template <class Attributes>
constexpr Attributes from_words(const attribute_words& words) {
  Attributes attributes{};
  detail::attribute_reader reader{words.word};
  Attributes::visit(attributes, reader);
  return attributes;
}

/// One field of a record, for printing and exporting.
struct attribute_value {
  enum class tag : std::uint8_t { boolean, integer, real, list, reals, text };
  const char* name = "";
  tag what = tag::integer;
  std::int64_t integer = 0;  ///< also booleans and enumerators
  double real = 0;
  shape list{};
  real_list reals{};
  short_text text{};
};

/// Receives the fields of a record one by one.
struct attribute_sink {
  void* context;
  void (*receive)(void* context, const attribute_value& value);
};

namespace detail {

struct attribute_lister {
  const attribute_sink& sink;

  void emit(attribute_value v) const { sink.receive(sink.context, v); }
  void operator()(const char* name, const shape& s) const {
    attribute_value v{.name = name, .what = attribute_value::tag::list};
    v.list = s;
    emit(v);
  }
  void operator()(const char* name, const real_list& r) const {
    attribute_value v{.name = name, .what = attribute_value::tag::reals};
    v.reals = r;
    emit(v);
  }
  void operator()(const char* name, const short_text& t) const {
    attribute_value v{.name = name, .what = attribute_value::tag::text};
    v.text = t;
    emit(v);
  }
  void operator()(const char* name, double d) const {
    attribute_value v{.name = name, .what = attribute_value::tag::real};
    v.real = d;
    emit(v);
  }
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void operator()(const char* name, const T& i) const {
    using tag = attribute_value::tag;
    attribute_value v{.name = name, .what = std::is_same_v<T, bool> ? tag::boolean : tag::integer};
    v.integer = static_cast<std::int64_t>(i);
    emit(v);
  }
};

}  // namespace detail
}  // namespace collage::inline v0
