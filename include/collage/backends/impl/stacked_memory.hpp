// Reading, writing and transposing tiles, for the target that hwy/foreach_target.h has chosen: included once for each.
#if defined(COLLAGE_STACKED_MEMORY) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_STACKED_MEMORY
#undef COLLAGE_STACKED_MEMORY
#else
#define COLLAGE_STACKED_MEMORY
#endif

#include <hwy/highway.h>
#include <collage/backends/impl/stacked_math.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::host {
namespace {
namespace HWY_NAMESPACE {

inline constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(tag));

HWY_INLINE vector load(const float* from) { return hn::LoadU(tag, from); }
HWY_INLINE void store(vector x, float* to) { hn::StoreU(x, tag, to); }

/// Loads the first `count` elements of a vector, fewer than it has. Memory after them is not read.
HWY_INLINE vector load_some(const float* from, std::int64_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(tag, static_cast<std::size_t>(count)), tag, from);
#else  // elsewhere a masked reading may touch what is masked out
  HWY_ALIGN float list[hn::MaxLanes(tag)] = {};
  for (std::int64_t i = 0; i < count; ++i) list[i] = from[i];
  return hn::Load(tag, list);
#endif
}
HWY_INLINE void store_some(vector x, float* to, std::int64_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(x, hn::FirstN(tag, static_cast<std::size_t>(count)), tag, to);
#else
  HWY_ALIGN float list[hn::MaxLanes(tag)];
  hn::Store(x, tag, list);
  for (std::int64_t i = 0; i < count; ++i) to[i] = list[i];
#endif
}

/// Pairs, triples or quadruples that are pulled apart, or, with `Puts`, put together: transposing where one side is short.
template <int Count, bool Puts>
std::int64_t interleave(const tile_call& t) {
  [[maybe_unused]] const std::int64_t length = Puts ? t.rows : t.columns;
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; i + lanes <= length; i += lanes) {
    vector x[4] = {hn::Zero(tag), hn::Zero(tag), hn::Zero(tag), hn::Zero(tag)};
    if constexpr (Puts) {
      for (int k = 0; k < Count; ++k) x[k] = load(t.a + k * t.a_step + i);
      float* const y = t.y + Count * i;
      if constexpr (Count == 2) hn::StoreInterleaved2(x[0], x[1], tag, y);
      else if constexpr (Count == 3) hn::StoreInterleaved3(x[0], x[1], x[2], tag, y);
      else hn::StoreInterleaved4(x[0], x[1], x[2], x[3], tag, y);
    } else {
      const float* const a = t.a + Count * i;
      if constexpr (Count == 2) hn::LoadInterleaved2(tag, a, x[0], x[1]);
      else if constexpr (Count == 3) hn::LoadInterleaved3(tag, a, x[0], x[1], x[2]);
      else hn::LoadInterleaved4(tag, a, x[0], x[1], x[2], x[3]);
      for (int k = 0; k < Count; ++k) store(x[k], t.y + k * t.y_step + i);
    }
  }
#endif
  return i;
}
/// How many columns, or rows, it has done.
template <bool Puts>
std::int64_t interleave_some(const tile_call& t) {
  switch (Puts ? t.columns : t.rows) {
    case 2: return interleave<2, Puts>(t);
    case 3: return interleave<3, Puts>(t);
    case 4: return interleave<4, Puts>(t);
    default: return 0;
  }
}

/// Squares of four by four in registers, the rest one by one.
inline void transpose(const tile_call& whole) {
  tile_call t = whole;
  std::int64_t r = 0;
  if (t.a_step == t.rows) {
    const std::int64_t done = interleave_some<false>(t);
    t.a += done * t.a_step;
    t.y += done;
    t.columns -= done;
  } else if (t.y_step == t.columns) {
    r = interleave_some<true>(t);
  }
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> four;
  const hn::RepartitionToWide<decltype(four)> two;
  const auto pairs = [&](auto x) HWY_ATTR { return hn::BitCast(two, x); };
  for (; r + 4 <= t.rows; r += 4) {
    float* const y = t.y + r * t.y_step;
    std::int64_t c = 0;
    for (; c + 4 <= t.columns; c += 4) {
      const float* const a = t.a + c * t.a_step + r;
      const auto a0 = hn::LoadU(four, a), a1 = hn::LoadU(four, a + t.a_step);
      const auto a2 = hn::LoadU(four, a + 2 * t.a_step), a3 = hn::LoadU(four, a + 3 * t.a_step);
      const auto low01 = pairs(hn::InterleaveLower(four, a0, a1)), low23 = pairs(hn::InterleaveLower(four, a2, a3));
      const auto high01 = pairs(hn::InterleaveUpper(four, a0, a1)), high23 = pairs(hn::InterleaveUpper(four, a2, a3));
      hn::StoreU(hn::BitCast(four, hn::InterleaveLower(two, low01, low23)), four, y + c);
      hn::StoreU(hn::BitCast(four, hn::InterleaveUpper(two, low01, low23)), four, y + t.y_step + c);
      hn::StoreU(hn::BitCast(four, hn::InterleaveLower(two, high01, high23)), four, y + 2 * t.y_step + c);
      hn::StoreU(hn::BitCast(four, hn::InterleaveUpper(two, high01, high23)), four, y + 3 * t.y_step + c);
    }
    for (; c < t.columns; ++c)
      for (std::int64_t i = 0; i < 4; ++i) y[i * t.y_step + c] = t.a[c * t.a_step + r + i];
  }
#endif
  for (; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.columns; ++c) t.y[r * t.y_step + c] = t.a[c * t.a_step + r];
}

// Booleans are bytes in memory, the numbers 0 and 1 in a tile.

inline constexpr hn::Rebind<std::uint8_t, vector_tag> byte_tag{};
inline constexpr hn::Rebind<std::int32_t, vector_tag> integer_tag{};

inline void load_bytes(const tile_call& t) {
  const auto one = hn::Set(byte_tag, std::uint8_t{1});
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const std::uint8_t* const a = t.a_bytes + r * t.a_step;
    float* const y = t.y + r * t.y_step;
    std::int64_t i = 0;
    for (; i + lanes <= t.columns; i += lanes) {
      const auto bytes = hn::Min(hn::LoadU(byte_tag, a + i), one);
      store(hn::ConvertTo(tag, hn::PromoteTo(integer_tag, bytes)), y + i);
    }
    for (; i < t.columns; ++i) y[i] = a[i] != 0 ? 1.0F : 0.0F;
  }
}
inline void store_bytes(const tile_call& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const float* const a = t.a + r * t.a_step;
    std::uint8_t* const y = t.y_bytes + r * t.y_step;
    std::int64_t i = 0;
    for (; i + lanes <= t.columns; i += lanes)
      hn::StoreU(hn::DemoteTo(byte_tag, hn::ConvertTo(integer_tag, load(a + i))), byte_tag, y + i);
    for (; i < t.columns; ++i) y[i] = a[i] != 0 ? 1 : 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::host
HWY_AFTER_NAMESPACE();

#endif
