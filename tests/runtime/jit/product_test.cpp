// Generated kernels and their replica against the reference in double precision.
#include "testing.hpp"

#include "jit/replica.hpp"
#include "support/effort.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace jit_product_test {

using namespace collage_test;
using namespace collage_test::jit_testing;

constexpr int all_shapes = 500;

std::int64_t awkward_extent(random_numbers& random, std::int64_t most) {
  constexpr std::int64_t list[] = {1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 31, 32, 33, 37, 61, 64, 97, 127};
  const std::int64_t found = random.chance(0.6) ? list[random.number(0, std::ssize(list) - 1)] : random.number(1, most);
  return std::min(found, most);
}

product_case random_case(random_numbers& random, instruction_set set) {
  product_case c;
  c.how = random_configuration(random, set);
  c.extents = {awkward_extent(random, 70), awkward_extent(random, 130), awkward_extent(random, 130)};
  if (random.chance(0.05)) c.extents.k = 0;
  c.a_gap = random.chance(0.5) ? 0 : random.number(1, 40);
  c.to_gap = random.chance(0.5) ? 0 : random.number(1, 40);
  if (random.chance(0.03)) {  // a leading dimension of some megabytes
    c.extents.m = std::min<std::int64_t>(c.extents.m, 9);
    c.a_gap = random.number(1, 3) << 20U;
    c.to_gap = random.number(1, 3) << 20U;
  }
  c.destinations.clear();
  for (std::int64_t i = random.chance(0.6) ? 1 : random.number(2, 6); i > 0; --i)
    c.destinations.push_back(static_cast<store_mode>(random.number(0, 3)));
  if (random.chance(0.5)) c.finish = random_epilogue(random, static_cast<int>(random.number(0, 5)));
  return c;
}

/// Runs a case in memory that ends at guard pages, then in memory that begins at them. False: the epilogue does not fit.
bool run_case(product_case c, random_numbers& random, bool generated) {
  auto arena = std::make_shared<jit::code_arena>();
  std::unique_ptr<jit::product> made;
  try {
    made = std::make_unique<jit::product>(c.how, c.extents, c.destinations, c.finish, generated ? arena : nullptr);
  } catch (const collage::error& e) {
    EXPECT_NE(std::string(e.what()).find("vector registers"), std::string::npos) << e.what() << " for " << c.text();
    return false;
  }
  made->bind();
  EXPECT_EQ(made->refusal().empty(), generated) << made->refusal();
  for (const bool at_end : {true, false}) {
    c.at_end = at_end;
    case_runner(c, random, *made).run();
  }
  return true;
}

void run_random_cases(int count, bool generated) {
  random_numbers random;
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
    if (generated && !jit::refusal_of(set).empty()) {
      std::cout << jit::refusal_of(set) << ": not tested\n";
      continue;
    }
    int refused = 0;
    for (int ran = 0; ran < count && !testing::Test::HasFailure();) {
      if (run_case(random_case(random, set), random, generated)) ++ran;
      else ASSERT_LT(++refused, 2 * count) << "nearly all epilogues are refused";
    }
  }
}

TEST(jit_products, random_shapes) { run_random_cases(cases(all_shapes / 10), true); }
TEST(jit_products_long, random_shapes) { run_random_cases(all_shapes, true); }

TEST(jit_products, random_shapes_of_the_replica) {
  const std::int64_t all = hwy::SupportedTargets();
  for (std::int64_t rest = all; rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    SCOPED_TRACE(jit::replica().target);
    run_random_cases(cases(all_shapes / 50), false);
  }
  hwy::SetSupportedTargetsForTest(0);
}
TEST(jit_products_long, random_shapes_of_the_replica) { run_random_cases(all_shapes, false); }

TEST(jit_products, every_tile_of_the_default) {
  random_numbers random;
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
    if (!jit::refusal_of(set).empty()) continue;
    product_case c;
    c.how = jit::default_configuration(set);
    for (int rows = 1; rows <= c.how.rows; ++rows)
      for (int columns = 1; columns <= c.how.columns(); ++columns) {
        c.extents = {rows, columns, random.number(0, 9)};
        ASSERT_TRUE(run_case(c, random, true));
        if (HasFailure()) return;
      }
  }
}

TEST(jit_products, nothing_is_written_for_empty_products) {
  for (const jit::product_extents extents : {jit::product_extents{0, 5, 7}, {5, 0, 7}, {0, 0, 0}}) {
    auto arena = std::make_shared<jit::code_arena>();
    jit::product made(jit::default_configuration(instruction_set::avx512), extents, std::vector{store_mode::set}, {},
                      arena);
    made.bind();
    float* const to[] = {nullptr};
    made.run({.to = to});
    EXPECT_EQ(arena->bytes(), 0U);
  }
}

TEST(jit_products, parts_are_the_whole) {
  random_numbers random;
  const configuration how = jit::default_configuration(instruction_set::avx2);
  const jit::product_extents extents{29, 75, 33};
  jit::product made(how, extents, std::vector{store_mode::set}, {}, nullptr);
  std::vector<float> a(29 * 33), b(33 * 75), packed(made.packed_size()), whole(29 * 75, -1), parts(29 * 75, -1);
  for (float& x : a) x = static_cast<float>(random.real(-1, 1));
  for (float& x : b) x = static_cast<float>(random.real(-1, 1));
  made.pack(b.data(), 75, packed.data());
  const auto call = [&](float* const* to) {
    return jit::product_call{.a = a.data(), .a_step = 33, .packed = packed.data(), .to = {to, 1}, .to_step = 75};
  };
  float* const to_whole[] = {whole.data()};
  made.run(call(to_whole));
  float* const to_parts[] = {parts.data()};
  for (std::int64_t p = made.panels(); p-- > 0;)
    for (std::int64_t r = made.bands(); r-- > 0;) made.run(call(to_parts), {p, p + 1, r, r + 1});
  EXPECT_EQ(whole, parts);
}

/// Parts of k: B has all of its rows, and A begins with the first one that is used.
TEST(jit_products, steps_over_a_part_of_k) {
  random_numbers random;
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
    if (!jit::refusal_of(set).empty()) continue;
    auto arena = std::make_shared<jit::code_arena>();
    const jit::product_extents extents{9, 53, 33};
    jit::product made(jit::default_configuration(set), extents, std::vector{store_mode::set}, {}, arena);
    made.bind();
    std::vector<float> a(9 * 33), b(33 * 53), packed(made.packed_size()), c(9 * 53);
    for (float& x : a) x = static_cast<float>(random.number(-8, 8));
    for (float& x : b) x = static_cast<float>(random.number(-8, 8));
    made.pack(b.data(), 53, packed.data());
    float* const to[] = {c.data()};
    for (const auto& [first, last] : {std::pair{0, 33}, {0, 11}, {11, 22}, {22, 33}, {5, 5}, {32, 99}}) {
      made.run({.a = a.data() + first, .a_step = 33, .packed = packed.data(), .to = to, .to_step = 53},
               {0, made.panels(), 0, made.bands(), first, last});
      for (std::size_t i = 0; i < 9; ++i)
        for (std::size_t j = 0; j < 53; ++j) {
          float sum = 0;  // of small integers
          for (auto k = static_cast<std::size_t>(first); k < 33 && k < static_cast<std::size_t>(last); ++k)
            sum += a[i * 33 + k] * b[k * 53 + j];
          ASSERT_EQ(c[i * 53 + j], sum) << first << " to " << last << " at " << i << ", " << j;
        }
    }
  }
}

/// An output may lie exactly where a whole operand lies.
TEST(jit_products, a_residual_in_place) {
  jit::epilogue_maker make;
  const auto sum = make(op::add, {make.product(), make.operand(operand_shape::whole)});
  make.output(make(op::relu, {sum}));
  make.output(sum);
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
    if (!jit::refusal_of(set).empty()) continue;
    auto arena = std::make_shared<jit::code_arena>();
    configuration how = jit::default_configuration(set);
    how.rows = 4;
    jit::product made(how, {5, 21, 1}, std::vector{store_mode::set}, make.finish(), arena);
    made.bind();
    std::vector<float> a(5, 2.0F), b(21, 3.0F), packed(made.packed_size()), residual(5 * 21), positive(5 * 21);
    for (std::size_t i = 0; i < residual.size(); ++i) residual[i] = static_cast<float>(i) - 50;
    made.pack(b.data(), 21, packed.data());
    float* const to[] = {nullptr};
    const float* const operands[] = {residual.data()};
    float* const outputs[] = {positive.data(), residual.data()};
    const std::int64_t steps[] = {21, 21};
    made.run({.a = a.data(),
              .a_step = 1,
              .packed = packed.data(),
              .to = to,
              .operands = operands,
              .operand_steps = {steps, 1},
              .outputs = outputs,
              .output_steps = steps});
    for (std::size_t i = 0; i < residual.size(); ++i) {
      EXPECT_EQ(residual[i], static_cast<float>(i) - 44);
      EXPECT_EQ(positive[i], std::max(0.0F, static_cast<float>(i) - 44));
    }
  }
}

TEST(jit_products, a_processor_without_the_instructions) {
  auto arena = std::make_shared<jit::code_arena>();
  const std::vector modes = {store_mode::set};
  const auto refusal = [&](instruction_set set, unsigned features) {
    return jit::product(jit::default_configuration(set), {3, 5, 7}, modes, {}, arena, features).refusal();
  };
  EXPECT_EQ(refusal(instruction_set::avx512, jit::feature_avx2 | jit::feature_fma),
            "this processor lacks avx512f, which kernels for avx512 need");
  EXPECT_EQ(refusal(instruction_set::avx512, 0),
            "this processor lacks avx2 and fma and avx512f, which kernels for avx512 need");
  EXPECT_EQ(refusal(instruction_set::avx2, jit::feature_avx2), "this processor lacks fma, which kernels for avx2 need");
  EXPECT_EQ(refusal(instruction_set::avx2, jit::feature_avx2 | jit::feature_fma), "");
}

}  // namespace jit_product_test
