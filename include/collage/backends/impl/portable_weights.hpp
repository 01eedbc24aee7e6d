// Products by quantised weights. Integers are read and become float32 in registers. So a product with few rows takes as long as its
// integers take to be read.
#pragma once

#include <algorithm>
#include <array>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/backends/portable_weights.hpp>
#include <collage/backends/reference.hpp>
#include <collage/detail/hash.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace collage::inline v0::detail::host {
namespace {

#ifdef __AVX2__
/// The low or the high half of each byte, as a byte.
template <bool High>
__m128i half_bytes(__m128i x) {
  if constexpr (High) x = _mm_srli_epi16(x, 4);
  return _mm_and_si128(x, _mm_set1_epi8(15));
}
#endif

/// Some float32 numbers in a register. 4-bit integers are read without their sign: `panel_filler` has moved zero points by as much.
#ifdef __AVX512F__
struct number_lanes {
  static constexpr int count = 16, vectors = 4;  // vectors of columns at a time, as many as registers allow
  using type = __m512;
  static type zero() { return _mm512_setzero_ps(); }
  static type all(float x) { return _mm512_set1_ps(x); }
  static type load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, type x) { _mm512_storeu_ps(to, x); }
  static type minus(type a, type b) { return _mm512_sub_ps(a, b); }
  static type times_plus(type a, type b, type c) { return _mm512_fmadd_ps(a, b, c); }
  static type bytes(const std::byte* from) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x));
  }
  template <bool High>
  static type halves(const std::byte* from) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(half_bytes<High>(x)));
  }
};
#elif defined(__AVX2__) && defined(__FMA__)
struct number_lanes {
  static constexpr int count = 8, vectors = 2;
  using type = __m256;
  static type zero() { return _mm256_setzero_ps(); }
  static type all(float x) { return _mm256_set1_ps(x); }
  static type load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, type x) { _mm256_storeu_ps(to, x); }
  static type minus(type a, type b) { return _mm256_sub_ps(a, b); }
  static type times_plus(type a, type b, type c) { return _mm256_fmadd_ps(a, b, c); }
  static type bytes(const std::byte* from) {
    const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x));
  }
  template <bool High>
  static type halves(const std::byte* from) {
    const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(half_bytes<High>(x)));
  }
};
#else
struct number_lanes {
  static constexpr int count = 4, vectors = 2;
  using type = std::array<float, 4>;
  template <class F>
  static type each(const F& f) {
    type made;
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = f(i);
    return made;
  }
  static type zero() { return {}; }
  static type all(float x) {
    return each([x](std::size_t) { return x; });
  }
  static type load(const float* from) {
    return each([from](std::size_t i) { return from[i]; });
  }
  static void store(float* to, const type& x) { std::ranges::copy(x, to); }
  static type minus(const type& a, const type& b) {
    return each([&](std::size_t i) { return a[i] - b[i]; });
  }
  static type times_plus(const type& a, const type& b, const type& c) {
    return each([&](std::size_t i) { return a[i] * b[i] + c[i]; });
  }
  static type bytes(const std::byte* from) {
    return each([from](std::size_t i) { return static_cast<float>(static_cast<std::int8_t>(from[i])); });
  }
  template <bool High>
  static type halves(const std::byte* from) {
    return each([from](std::size_t i) { return static_cast<float>((from[i] >> (High ? 4 : 0)) & std::byte{15}); });
  }
};
#endif

/// Where a panel has its parts, in bytes from its beginning: the integers of its rows, then scales and zero points of its blocks. There
/// are no zero points if all are equal.
struct weight_panel {
  std::int64_t row_bytes = 0, scales = 0, zeros = 0, bytes = 0;

  weight_panel() = default;
  weight_panel(const weight_matrix& m, bool has_zeros) {
    row_bytes = row_bytes_of(m);
    const auto of_blocks = static_cast<std::int64_t>(sizeof(float)) * panel_columns * m.blocks();
    scales = (row_bytes * m.rows + 63) / 64 * 64;
    zeros = scales + of_blocks;
    bytes = zeros + (has_zeros ? of_blocks : 0);
  }
};

/// One product by quantised weights.
struct weight_product {
  std::int64_t rows = 0;  ///< of the left operand
  weight_matrix weights;
  weight_panel panel;
  std::optional<float> zero;  ///< the zero point of all, if they share one
  std::shared_ptr<const std::byte> panels;
  std::vector<float> added;  ///< by column; empty: nothing is added
  std::size_t left = 0;      ///< the argument
  int threads = 1;

  bool is_small() const { return panel.row_bytes < panel_columns; }
};

/// Sums of some rows of the left operand by some columns of a panel.
template <int Rows>
using panel_sums = std::array<std::array<float, panel_columns>, static_cast<std::size_t>(Rows)>;

/// Adds the products of rows [first, last) of the weights, which share a scale, for some vectors of columns from `vector` on.
template <bool Small, int Rows>
void add_products(const weight_product& p, const std::byte* panel, const float* scales, const float* zeros,
                  const float* x, std::int64_t first, std::int64_t last, int vector, panel_sums<Rows>& sums) {
  using lanes = number_lanes;
  constexpr int vectors = lanes::vectors, all = static_cast<int>(panel_columns) / lanes::count;
  typename lanes::type sum[Rows][vectors], zero[vectors];
  for (int v = 0; v < vectors; ++v) {
    zero[v] = p.zero ? lanes::all(*p.zero) : lanes::load(zeros + (vector + v) * lanes::count);
    for (int r = 0; r < Rows; ++r) sum[r][v] = lanes::zero();
  }
  for (std::int64_t k = first; k < last; ++k) {
    const std::byte* const row = panel + k * p.panel.row_bytes;
    for (int v = 0; v < vectors; ++v) {
      const int which = vector + v;
      typename lanes::type w;
      if constexpr (!Small) w = lanes::bytes(row + which * lanes::count);
      else if (which < all / 2) w = lanes::template halves<false>(row + which * lanes::count);
      else w = lanes::template halves<true>(row + (which - all / 2) * lanes::count);
      w = lanes::minus(w, zero[v]);
      for (int r = 0; r < Rows; ++r) sum[r][v] = lanes::times_plus(lanes::all(x[r * p.weights.rows + k]), w, sum[r][v]);
    }
  }
  for (int v = 0; v < vectors; ++v) {
    const typename lanes::type scale = lanes::load(scales + (vector + v) * lanes::count);
    for (int r = 0; r < Rows; ++r) {
      float* const to = sums[static_cast<std::size_t>(r)].data() + (vector + v) * lanes::count;
      lanes::store(to, lanes::times_plus(sum[r][v], scale, lanes::load(to)));
    }
  }
}

/// Some rows of the result, for the columns of one panel.
template <bool Small, int Rows>
void multiply_rows(const weight_product& p, std::int64_t which, const float* x, float* y) {
  constexpr std::int64_t in_cache = 256;  // rows of a panel that stay in the first-level cache for all their vectors
  const std::byte* const panel = p.panels.get() + which * p.panel.bytes;
  const auto* const scales = reinterpret_cast<const float*>(panel + p.panel.scales);
  const auto* const zeros = reinterpret_cast<const float*>(panel + p.panel.zeros);
  panel_sums<Rows> sums{};
  for (std::int64_t b = 0; b < p.weights.blocks(); ++b) {
    const std::int64_t end = std::min((b + 1) * p.weights.block, p.weights.rows);
    for (std::int64_t k = b * p.weights.block; k < end; k += in_cache)
      for (int v = 0; v < static_cast<int>(panel_columns) / number_lanes::count; v += number_lanes::vectors)
        add_products<Small, Rows>(p, panel, scales + b * panel_columns, p.zero ? nullptr : zeros + b * panel_columns, x,
                                  k, std::min(k + in_cache, end), v, sums);
  }
  const std::int64_t first = which * panel_columns, columns = std::min(panel_columns, p.weights.columns - first);
  for (int r = 0; r < Rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      y[r * p.weights.columns + first + c] = sums[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] +
                                             (p.added.empty() ? 0.0F : p.added[static_cast<std::size_t>(first + c)]);
}

template <bool Small>
void multiply_panel(const weight_product& p, std::int64_t which, const float* x, float* y) {
  std::int64_t r = 0;
  const auto some = [&]<int Rows>(std::integral_constant<int, Rows>) {
    multiply_rows<Small, Rows>(p, which, x + r * p.weights.rows, y + r * p.weights.columns);
    r += Rows;
  };
  while (p.rows - r >= 4) some(std::integral_constant<int, 4>{});
  if (p.rows - r == 3) some(std::integral_constant<int, 3>{});
  else if (p.rows - r == 2) some(std::integral_constant<int, 2>{});
  else if (p.rows - r == 1) some(std::integral_constant<int, 1>{});
}

/// Writes the panels of a matrix. Numbers of uint8 become int8 and those of int4 uint4, with zero points moved as far.
class panel_filler {
 public:
  panel_filler(const any_match& m, const build_context& context, const weight_matrix& of)
      : of_(of),
        integers_(context.constant<std::byte>(of.integers)),
        scales_(context.constant<float>(of.scales)),
        threads_(context.threads()) {
    if (of.zero_points) zeros_ = to_oracle({context.constant<std::byte>(*of.zero_points), m.type_of(*of.zero_points)});
    else zeros_.integer.push_back(0);
    moved_ = of.type == dtype::u8 ? -128 : of.type == dtype::i4 ? 8 : 0;
    panel_ = weight_panel(of, !zero());
  }
  const weight_panel& panel() const { return panel_; }
  /// The zero point as it is stored, if there is one for all.
  std::optional<float> zero() const {
    const auto first = zeros_.integer.front();
    const bool is_one = std::ranges::all_of(zeros_.integer, [first](std::int64_t z) { return z == first; });
    return is_one ? std::optional(static_cast<float>(first + moved_)) : std::nullopt;
  }

  void operator()(std::byte* to) const {
    parallel(threads_, panels_of(of_), [&](std::int64_t p, int) { fill(to + p * panel_.bytes, p * panel_columns); });
  }

 private:
  /// Writes the panel that begins with a column. The integers are read in the order in which they lie.
  void fill(std::byte* to, std::int64_t first) const {
    std::memset(to, 0, static_cast<std::size_t>(panel_.bytes));
    const std::int64_t count = std::min(panel_columns, of_.columns - first);
    const std::int64_t outer = of_.is_transposed ? count : of_.rows, inner = of_.is_transposed ? of_.rows : count;
    for (std::int64_t i = 0; i < outer; ++i)
      for (std::int64_t j = 0; j < inner; ++j) {
        const std::int64_t row = of_.is_transposed ? j : i, column = of_.is_transposed ? i : j;
        put(to + row * panel_.row_bytes, column, integers_[of_.at(row, first + column)]);
      }
    for (std::int64_t b = 0; b < of_.blocks(); ++b)
      for (std::int64_t c = 0; c < count; ++c) {
        const auto at = static_cast<std::size_t>(of_.scale_at(b, first + c));
        const auto place = static_cast<std::int64_t>(sizeof(float)) * (b * panel_columns + c);
        std::memcpy(to + panel_.scales + place, scales_ + at, sizeof(float));
        if (panel_.bytes == panel_.zeros) continue;
        const auto zero = static_cast<float>(zeros_.integer[at] + moved_);
        std::memcpy(to + panel_.zeros + place, &zero, sizeof zero);
      }
  }
  void put(std::byte* row, std::int64_t column, std::byte number) const {
    const auto moved = static_cast<std::byte>(static_cast<int>(number) + moved_);
    if (panel_.row_bytes == panel_columns) row[column] = moved;
    else if (column < panel_columns / 2) row[column] |= moved & std::byte{15};
    else row[column - panel_columns / 2] |= moved << 4;
  }

  weight_matrix of_;
  weight_panel panel_;
  const std::byte* integers_;
  const float* scales_ = nullptr;
  oracle_value zeros_;
  int moved_ = 0;
  int threads_;
};

/// The packed form's name: all that it depends on beside the integers.
inline std::string packing_of(const any_match& m, const build_context& context, const weight_matrix& of) {
  std::uint64_t key = 0;
  for (const std::optional<std::uint32_t> v : {std::optional(of.scales), of.zero_points})
    if (v)
      key = combine(key, hash(reinterpret_cast<const char*>(context.constant<std::byte>(*v)), m.type_of(*v).bytes()));
  return form_of_panels(of) + ", " + std::to_string(key);
}

inline kernel build_product_by_integers(const any_match& m, build_context& context) {
  const std::uint32_t product = product_in(m);
  weight_product p;
  p.weights = *weight_matrix_of(m.graph(), product);
  p.rows = rows_of_left(m.graph(), product);
  const panel_filler fill(m, context, p.weights);
  p.panel = fill.panel();
  p.zero = fill.zero();
  p.panels = context.packed(p.weights.integers, packing_of(m, context, p.weights),
                            static_cast<std::size_t>(p.panel.bytes * panels_of(p.weights)), fill);
  if (const std::optional<std::uint32_t> row = added_row(m))
    p.added.assign(context.constant<float>(*row), context.constant<float>(*row) + p.weights.columns);
  p.left = m.index_of(m.inputs_of(product)[0]);
  p.threads = context.threads();
  const std::size_t left = p.left;
  const std::string name = "product by " + std::string(name_of(p.weights.type)) +
                           (p.weights.block < p.weights.rows ? " in blocks of " + std::to_string(p.weights.block) : "");
  kernel made(name, [p = std::move(p)](const kernel_call& call) {
    const auto* const x = static_cast<const float*>(call.in[p.left]);
    auto* const y = static_cast<float*>(call.out[0]);
    const double cost = static_cast<double>(p.weights.rows * panel_columns * std::max<std::int64_t>(p.rows, 2)) / 4;
    parallel_parts(p.threads, panels_of(p.weights), 1, cost, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        if (p.is_small()) multiply_panel<true>(p, i, x, y);
        else multiply_panel<false>(p, i, x, y);
    });
  });
  for (std::size_t i = 0; i < m.arguments().size(); ++i)
    if (i != left) made.does_not_read(i);
  return made;
}

}  // namespace
}  // namespace collage::inline v0::detail::host
