// How the taps of a row of a window lie in groups of four bytes, for instructions that add four products at once.
//
// Four neighbouring pixels of one channel are one group. It serves every output whose window has one of them: the weights are
// shifted, and are 0 where a pixel is not in the window.
#pragma once

#include <cstdint>

namespace collage::inline v0::detail::jit {

/// For a row of `taps` weights and outputs `stride` pixels apart. Groups begin at multiples of `align` pixels.
struct byte_quads {
  int taps = 3, stride = 1, align = 2;

  constexpr byte_quads(int t, int s) : taps(t), stride(s), align(sum_of_groups(4) <= sum_of_groups(2) ? 4 : 2) {}

  /// The first pixel of an output's first group, and how far into that group its window begins.
  constexpr int begin(int output) const { return output * stride / align * align; }
  constexpr int shift(int output) const { return output * stride % align; }
  /// Groups of an output's row.
  constexpr int groups(int shift) const { return (taps + shift + 3) / 4; }

  constexpr bool has(int shift) const {
    for (int t = 0; t < align; ++t)
      if (t * stride % align == shift) return true;
    return false;
  }
  /// Groups of weights for all shifts that occur: the number of those before a shift's.
  constexpr int index(int shift) const {
    int sum = 0;
    for (int s = 0; s < shift; ++s) sum += has(s) ? groups(s) : 0;
    return sum;
  }
  constexpr int count() const { return index(align); }
  /// Which tap byte `byte` of a group of weights has; outside of [0, taps): none.
  static constexpr int tap(int shift, int group, int byte) { return 4 * group + byte - shift; }

 private:
  constexpr int sum_of_groups(int a) const {
    int sum = 0;
    for (int t = 0; t < 4; ++t) sum += (taps + t * stride % a + 3) / 4;
    return sum;
  }
};

}  // namespace collage::inline v0::detail::jit
