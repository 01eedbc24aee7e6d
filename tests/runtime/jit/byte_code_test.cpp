// What generated kernels on bytes do to the processor's state, and which instructions they consist of.
#include "code_testing.hpp"
#include "testing.hpp"

#include "jit/byte_tile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace jit_byte_code_test {

using namespace collage_test;
using namespace collage_test::jit_testing;
using collage::dtype;

struct tile_case {
  jit::byte_tile_form form;
  jit::byte_tile tile;

  std::vector<std::uint8_t> code() const { return jit::generate_byte_tile(form, tile); }
  std::string text() const {
    return std::to_string(form.window_rows) + "x" + std::to_string(form.window_columns) + ", strides " +
           std::to_string(form.stride_rows) + " and " + std::to_string(form.stride_columns) + ", tile " +
           std::to_string(tile.rows) + "x" + std::to_string(tile.columns) + ", " + std::to_string(tile.channels) +
           " of " + std::to_string(tile.bytes) + " channels, pixels " + std::to_string(tile.first) + " to " +
           std::to_string(tile.last);
  }
};

constexpr int pixel_bytes = 128, row_bytes = 4096;

tile_case random_tile(random_numbers& random) {
  const auto number = [&](int least, int most) { return static_cast<int>(random.number(least, most)); };
  for (;;) {
    tile_case c;
    jit::byte_tile_form& f = c.form;
    f.window_rows = number(1, 5), f.window_columns = number(1, 7);
    f.stride_rows = number(1, 2), f.stride_columns = number(1, 3);
    f.dilation_rows = number(1, 2);
    f.pixel_bytes = pixel_bytes;
    f.to_pixel_bytes = 4 * pixel_bytes, f.to_row_bytes = row_bytes;
    f.source = random.chance(0.5) ? dtype::u8 : dtype::i8;
    f.result = random.chance(0.3) ? dtype::f32 : random.chance(0.5) ? dtype::u8 : dtype::i8;
    f.adds_zero = random.chance(0.5);
    f.has_least = random.chance(0.5), f.has_most = random.chance(0.5);
    f.may_overflow = random.chance(0.5);
    jit::byte_tile& t = c.tile;
    t.rows = number(1, jit::most_byte_rows), t.columns = number(1, jit::most_byte_columns);
    t.first = number(0, 2);
    t.last = std::max(t.first, f.input_columns(t.columns) - number(0, 2));
    t.bytes = 16 << number(0, 2);
    t.channels = random.chance(0.5) ? t.bytes : number(1, t.bytes);
    if (jit::byte_tile_registers(f, t.rows, t.columns) <= jit::registers_of(instruction_set::avx512)) return c;
  }
}

/// Memory for any of these kernels.
struct roomy_call {
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(1U << 18U, 1);
  std::vector<const std::uint8_t*> rows = std::vector<const std::uint8_t*>(64, memory.data());
  jit::byte_tile_call call;

  roomy_call() {
    call.rows = rows.data();
    call.pad = memory.data();
    call.weights = reinterpret_cast<const std::byte*>(memory.data());
    call.terms = reinterpret_cast<const std::byte*>(memory.data());
    call.to = reinterpret_cast<std::byte*>(memory.data() + (1U << 17U));
    call.count = 2;
    call.offset_step = call.to_step = 64;
  }
};

TEST(jit_byte_code, registers_and_flags_are_kept) {
  if (const std::string why = jit::refusal_of_bytes(); !why.empty()) GTEST_SKIP() << why;
  random_numbers random;
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    const tile_case c = random_tile(random);
    jit::code_arena arena;
    const std::size_t ticket = arena.add(c.code());
    ASSERT_EQ(arena.seal(), "");
    roomy_call with;
    expect_state_is_kept(arena.at(ticket), &with.call);
    EXPECT_FALSE(HasFailure()) << c.text() << ", COLLAGE_SEED=" << random.seed();
  }
}

const std::set<std::string> listed = {
    // numbers, addresses and masks
    "mov", "movabs", "add", "dec", "jne", "ret", "vzeroupper", "kmovq", "kmovw",
    // moves
    "vmovdqu8", "vmovdqu32", "vmovdqa32", "vmovups", "vpbroadcastd", "vextractf32x4",
    // pixels and products
    "vpunpcklbw", "vpunpckhbw", "vpunpcklwd", "vpunpckhwd", "vpxord", "vpdpbusd",
    // results
    "vcvtdq2ps", "vfmadd213ps", "vminps", "vmaxps", "vcvtps2dq", "vpackssdw", "vpaddsw", "vpacksswb", "vpackuswb",
    "vpmaxsb", "vpmaxub", "vpminsb", "vpminub"};
bool is_listed(const decoded& d) { return listed.contains(d.name); }

/// Code is generated on every processor, so that this needs none in particular.
TEST(jit_byte_code, every_byte_is_of_a_listed_instruction) {
  if (!can_disassemble()) GTEST_SKIP() << "objdump is not here: install binutils";
  random_numbers random;
  std::set<std::string> seen;
  for (int i = 0; i < 60; ++i) {
    const tile_case c = random_tile(random);
    check_instructions(c.code(), is_listed, [&](const decoded& d, std::uint8_t) {
      seen.insert(d.name);
      if (c.tile.bytes < 64) EXPECT_EQ(d.operands.find("zmm"), std::string::npos) << d.name << " " << d.operands;
      if (c.tile.bytes < 32) EXPECT_EQ(d.operands.find("ymm"), std::string::npos) << d.name << " " << d.operands;
    });
    ASSERT_FALSE(HasFailure()) << c.text() << ", COLLAGE_SEED=" << random.seed();
  }
  EXPECT_TRUE(seen.contains("vpdpbusd"));
  EXPECT_TRUE(seen.contains("kmovq"));
}

TEST(jit_byte_code, the_same_tile_gives_the_same_code) {
  random_numbers random;
  for (int i = 0; i < 20; ++i) {
    const tile_case c = random_tile(random);
    EXPECT_EQ(c.code(), c.code()) << c.text() << ", COLLAGE_SEED=" << random.seed();
  }
}

}  // namespace jit_byte_code_test
