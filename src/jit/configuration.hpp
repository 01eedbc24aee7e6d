// Configurations of generated kernels, as values and as texts. A configuration changes how fast a kernel is, and its
// results by rounding at most.
//
// The text is canonical: equal configurations have equal texts, so that a text can be a key. It begins with the version
// of the generator, as in "jit1 avx512 tile 14x2 unroll 4 prefetch 8 broadcast memory".
#pragma once

#include "instruction_set.hpp"

#include <collage/detail/sentence.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace collage::inline v0::detail::jit {

/// Raised with every change after which an old text would mean another kernel.
inline constexpr int generator_version = 1;

/// How an element of A reaches all lanes of a vector.
enum class broadcast_from : std::uint8_t {
  memory,          ///< each multiply-add reads the element from memory and repeats it; AVX-512 only
  vector_register  ///< one load repeats it in a register, which all vectors of the row read
};

struct configuration {
  instruction_set set = instruction_set::avx512;
  int rows = 14;     ///< of the register tile
  int vectors = 2;   ///< of one row of the register tile
  int unroll = 4;    ///< steps over k in one round of the loop
  int prefetch = 0;  ///< how many steps ahead B is prefetched; 0: it is not
  broadcast_from broadcast = broadcast_from::memory;

  constexpr int lanes() const { return lanes_of(set); }
  /// Columns of the register tile.
  constexpr int columns() const { return vectors * lanes(); }
  constexpr int accumulators() const { return rows * vectors; }
  /// Vector registers that the loop over k uses at least.
  constexpr int registers() const {
    return accumulators() + vectors + (broadcast == broadcast_from::vector_register ? 1 : 0);
  }
  /// The largest size of one round of the loop over k, in bytes.
  constexpr int loop_bytes() const {
    constexpr int longest = 11;  // of an instruction here: prefixes, opcode, address with 32 bits
    const int loads =
        vectors + (broadcast == broadcast_from::vector_register ? rows : 0) + (prefetch > 0 ? vectors : 0);
    return unroll * (loads + accumulators()) * longest + 128;
  }
  friend constexpr bool operator==(const configuration&, const configuration&) = default;
};

/// Bounds of the parameters.
inline constexpr int most_rows = 30, most_vectors = 6, most_unroll = 64, most_prefetch = 512;
/// The loop over k must stay in the first-level cache of instructions, which has 32 KiB on all these processors.
inline constexpr int most_loop_bytes = 24 * 1024;

/// Why no kernel can be generated, in one sentence; empty if one can.
constexpr sentence fault_of(const configuration& c) {
  sentence why;
  const auto is_outside = [&](const char* what, int value, int least, int most) {
    if (value >= least && value <= most) return false;
    why << what << " is " << value << ", and must be from " << least << " to " << most;
    return true;
  };
  if (is_outside("the number of rows of a tile", c.rows, 1, most_rows) ||
      is_outside("the number of vectors of a tile's row", c.vectors, 1, most_vectors) ||
      is_outside("the unrolling", c.unroll, 1, most_unroll) ||
      is_outside("the prefetch distance", c.prefetch, 0, most_prefetch))
    return why;
  if (c.set == instruction_set::avx2 && c.broadcast == broadcast_from::memory)
    why << "avx2 cannot broadcast from memory within a multiply-add: choose broadcast register";
  else if (c.registers() > registers_of(c.set))
    why << "a tile of " << c.rows << "x" << c.vectors << " vectors needs " << c.registers() << " vector registers, and "
        << name_of(c.set) << " has " << registers_of(c.set);
  else if (c.loop_bytes() > most_loop_bytes)
    why << "one round of the loop may take " << c.loop_bytes() << " bytes of code, and at most " << most_loop_bytes
        << " fit beside others in the first-level cache: unroll less";
  return why;
}

/// Floats of a packed B with k rows and n columns: panels of `columns()`, the last one filled up to whole vectors.
constexpr std::int64_t packed_floats(const configuration& c, std::int64_t k, std::int64_t n) {
  const std::int64_t rest = n % c.columns();
  return k * (n - rest + (rest + c.lanes() - 1) / c.lanes() * c.lanes());
}
/// Where the element at row i and column j of such a B lies.
constexpr std::int64_t packed_place(const configuration& c, std::int64_t k, std::int64_t n, std::int64_t i,
                                    std::int64_t j) {
  const std::int64_t first = j / c.columns() * c.columns();
  const std::int64_t columns = n - first < c.columns() ? n - first : c.columns();
  return first * k + i * ((columns + c.lanes() - 1) / c.lanes() * c.lanes()) + j - first;
}

/// A good start for each instruction set.
constexpr configuration default_configuration(instruction_set set) {
  configuration c;
  c.set = set;
  if (set == instruction_set::avx2) {
    c.rows = 6;
    c.broadcast = broadcast_from::vector_register;
  }
  return c;
}
static_assert(fault_of(default_configuration(instruction_set::avx512)).empty());
static_assert(fault_of(default_configuration(instruction_set::avx2)).empty());

/// The canonical text.
std::string to_text(const configuration& c);

/// The same without the version, as a part of other texts.
std::string words_of(const configuration& c);

class word_reader;
/// Reads what `words_of` writes. Error (invalid_argument): it is not such a text, or `fault_of` has a reason.
configuration read_words(word_reader& read);

/// Reads a canonical text. Error (invalid_argument): it is not one, or `fault_of` has a reason.
configuration parse_configuration(std::string_view text);

}  // namespace collage::inline v0::detail::jit
