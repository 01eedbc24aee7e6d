// What generated code does to the processor's state, and which instructions it consists of.
#include "code_testing.hpp"
#include "testing.hpp"

#include "jit/generate.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace jit_code_test {

using namespace collage_test;
using namespace collage_test::jit_testing;

/// Kernels of both instruction sets that use all that can be generated.
std::vector<jit::tile_plan> all_sorts_of_plans(random_numbers& random, instruction_set set, int count) {
  std::vector<jit::tile_plan> list;
  while (std::ssize(list) < count) {
    const configuration how = random_configuration(random, set);
    std::vector<store_mode> modes(static_cast<std::size_t>(random.number(1, 4)));
    for (store_mode& m : modes) m = static_cast<store_mode>(random.number(0, 3));
    const epilogue finish =
        random.chance(0.7) ? random_epilogue(random, static_cast<int>(random.number(0, 8))) : epilogue{};
    jit::tile_plan plan = jit::make_plan(how, static_cast<int>(random.number(1, how.rows)),
                                         static_cast<int>(random.number(1, how.columns())), modes, finish);
    try {
      jit::generate(plan);
      list.push_back(std::move(plan));
    } catch (const collage::error&) {  // its epilogue needs more registers
    }
  }
  return list;
}

/// Memory for any of these kernels.
struct roomy_call {
  std::vector<float> memory = std::vector<float>(1U << 16U, 1.0F);
  jit::tile_call call;

  explicit roomy_call(const jit::tile_plan& plan) {
    constexpr std::int64_t step = 128 * sizeof(float);
    call.a = call.b = memory.data();
    call.depth = 11;
    call.a_step = call.to_step = step;
    call.constants = plan.constants.data();
    call.plan = &plan;
    for (float*& x : call.to) x = memory.data() + (1U << 15U);
    for (const float*& x : call.operand) x = memory.data();
    for (float*& x : call.output) x = memory.data() + (1U << 15U);
    for (std::int64_t& x : call.operand_step) x = step;
    for (std::int64_t& x : call.output_step) x = step;
  }
};

TEST(jit_code, registers_and_flags_are_kept) {
  random_numbers random;
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
    if (!jit::refusal_of(set).empty()) continue;
    for (const jit::tile_plan& plan : all_sorts_of_plans(random, set, 100)) {
      jit::code_arena arena;
      const std::size_t ticket = arena.add(jit::generate(plan));
      ASSERT_EQ(arena.seal(), "");
      roomy_call with(plan);
      expect_state_is_kept(arena.at(ticket), &with.call);
    }
  }
}

// Disassembly -----------------------------------------------------------------------------------------------------------

const std::set<std::string> listed = {
    "mov",     "lea",        "add",    "sub",       "dec",         "test",         "jl",          "jge",
    "je",      "jne",        "push",   "pop",       "ret",         "vzeroupper",   "prefetcht0",  "vmovups",
    "vmovaps", "vmaskmovps", "kmovw",  "vxorps",    "vpxord",      "vbroadcastss", "vfmadd231ps", "vfmadd213ps",
    "vaddps",  "vsubps",     "vmulps", "vdivps",    "vminps",      "vmaxps",       "vsqrtps",     "vorps",
    "vpord",   "vandps",     "vpandd", "vscalefps", "vrndscaleps", "vroundps",     "vblendmps",   "vblendvps",
    "vpsrad",  "vpslld",     "vpsubd", "vpaddd",    "vcvtps2dq"};
bool is_listed(const decoded& d) {
  return listed.contains(d.name) || (d.name.starts_with("vcmp") && d.name.ends_with("ps"));
}

void check_code(const jit::tile_plan& plan) {
  check_instructions(jit::generate(plan), is_listed, [&](const decoded& d, std::uint8_t first) {
    if (plan.how.set != instruction_set::avx2) return;
    EXPECT_EQ(d.operands.find("zmm"), std::string::npos) << d.name << " " << d.operands;
    EXPECT_EQ(d.operands.find('{'), std::string::npos) << d.name << " " << d.operands;
    EXPECT_NE(first, 0x62) << d.name << " " << d.operands << " is of AVX-512";
  });
}

TEST(jit_code, every_byte_is_of_a_listed_instruction) {
  if (!can_disassemble()) GTEST_SKIP() << "objdump is not here: install binutils";
  random_numbers random;
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
    check_code(jit::make_plan(jit::default_configuration(set), jit::default_configuration(set).rows, 3,
                              std::vector{store_mode::add}));
    for (const jit::tile_plan& plan : all_sorts_of_plans(random, set, 25)) {
      check_code(plan);
      ASSERT_FALSE(HasFailure()) << jit::to_text(plan.how) << ", " << plan.rows << "x" << plan.columns
                                 << ", COLLAGE_SEED=" << random.seed();
    }
  }
}

/// The check above sees what it is to see.
TEST(jit_code, the_disassembly_sees_faults) {
  if (!can_disassemble()) GTEST_SKIP() << "objdump is not here: install binutils";
  const std::vector<decoded> bad = disassemble({0x06, 0xC3});  // no instruction in 64 bits
  ASSERT_EQ(bad.size(), 2U);
  EXPECT_FALSE(is_listed(bad[0]));
  EXPECT_EQ(registers_of_memory("zmm1,DWORDPTR[rsi+rcx*2+0x40]{1to16}"), (std::vector<std::string>{"rsi", "rcx"}));
  EXPECT_EQ(registers_of_memory("rax,[rip+0x10]"), (std::vector<std::string>{"rip"}));
}

TEST(jit_code, the_same_plan_gives_the_same_code) {
  random_numbers random;
  for (const jit::tile_plan& plan : all_sorts_of_plans(random, instruction_set::avx512, 20))
    EXPECT_EQ(jit::generate(plan), jit::generate(plan));
}

}  // namespace jit_code_test
