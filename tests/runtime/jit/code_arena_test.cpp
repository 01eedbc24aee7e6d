// Executable memory: written first, then executable; what happens where the system refuses; threads and forks.
#include "testing.hpp"

#include "jit/code_totals.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace jit_code_arena_test {

using namespace collage_test::jit_testing;
using jit::code_arena;

/// mov eax, number; ret
std::vector<std::uint8_t> returns(std::uint8_t number) { return {0xB8, number, 0, 0, 0, 0xC3}; }
using int_function = int (*)();

/// The permissions of the mapping that an address lies in, as in "r-xp", and the file, if there is one.
std::string mapping_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string permissions, offset, device, inode, file;
    words >> std::hex >> begin >> dash >> end >> permissions >> offset >> device >> inode >> file;
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (begin <= at && at < end) return permissions + (file.empty() ? "" : " " + file);
  }
  return "unmapped";
}

TEST(jit_arena, code_is_executable_and_not_writable) {
  const void* where = nullptr;
  {
    code_arena arena;
    const std::size_t one = arena.add(returns(1)), two = arena.add(returns(2));
    EXPECT_EQ(arena.at(one), nullptr);
    EXPECT_EQ(arena.seal(), "");
    EXPECT_EQ(arena.seal(), "");
    EXPECT_EQ(arena.function<int_function>(one)(), 1);
    EXPECT_EQ(arena.function<int_function>(two)(), 2);
    EXPECT_EQ(arena.bytes(), 12U);
    where = arena.at(one);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(where) % 64, 0U);
    EXPECT_EQ(mapping_of(where), "r-xp");
    EXPECT_THROW(arena.add(returns(3)), collage::error);
  }
  EXPECT_EQ(mapping_of(where), "unmapped");
}

int protections = 0;
bool was_both = false;
int counted(void* memory, std::size_t bytes, int protection) {
  ++protections;
  was_both = was_both || (protection & (PROT_WRITE | PROT_EXEC)) == (PROT_WRITE | PROT_EXEC);
  return mprotect(memory, bytes, protection);
}
TEST(jit_arena, one_call_makes_all_executable) {
  code_arena arena(counted);
  for (int i = 0; i < 100; ++i) arena.add(returns(static_cast<std::uint8_t>(i)));
  EXPECT_EQ(arena.seal(), "");
  EXPECT_EQ(protections, 1);
  EXPECT_FALSE(was_both);
  EXPECT_EQ(arena.function<int_function>(77)(), 77);
}

int refused(void*, std::size_t, int) {
  errno = EACCES;
  return -1;
}
TEST(jit_arena, a_refusal_is_a_sentence_and_the_replica_runs) {
  auto arena = std::make_shared<code_arena>(refused);
  jit::product made(jit::default_configuration(instruction_set::avx2), {2, 3, 1}, std::vector{store_mode::set}, {},
                    arena, jit::feature_avx2 | jit::feature_fma);
  made.bind();
  EXPECT_EQ(
      made.refusal(),
      "the system does not let generated code be executable (mprotect: Permission denied), as SELinux, seccomp or a "
      "limit of memory may have it");
  EXPECT_EQ(arena->at(0), nullptr);
  const float a[] = {2, 3}, b[] = {5, 7, 11};
  std::vector<float> packed(made.packed_size()), c(6);
  made.pack(b, 3, packed.data());
  float* const to[] = {c.data()};
  made.run({.a = a, .a_step = 1, .packed = packed.data(), .to = to, .to_step = 3});
  EXPECT_EQ(c, (std::vector<float>{10, 14, 22, 15, 21, 33}));
}

/// Runs f in a child of this process, and returns its exit status.
template <class F>
int in_child(const F& f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(jit_arena, a_system_that_denies_executable_memory) {
  constexpr int set_mdwe = 65, refuse_gain = 1, unknown = 77;
  const int status = in_child([] {
    if (prctl(set_mdwe, refuse_gain, 0, 0, 0) != 0) return unknown;
    code_arena arena;
    arena.add(returns(1));
    return arena.seal().find("mprotect: Permission denied") != std::string::npos ? 0 : 1;
  });
  if (status == unknown) GTEST_SKIP() << "this system cannot deny it";
  EXPECT_EQ(status, 0);
}

/// A kernel that no other test has.
std::shared_ptr<const jit::tile_plan> plan_of(int rows) {
  jit::configuration how = jit::default_configuration(instruction_set::avx2);
  how.unroll = 3;
  return std::make_shared<const jit::tile_plan>(jit::make_plan(how, rows, 13, std::vector{store_mode::subtract}));
}
std::unique_ptr<code_arena> arena_of(std::initializer_list<int> rows) {
  auto made = std::make_unique<code_arena>();
  for (const int r : rows) made->add(plan_of(r));
  EXPECT_EQ(made->seal(), "");
  return made;
}

TEST(jit_arena, a_kernel_is_generated_once_while_it_is_there) {
  const auto generated_by = [](const auto& f) {
    const std::uint64_t before = jit::totals.kernels;
    f();
    return jit::totals.kernels - before;
  };
  std::unique_ptr<code_arena> first, same, other, longer, part;
  EXPECT_EQ(generated_by([&] { first = arena_of({1, 2}); }), 2U);
  EXPECT_EQ(generated_by([&] { same = arena_of({1, 2}); }), 0U);
  EXPECT_EQ(generated_by([&] { other = arena_of({2, 1}); }), 0U);
  EXPECT_EQ(generated_by([&] { longer = arena_of({1, 2, 3}); }), 1U);
  EXPECT_EQ(generated_by([&] { part = arena_of({1}); }), 0U);
  EXPECT_EQ(same->at(0), first->at(0));
  EXPECT_EQ(same->at(1), first->at(1));
  EXPECT_EQ(same->bytes(), first->bytes());
  for (const auto& each : {other->at(1), longer->at(0), part->at(0)}) {
    EXPECT_NE(each, first->at(0));
    EXPECT_EQ(std::memcmp(each, first->at(0), part->bytes()), 0);
    EXPECT_EQ(mapping_of(each), "r-xp");
  }
  // The one that shares keeps the memory alone.
  const void* const where = first->at(0);
  first.reset();
  EXPECT_EQ(mapping_of(where), "r-xp");
  same.reset();
  EXPECT_EQ(mapping_of(where), "unmapped");
  other.reset(), longer.reset();
  EXPECT_EQ(generated_by([&] { first = arena_of({1, 2}); }), 1U);
  first.reset(), part.reset();
  EXPECT_EQ(generated_by([&] { first = arena_of({1, 2}); }), 2U);
}

TEST(jit_arena, shared_kernels_compute_after_their_first_owner_is_gone) {
  if (const std::string why = jit::refusal_of(instruction_set::avx2); !why.empty()) GTEST_SKIP() << why;
  const auto made = [] {
    auto arena = std::make_shared<code_arena>();
    auto p =
        std::make_unique<jit::product>(jit::default_configuration(instruction_set::avx2), jit::product_extents{2, 3, 1},
                                       std::vector{store_mode::set}, jit::epilogue{}, std::move(arena));
    p->bind();
    EXPECT_EQ(p->refusal(), "");
    return p;
  };
  std::unique_ptr<jit::product> first = made();
  const std::unique_ptr<jit::product> second = made();
  first.reset();
  const float a[] = {2, 3}, b[] = {5, 7, 11};
  std::vector<float> packed(second->packed_size()), c(6);
  second->pack(b, 3, packed.data());
  float* const to[] = {c.data()};
  second->run({.a = a, .a_step = 1, .packed = packed.data(), .to = to, .to_step = 3});
  EXPECT_EQ(c, (std::vector<float>{10, 14, 22, 15, 21, 33}));
}

TEST(jit_arena, other_code_is_not_shared) {
  code_arena one, two;
  for (code_arena* const arena : {&one, &two}) {
    arena->add(returns(1));
    arena->add(plan_of(1));
    ASSERT_EQ(arena->seal(), "");
  }
  EXPECT_NE(one.at(0), two.at(0));
  EXPECT_EQ(two.function<int_function>(0)(), 1);
}

TEST(jit_arena, threads_add_and_a_fork_keeps_all) {
  code_arena arena;
  std::vector<std::thread> threads;
  std::vector<std::vector<std::size_t>> tickets(4);
  for (std::size_t t = 0; t < tickets.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) tickets[t].push_back(arena.add(returns(static_cast<std::uint8_t>(50 * t + i))));
    });
  // A fork while others add finds the arena whole, and its lock free.
  int early = 0;
  for (int i = 0; i < 5; ++i)
    early += in_child([&] {
      code_arena own;
      own.add(returns(9));
      return own.seal().empty() && own.function<int_function>(0)() == 9 && arena.seal().empty() ? 0 : 1;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(early, 0);
  ASSERT_EQ(arena.seal(), "");
  const auto all_run = [&] {
    for (std::size_t t = 0; t < tickets.size(); ++t)
      for (int i = 0; i < 50; ++i)
        if (arena.function<int_function>(tickets[t][static_cast<std::size_t>(i)])() != static_cast<int>(50 * t) + i)
          return 1;
    return 0;
  };
  EXPECT_EQ(all_run(), 0);
  EXPECT_EQ(in_child(all_run), 0);
}

}  // namespace jit_code_arena_test
