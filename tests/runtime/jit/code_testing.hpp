// Checks of generated code that all generators share: the state of the processor that it keeps, and the instructions that it has.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

/// Calls a kernel with known values in all registers that a callee saves, and stores what they hold afterwards: rbx, rbp, r12 to
/// r15, then the flags. It is in code_testing.cpp.
extern "C" void collage_test_call_kernel(const void* kernel, const void* call, std::uint64_t* state);

namespace collage_test::jit_testing {

/// Runs a kernel, and checks that registers, the control bits of MXCSR and the direction flag are as before.
inline void expect_state_is_kept(const void* kernel, const void* call) {
  std::array<std::uint64_t, 7> state{};
  // Rounding toward zero, flush-to-zero and denormals-are-zero, all traps masked: nothing that a kernel would set.
  constexpr unsigned sticky = 0x3F, unusual = 0xFFC0;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(unusual);
  collage_test_call_kernel(kernel, call, state.data());
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(after & ~sticky, unusual);
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(state[i], 0x11 * (i + 1)) << "register " << i;
  constexpr std::uint64_t direction = 1U << 10U;
  EXPECT_EQ(state[6] & direction, 0U);
}

struct decoded {
  std::size_t address = 0, bytes = 0;
  std::string name, operands;
};

/// The instructions that objdump sees in some code; none if there is no objdump.
inline std::vector<decoded> disassemble(const std::vector<std::uint8_t>& code) {
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

/// Whether an instruction is one that does nothing. The second is what objdump calls one of two bytes.
inline bool does_nothing(const decoded& d) { return d.name == "nop" || (d.name == "xchg" && d.operands == "ax,ax"); }

/// objdump can be missing.
inline bool can_disassemble() { return disassemble({0xC3}).size() == 1; }

/// The names of registers within brackets, as in "[rsi+rcx*2+0x40]".
inline std::vector<std::string> registers_of_memory(const std::string& operands) {
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
    if ((d.name == "mov" || d.name == "movabs") && used.empty()) {
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

/// Checks that every byte is of an instruction that `is_listed`, and that addresses are made of arguments alone. `also` sees each
/// instruction, and its first byte.
inline void check_instructions(const std::vector<std::uint8_t>& code,
                               const std::function<bool(const decoded&)>& is_listed,
                               const std::function<void(const decoded&, std::uint8_t)>& also) {
  std::size_t next = 0;
  address_check addresses;
  const std::vector<decoded> all = disassemble(code);
  for (const decoded& d : all) {
    EXPECT_EQ(d.address, next);
    next = d.address + d.bytes;
    EXPECT_TRUE(does_nothing(d) || is_listed(d)) << d.name << " " << d.operands;
    also(d, code[d.address]);
    if (d.name != "nop") addresses.see(d);
  }
  EXPECT_EQ(next, code.size());
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().name, "ret");
}

}  // namespace collage_test::jit_testing
