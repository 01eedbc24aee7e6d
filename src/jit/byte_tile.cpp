#include "byte_tile.hpp"

#include "code_totals.hpp"

#include <collage/error.hpp>

#include <xbyak/xbyak.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

namespace collage::inline v0::detail::jit {
namespace {

constexpr std::size_t most_code = std::size_t{256} << 10;

class byte_tile_emitter : Xbyak::CodeGenerator {
 public:
  byte_tile_emitter(const byte_tile_form& form, const byte_tile& tile, std::uint8_t* room)
      : CodeGenerator(most_code, room), form_(form), tile_(tile), quads_(form.quads()) {
    for (int begin = 0; begin < form_.input_columns(tile_.columns); begin += quads_.align)
      if (is_used(begin)) groups_.push_back(begin);
  }

  std::size_t emit() {
    mov(rows_, field(offsetof(byte_tile_call, rows)));
    mov(pad_, field(offsetof(byte_tile_call, pad)));
    mov(offset_, field(offsetof(byte_tile_call, offset)));
    mov(weights_, field(offsetof(byte_tile_call, weights)));
    mov(terms_, field(offsetof(byte_tile_call, terms)));
    mov(to_, field(offsetof(byte_tile_call, to)));
    mov(count_, field(offsetof(byte_tile_call, count)));
    make_masks();
    Xbyak::Label next;
    align(32);
    L(next);
    for (const int half : {1, 0}) {
      start(half);
      for (int i = 0; i < form_.input_rows(tile_.rows); ++i) row(half, i);
      finish(half);
    }
    add(offset_, field(offsetof(byte_tile_call, offset_step)));
    add(weights_, field(offsetof(byte_tile_call, weights_step)));
    add(terms_, field(offsetof(byte_tile_call, terms_step)));
    add(to_, field(offsetof(byte_tile_call, to_step)));
    dec(count_);
    jnz(next, T_NEAR);
    vzeroupper();
    ret();
    return getSize();
  }

 private:
  const Xbyak::Reg64 &rows_ = rax, &offset_ = rcx, &weights_ = rdx, &terms_ = rsi, &to_ = r8, &pad_ = r9, &row_ = r10,
                     &count_ = r11;
  static constexpr std::size_t constants_at = offsetof(byte_tile_call, constants);
  static constexpr int bytes_mask = 1, floats_mask = 2;  ///< k1 and k2

  Xbyak::Address field(std::size_t at) const { return ptr[rdi + static_cast<int>(at)]; }
  /// One of the constants, for every lane.
  Xbyak::Address repeated(std::size_t at) const { return ptr_b[rdi + static_cast<int>(constants_at + at)]; }
  Xbyak::Xmm vec(int i) const {
    if (tile_.bytes == 64) return Xbyak::Zmm(i);
    return tile_.bytes == 32 ? Xbyak::Xmm(Xbyak::Operand::YMM, i) : Xbyak::Xmm(i);
  }
  bool is_partial() const { return tile_.channels < tile_.bytes; }
  int outputs() const { return tile_.rows * tile_.columns; }
  static constexpr int temporary(int i) { return i; }  // registers 0 to 3
  int sum(int row, int column, int quarter) const { return 31 - 2 * (row * tile_.columns + column) - quarter; }
  int group(std::size_t i, int quarter) const { return 31 - 2 * outputs() - 2 * static_cast<int>(i) - quarter; }

  /// Whether some output reads the group of pixels that begins there.
  bool is_used(int begin) const {
    for (int t = 0; t < tile_.columns; ++t)
      for (int g = 0; g < quads_.groups(quads_.shift(t)); ++g)
        if (quads_.begin(t) + 4 * g == begin) return true;
    return false;
  }

  void make_masks() {
    if (!is_partial()) return;
    mov(row_, (std::uint64_t{1} << static_cast<unsigned>(tile_.channels)) - 1);
    kmovq(Xbyak::Opmask(bytes_mask), row_);
    if (tile_.channels % 4 == 0) return;
    mov(row_.cvt32(), (1U << static_cast<unsigned>(tile_.channels % 4)) - 1);
    kmovw(Xbyak::Opmask(floats_mask), row_.cvt32());
  }

  void start(int half) {
    for (int q = 0; q < 2; ++q) {
      vmovdqu32(vec(sum(0, 0, q)), term(half, 0, q));
      for (int i = 1; i < outputs(); ++i)
        vmovdqa32(vec(sum(i / tile_.columns, i % tile_.columns, q)), vec(sum(0, 0, q)));
    }
  }
  /// The starts of sums, the factors or the offsets of a quarter.
  Xbyak::Address term(int half, int which, int quarter) const {
    return ptr[terms_ + ((half * 3 + which) * 2 + quarter) * tile_.bytes];
  }
  Xbyak::Address weight(int half, int tap_row, int index, int quarter) const {
    return ptr[weights_ +
               (((half * form_.window_rows + tap_row) * quads_.count() + index) * 2 + quarter) * tile_.bytes];
  }

  // Pixels ------------------------------------------------------------------------------------------------------------

  Xbyak::Address pixel(int column) const {
    if (column < tile_.first || column >= tile_.last) return ptr[pad_];
    return ptr[row_ + static_cast<int>(column * form_.pixel_bytes)];
  }
  /// The bytes of two neighbours side by side. Pixels beyond the tile's have no weights, and are not read.
  void pair(int half, int to, int column) {
    const int columns = form_.input_columns(tile_.columns);
    const auto unpack = [&](const Xbyak::Operand& other) {
      if (half == 0) vpunpcklbw(vec(to), vec(to), other);
      else vpunpckhbw(vec(to), vec(to), other);
    };
    load(to, column);
    if (column + 1 >= columns) {
      unpack(vec(to));
    } else if (is_partial()) {
      load(temporary(2), column + 1);
      unpack(vec(temporary(2)));
    } else {
      unpack(pixel(column + 1));
    }
    if (form_.source == dtype::i8) vpxord(vec(to), vec(to), repeated(offsetof(byte_tile_constants, flip)));
  }
  void load(int to, int column) {
    if (is_partial()) vmovdqu8(vec(to) | Xbyak::Opmask(bytes_mask) | T_z, pixel(column));
    else vmovdqu8(vec(to), pixel(column));
  }
  /// All groups of a row of the input.
  void interleave(int half) {
    const int columns = form_.input_columns(tile_.columns);
    int held = -1, turn = 0;  // a pair that the next group may begin with, and the register for the next pair
    const auto pair_at = [&](int column) {
      const int to = temporary(turn);
      turn = 1 - turn;
      pair(half, to, column);
      return to;
    };
    int held_register = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const int first = held == groups_[i] ? held_register : pair_at(groups_[i]);
      const bool has_second = groups_[i] + 2 < columns;
      const int second = has_second ? pair_at(groups_[i] + 2) : first;
      vpunpcklwd(vec(group(i, 0)), vec(first), vec(second));
      vpunpckhwd(vec(group(i, 1)), vec(first), vec(second));
      held = has_second ? groups_[i] + 2 : -1;
      held_register = second;
    }
  }

  // Products ----------------------------------------------------------------------------------------------------------

  /// One row of the input, for all rows of outputs that read it.
  void row(int half, int input_row) {
    bool is_read = false;
    for (int r = 0; r < tile_.rows; ++r) is_read = is_read || tap_row(input_row, r) >= 0;
    if (!is_read) return;
    mov(row_, ptr[rows_ + 8 * input_row]);
    add(row_, offset_);
    interleave(half);
    for (int r = 0; r < tile_.rows; ++r)
      if (const int tap = tap_row(input_row, r); tap >= 0) multiply(half, r, tap);
  }
  /// -1: none.
  int tap_row(int input_row, int row) const {
    const int at = input_row - row * form_.stride_rows;
    return at >= 0 && at % form_.dilation_rows == 0 && at / form_.dilation_rows < form_.window_rows
               ? at / form_.dilation_rows
               : -1;
  }
  void multiply(int half, int row, int tap) {
    int turn = 0;
    for (int shift = 0; shift < quads_.align; ++shift) {
      if (!quads_.has(shift)) continue;
      for (int g = 0; g < quads_.groups(shift); ++g)
        for (int q = 0; q < 2; ++q) {
          std::vector<int> columns;
          for (int t = 0; t < tile_.columns; ++t)
            if (quads_.shift(t) == shift) columns.push_back(t);
          const Xbyak::Address from = weight(half, tap, quads_.index(shift) + g, q);
          const int held = temporary(turn);
          turn = (turn + 1) % 4;
          if (columns.size() > 1) vmovdqu32(vec(held), from);
          for (const int t : columns) {
            const auto at = std::ranges::find(groups_, quads_.begin(t) + 4 * g) - groups_.begin();
            const Xbyak::Xmm pixels = vec(group(static_cast<std::size_t>(at), q));
            if (columns.size() > 1) vpdpbusd(vec(sum(row, t, q)), pixels, vec(held));
            else vpdpbusd(vec(sum(row, t, q)), pixels, from);
          }
        }
    }
  }

  // Results -----------------------------------------------------------------------------------------------------------

  /// Registers that groups of pixels had. There are at least three, because a tile with one group has few sums.
  int free_register(int i = 0) const { return 31 - 2 * outputs() - i; }
  int zero_point() const { return free_register(0); }
  int least() const { return free_register(1); }
  int most() const { return free_register(2); }

  void finish(int half) {
    for (int q = 0; q < 2; ++q) {
      vmovups(vec(temporary(q)), term(half, 1, q));
      vmovups(vec(temporary(2 + q)), term(half, 2, q));
    }
    const bool is_float = form_.result == dtype::f32;
    if (!is_float && form_.adds_zero)
      vpbroadcastd(vec(zero_point()), field(constants_at + offsetof(byte_tile_constants, zero)));
    if (!is_float && half == 0) {
      if (form_.has_least) vpbroadcastd(vec(least()), field(constants_at + offsetof(byte_tile_constants, least_byte)));
      if (form_.has_most) vpbroadcastd(vec(most()), field(constants_at + offsetof(byte_tile_constants, most_byte)));
    }
    for (int r = 0; r < tile_.rows; ++r)
      for (int t = 0; t < tile_.columns; ++t) {
        for (int q = 0; q < 2; ++q) {
          const Xbyak::Xmm y = vec(sum(r, t, q));
          vcvtdq2ps(y, y);
          vfmadd213ps(y, vec(temporary(q)), vec(temporary(2 + q)));
        }
        if (is_float) store_floats(half, r, t);
        else round(half, r, t);
      }
  }
  Xbyak::Address result(int row, int column, std::int64_t more) const {
    return ptr[to_ + static_cast<int>(row * form_.to_row_bytes + column * form_.to_pixel_bytes + more)];
  }
  void round(int half, int row, int column) {
    const Xbyak::Xmm y = vec(sum(row, column, 0)), other = vec(sum(row, column, 1));
    for (const Xbyak::Xmm& v : {y, other}) {
      // Numbers that are too large would become the smallest integer, as those that are too small do.
      if (form_.may_overflow) vminps(v, v, repeated(offsetof(byte_tile_constants, highest)));
      vcvtps2dq(v, v);
    }
    vpackssdw(y, y, other);
    if (form_.adds_zero) vpaddsw(y, y, vec(zero_point()));
    const Xbyak::Address kept =
        field(offsetof(byte_tile_call, scratch) + 64 * static_cast<std::size_t>(row * tile_.columns + column));
    if (half == 1) return vmovdqu8(kept, y);
    const bool is_signed = form_.result == dtype::i8;
    if (is_signed) vpacksswb(y, y, kept);
    else vpackuswb(y, y, kept);
    if (form_.has_least) {
      if (is_signed) vpmaxsb(y, y, vec(least()));
      else vpmaxub(y, y, vec(least()));
    }
    if (form_.has_most) {
      if (is_signed) vpminsb(y, y, vec(most()));
      else vpminub(y, y, vec(most()));
    }
    if (is_partial()) vmovdqu8(result(row, column, 0) | Xbyak::Opmask(bytes_mask), y);
    else vmovdqu8(result(row, column, 0), y);
  }
  /// Four channels of each 16 at a time.
  void store_floats(int half, int row, int column) {
    for (int q = 0; q < 2; ++q) {
      const int from = sum(row, column, q);
      if (form_.has_least) vmaxps(vec(from), vec(from), repeated(offsetof(byte_tile_constants, least)));
      if (form_.has_most) vminps(vec(from), vec(from), repeated(offsetof(byte_tile_constants, most)));
      for (int lane = 0; lane < tile_.bytes / 16; ++lane) {
        const int channel = byte_channel(2 * half + q, 4 * lane), count = std::min(tile_.channels - channel, 4);
        if (count <= 0) break;
        const Xbyak::Address at = result(row, column, 4 * channel);
        const Xbyak::Xmm four(lane == 0 ? from : free_register());
        if (lane > 0) {
          if (tile_.bytes == 64) vextractf32x4(four, Xbyak::Zmm(from), static_cast<std::uint8_t>(lane));
          else vextractf32x4(four, Xbyak::Ymm(from), static_cast<std::uint8_t>(lane));
        }
        if (count < 4) vmovups(at | Xbyak::Opmask(floats_mask), four);
        else vmovups(at, four);
      }
    }
  }

  const byte_tile_form& form_;
  const byte_tile& tile_;
  const byte_quads quads_;
  std::vector<int> groups_;  ///< the pixels that they begin with
};

}  // namespace

void pack_byte_weights(const byte_tile_form& form, const std::int8_t* weights, std::int64_t first, int channels,
                       int bytes, std::byte* to) {
  const byte_quads quads = form.quads();
  auto* at = reinterpret_cast<std::int8_t*>(to);
  for (int half = 0; half < 2; ++half)
    for (int row = 0; row < form.window_rows; ++row)
      for (int shift = 0; shift < quads.align; ++shift)
        for (int group = 0; quads.has(shift) && group < quads.groups(shift); ++group)
          for (int quarter = 2 * half; quarter < 2 * half + 2; ++quarter)
            for (int i = 0; i < bytes; ++i) {
              const int channel = byte_channel(quarter, i / 4), tap = byte_quads::tap(shift, group, i % 4);
              const bool is_there = channel < channels && tap >= 0 && tap < form.window_columns;
              *at++ = is_there ? weights[((first + channel) * form.window_rows + row) * form.window_columns + tap]
                               : std::int8_t{0};
            }
}

void pack_byte_terms(const std::int32_t* starts, const float* factors, const float* offsets, int channels, int bytes,
                     std::byte* to) {
  const auto put = [&](const auto* list, int half) {
    for (int quarter = 2 * half; quarter < 2 * half + 2; ++quarter)
      for (int lane = 0; lane < bytes / 4; ++lane, to += 4) {
        const int channel = byte_channel(quarter, lane);
        if (channel < channels) std::memcpy(to, list + channel, 4);
        else std::memset(to, 0, 4);
      }
  };
  for (int half = 0; half < 2; ++half) {
    put(starts, half);
    put(factors, half);
    put(offsets, half);
  }
}

std::vector<std::uint8_t> generate_byte_tile(const byte_tile_form& form, const byte_tile& tile) {
  struct alignas(64) block {
    std::uint8_t bytes[most_code];
  };
  const std::unique_ptr<block> room(new block);  // not zeroed
  code_timer timer;
  try {
    byte_tile_emitter emitter(form, tile, room->bytes);
    const std::size_t size = emitter.emit();
    timer.made_kernel(size);
    return {room->bytes, room->bytes + size};
  } catch (const Xbyak::Error& fault) {
    if (static_cast<int>(fault) == Xbyak::ERR_CODE_IS_TOO_BIG)
      throw error(error_kind::unsupported, "a kernel for a window of bytes has more than 256 KiB of code", "jit",
                  "choose a smaller tile");
    throw error(error_kind::failure, "Xbyak could not encode a depthwise kernel of bytes: " + std::string(fault.what()),
                "jit");
  }
}

}  // namespace collage::inline v0::detail::jit
