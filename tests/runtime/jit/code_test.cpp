// What generated code does to the processor's state, and which instructions it consists of.
#include "testing.hpp"

#include "jit/generate.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

// Calls a kernel with known values in all registers that a callee saves, and stores what they hold afterwards: rbx, rbp,
// r12 to r15, then the flags.
asm(R"(
.text
.intel_syntax noprefix
.globl collage_test_call_kernel
collage_test_call_kernel:
  push rbx
  push rbp
  push r12
  push r13
  push r14
  push r15
  push rdx
  mov rax, rdi
  mov rdi, rsi
  mov rbx, 0x11
  mov rbp, 0x22
  mov r12, 0x33
  mov r13, 0x44
  mov r14, 0x55
  mov r15, 0x66
  call rax
  pop rdx
  mov [rdx], rbx
  mov [rdx + 8], rbp
  mov [rdx + 16], r12
  mov [rdx + 24], r13
  mov [rdx + 32], r14
  mov [rdx + 40], r15
  pushfq
  pop rax
  mov [rdx + 48], rax
  pop r15
  pop r14
  pop r13
  pop r12
  pop rbp
  pop rbx
  ret
.att_syntax
)");
extern "C" void collage_test_call_kernel(collage::detail::jit::tile_function kernel,
                                         const collage::detail::jit::tile_call* call, std::uint64_t* state);

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
      std::array<std::uint64_t, 7> state{};
      // Rounding toward zero, flush-to-zero and denormals-are-zero, all traps masked: nothing that a kernel would set.
      constexpr unsigned sticky = 0x3F, unusual = 0xFFC0;
      const unsigned before = _mm_getcsr();
      _mm_setcsr(unusual);
      collage_test_call_kernel(arena.function<jit::tile_function>(ticket), &with.call, state.data());
      const unsigned after = _mm_getcsr();
      _mm_setcsr(before);
      EXPECT_EQ(after & ~sticky, unusual);
      for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(state[i], 0x11 * (i + 1)) << "register " << i;
      constexpr std::uint64_t direction = 1U << 10U;
      EXPECT_EQ(state[6] & direction, 0U);
    }
  }
}

// Disassembly -----------------------------------------------------------------------------------------------------------

struct decoded {
  std::size_t address = 0, bytes = 0;
  std::string name, operands;
};

/// The instructions that objdump sees in some code; none if there is no objdump.
std::vector<decoded> disassemble(const std::vector<std::uint8_t>& code) {
  std::string file = testing::TempDir() + "collage_jit_XXXXXX";
  const int descriptor = mkstemp(file.data());
  if (descriptor < 0) return {};
  const auto size = static_cast<ssize_t>(code.size());
  EXPECT_EQ(write(descriptor, code.data(), code.size()), size);
  close(descriptor);
  const std::string command = "objdump -D -w -b binary -m i386:x86-64 -M intel '" + file + "' 2>/dev/null";
  std::vector<decoded> list;
  if (FILE* const pipe = popen(command.c_str(), "r"); pipe != nullptr) {
    std::array<char, 512> line{};
    while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
      // "   1f:\t62 f2 75 48 b8 c2    \tvfmadd231ps zmm0,zmm1,zmm2"
      std::istringstream parts(line.data());
      std::string address, bytes, text;
      if (!std::getline(parts, address, '\t') || !std::getline(parts, bytes, '\t') ||
          address.find(':') == std::string::npos)
        continue;
      std::getline(parts, text);
      decoded made;
      made.address = std::stoul(address, nullptr, 16);
      std::istringstream pairs(bytes);
      for (std::string pair; pairs >> pair;) ++made.bytes;
      std::istringstream words(text);
      words >> made.name;
      for (std::string word; words >> word && word != "#";) made.operands += word;
      list.push_back(made);
    }
    pclose(pipe);
  }
  std::remove(file.c_str());
  return list;
}

const std::set<std::string> listed = {
    "mov",         "lea",     "add",        "sub",    "dec",       "test",        "jl",           "jge",
    "je",          "jne",     "push",       "pop",    "ret",       "nop",         "vzeroupper",   "prefetcht0",
    "vmovups",     "vmovaps", "vmaskmovps", "kmovw",  "vxorps",    "vpxord",      "vbroadcastss", "vfmadd231ps",
    "vfmadd213ps", "vaddps",  "vsubps",     "vmulps", "vdivps",    "vminps",      "vmaxps",       "vsqrtps",
    "vorps",       "vpord",   "vandps",     "vpandd", "vscalefps", "vrndscaleps", "vroundps",     "vblendmps",
    "vblendvps",   "vpsrad",  "vpslld",     "vpsubd", "vpaddd",    "vcvtps2dq"};
bool is_listed(const decoded& d) {
  // The last is what objdump calls an instruction of two bytes that does nothing.
  return listed.contains(d.name) || (d.name.starts_with("vcmp") && d.name.ends_with("ps")) ||
         (d.name == "xchg" && d.operands == "ax,ax");
}

/// The names of registers within brackets, as in "[rsi+rcx*2+0x40]".
std::vector<std::string> registers_of_memory(const std::string& operands) {
  const std::size_t open = operands.find('[');
  std::vector<std::string> list;
  if (open == std::string::npos) return list;
  std::string word;
  for (const char c : operands.substr(open + 1, operands.find(']') - open)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (!word.empty() && std::isalpha(static_cast<unsigned char>(word[0])) != 0) list.push_back(word);
    word.clear();
  }
  return list;
}

/// Checks that registers which addresses are made of come from the call, which rdi points to.
class address_check {
 public:
  void see(const decoded& d) {
    const std::vector<std::string> used = registers_of_memory(d.operands);
    for (const std::string& r : used) EXPECT_TRUE(arguments_.contains(r)) << d.name << " " << d.operands;
    if (d.operands.find('[') != std::string::npos && d.name != "nop")
      EXPECT_FALSE(used.empty()) << d.name << " " << d.operands;
    const std::string to = d.operands.substr(0, d.operands.find(','));
    if (d.name == "mov" && used.empty()) {
      arguments_.erase(to);
      arguments_.erase("r" + to.substr(1));  // mov eax also changes rax
    } else if (d.name == "mov" || d.name == "lea") {
      arguments_.insert(to);
    } else if (d.name == "pop") {
      arguments_.erase(to);
    }
  }

 private:
  std::set<std::string> arguments_ = {"rdi"};
};

void check_code(const jit::tile_plan& plan) {
  const std::vector<std::uint8_t> code = jit::generate(plan);
  std::size_t next = 0;
  address_check addresses;
  const std::vector<decoded> all = disassemble(code);
  for (const decoded& d : all) {
    EXPECT_EQ(d.address, next);
    next = d.address + d.bytes;
    EXPECT_TRUE(is_listed(d)) << d.name << " " << d.operands;
    if (plan.how.set == instruction_set::avx2) {
      EXPECT_EQ(d.operands.find("zmm"), std::string::npos) << d.name << " " << d.operands;
      EXPECT_EQ(d.operands.find('{'), std::string::npos) << d.name << " " << d.operands;
      EXPECT_NE(code[d.address], 0x62) << d.name << " " << d.operands << " is of AVX-512";
    }
    if (d.name != "nop") addresses.see(d);
  }
  EXPECT_EQ(next, code.size());
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().name, "ret");
}

TEST(jit_code, every_byte_is_of_a_listed_instruction) {
  if (disassemble({0xC3}).size() != 1) GTEST_SKIP() << "objdump is not here: install binutils";
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
  if (disassemble({0xC3}).size() != 1) GTEST_SKIP() << "objdump is not here: install binutils";
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
