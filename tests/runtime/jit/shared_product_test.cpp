// Products of one left operand as one kernel, in memory between guard pages.
#include "support/effort.hpp"
#include "testing.hpp"

#include "jit/product_point.hpp"
#include "jit/scheme.hpp"
#include "jit/scheme_product.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace jit_shared_product_test {

using namespace collage_test;
using namespace collage_test::jit_testing;
using jit::scheme;
using jit::scheme_product;

/// One right operand: with nothing after its product, with a bias, or with a bias and GELU, which finds no room beside a tile.
struct right_case {
  enum class what : std::uint8_t { nothing, bias, gelu };
  std::int64_t columns = 1;
  what then = what::nothing;
  bool is_transposed = false;

  epilogue finish() const {
    jit::epilogue_maker make;
    if (then == what::nothing) return {};
    auto y = make(op::add, {make.product(), make.operand(operand_shape::per_column)});
    if (then == what::gelu) {
      const auto erf = make(op::erf, {make(op::div, {y, make.number(1.4142135623730951)})});
      y = make(op::mul, {y, make(op::mul, {make.number(0.5), make(op::add, {erf, make.number(1)})})});
    }
    make.output(y);
    return make.finish();
  }
};

/// Products of one left operand, and their operands. Whole numbers are small, so that products must be exact.
class shared_case {
 public:
  shared_case(random_numbers& random, const scheme& s, const configuration& how, std::int64_t rows, std::int64_t depth,
              std::vector<right_case> rights, bool is_whole)
      : scheme_(s),
        how_(how),
        rows_(rows),
        depth_(depth),
        rights_(std::move(rights)),
        at_end_(random.chance(0.5)),
        a_(static_cast<std::size_t>(rows * depth), at_end_) {
    const auto fill = [&](float* to, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i)
        to[i] = is_whole ? static_cast<float>(random.number(-2, 2)) : static_cast<float>(random.real(-1, 1));
    };
    fill(a_.data(), a_.size());
    for (const right_case& r : rights_) {
      b_.emplace_back(static_cast<std::size_t>(r.columns * depth));
      fill(b_.back().data(), b_.back().size());
      bias_.emplace_back(static_cast<std::size_t>(r.columns), at_end_);
      fill(bias_.back().data(), bias_.back().size());
    }
  }

  /// The products `which`, by one kernel.
  std::vector<std::vector<float>> run(const std::vector<std::size_t>& which, int threads,
                                      unsigned features = jit::processor_features()) {
    std::vector<scheme_product::right_operand> rights;
    for (const std::size_t i : which) rights.push_back({rights_[i].columns, rights_[i].finish()});
    const scheme_product product(scheme_, how_, rows_, depth_, rights, threads, features);
    EXPECT_EQ(product.refusal().empty(), jit::refusal_of(how_.set, features).empty()) << product.refusal();
    const walled_floats workspace(product.workspace() / 4 + 16, false);
    std::fill_n(workspace.data(), workspace.size(), not_a_number);
    std::vector<walled_floats> packed, results;
    scheme_product::call c;
    c.a = a_.data();
    c.workspace = workspace.data();
    for (std::size_t p = 0; p < which.size(); ++p) {
      const std::size_t i = which[p];
      packed.emplace_back(product.packed_size(p), at_end_);
      product.pack(b_[i].data(), rights_[i].is_transposed, packed.back().data(), p);
      results.emplace_back(static_cast<std::size_t>(rows_ * rights_[i].columns), at_end_);
      std::fill_n(results.back().data(), results.back().size(), not_a_number);
      c.right[p] = {packed.back().data(), {bias_[i].data()}, {results.back().data()}};
    }
    product.run(c);
    for (std::size_t i = product.workspace() / 4; i < workspace.size(); ++i)
      EXPECT_TRUE(std::isnan(workspace.data()[i])) << "it wrote behind its workspace, " << text();
    std::vector<std::vector<float>> list;
    for (const walled_floats& r : results) list.emplace_back(r.data(), r.data() + r.size());
    return list;
  }
  std::vector<std::vector<float>> run_all(int threads, unsigned features = jit::processor_features()) {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < rights_.size(); ++i) all.push_back(i);
    return run(all, threads, features);
  }

  /// Compares with the definition in double precision. Products of whole numbers are exact.
  void expect_right(const std::vector<std::vector<float>>& results, bool is_whole) const {
    for (std::size_t r = 0; r < rights_.size(); ++r)
      for (std::int64_t i = 0; i < rows_; ++i)
        for (std::int64_t j = 0; j < rights_[r].columns; ++j) {
          const auto [expected, size] = element(r, i, j);
          const auto found = static_cast<double>(results[r][static_cast<std::size_t>(i * rights_[r].columns + j)]);
          const double products = 5 + scheme_.error.bound(0x1p-24, static_cast<std::size_t>(depth_ + 1)) / 0x1p-24;
          const double room = rights_[r].then == right_case::what::gelu || !is_whole
                                  ? (size + 2 + (is_whole ? 0 : products)) * 0x1p-21
                                  : 0;
          ASSERT_NEAR(found, expected, room) << "result " << r << " at " << i << ", " << j << " of " << text();
        }
  }
  std::string text() const {
    std::string list = std::string(scheme_.name) + ", " + jit::to_text(how_) + ", " + std::to_string(rows_) + "x" +
                       std::to_string(depth_);
    for (const right_case& r : rights_)
      list += " " + std::to_string(r.columns) + (r.is_transposed ? "t" : "") +
              (r.then == right_case::what::nothing ? ""
               : r.then == right_case::what::bias  ? "+bias"
                                                   : "+gelu");
    return list;
  }

 private:
  struct bounded_sum {
    double value, size;
  };
  bounded_sum element(std::size_t r, std::int64_t i, std::int64_t j) const {
    bounded_sum sum = {0, 0};
    for (std::int64_t q = 0; q < depth_; ++q) {
      const std::int64_t at = rights_[r].is_transposed ? j * depth_ + q : q * rights_[r].columns + j;
      const double term =
          static_cast<double>(a_[i * depth_ + q]) * static_cast<double>(b_[r][static_cast<std::size_t>(at)]);
      sum.value += term;
      sum.size += std::abs(term);
    }
    if (rights_[r].then == right_case::what::nothing) return sum;
    sum.value += static_cast<double>(bias_[r][j]);
    if (rights_[r].then == right_case::what::gelu) sum.value *= 0.5 * (1 + std::erf(sum.value / std::sqrt(2.0)));
    return sum;
  }

  const scheme& scheme_;
  configuration how_;
  std::int64_t rows_, depth_;
  std::vector<right_case> rights_;
  bool at_end_;
  walled_floats a_;
  std::vector<std::vector<float>> b_;
  std::vector<walled_floats> bias_;
};

std::int64_t extent(random_numbers& random, std::int64_t most = 120) {
  constexpr std::int64_t awkward[] = {1, 2, 3, 5, 7, 13, 16, 17, 31, 32, 47, 64, 97};
  return random.chance(0.5) ? awkward[random.number(0, 12)] : random.number(1, most);
}

std::vector<right_case> random_rights(random_numbers& random) {
  std::vector<right_case> list;
  const std::int64_t same = random.chance(0.3) ? extent(random) : 0;
  for (std::int64_t i = random.number(2, 3); i > 0; --i)
    list.push_back(
        {same != 0 ? same : extent(random), static_cast<right_case::what>(random.number(0, 2)), random.chance(0.4)});
  return list;
}

configuration some_configuration(random_numbers& random) {
  const bool is_wide = jit::refusal_of(instruction_set::avx512).empty() && random.chance(0.5);
  return random_configuration(random, is_wide ? instruction_set::avx512 : instruction_set::avx2);
}

/// Whether an epilogue finds room in a configuration; tiles of many vectors leave too few registers.
bool is_possible(const configuration& how, const std::vector<right_case>& rights, const scheme& s) {
  try {
    std::vector<scheme_product::right_operand> list;
    for (const right_case& r : rights) list.push_back({r.columns, r.finish()});
    const scheme_product made(s, how, 20, 20, list, 1);
    return true;
  } catch (const collage::error& e) {
    EXPECT_EQ(e.kind(), collage::error_kind::unsupported);
    return false;
  }
}

/// Runs so many cases of each scheme with each instruction set. Without features, the replica runs them.
void run_random_cases(int count, unsigned features) {
  random_numbers random;
  for (const scheme& s : jit::schemes())
    for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2})
      for (int ran = 0; ran < count && jit::refusal_of(set).empty() && !testing::Test::HasFailure();) {
        const configuration how = random_configuration(random, set);
        const std::vector<right_case> rights = random_rights(random);
        if (!is_possible(how, rights, s)) continue;
        const bool is_whole = random.chance(0.5);
        shared_case c(random, s, how, extent(random, 60), random.chance(0.05) ? 0 : extent(random), rights, is_whole);
        c.expect_right(c.run_all(static_cast<int>(random.number(1, 3)), features), is_whole);
        ++ran;
      }
}

constexpr int all_shapes = 500;  // for each scheme and instruction set

TEST(jit_shared_products, random_shapes) { run_random_cases(cases(all_shapes / 33), jit::processor_features()); }
TEST(jit_shared_products_long, random_shapes) { run_random_cases(all_shapes, jit::processor_features()); }
TEST(jit_shared_products, random_shapes_of_the_replica) { run_random_cases(cases(all_shapes / 66), 0); }
TEST(jit_shared_products_long, random_shapes_of_the_replica) { run_random_cases(all_shapes, 0); }

bool are_equal(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
}

/// Neither the number of threads nor the other products change a bit, so that a plan may take either kernel.
TEST(jit_shared_products, are_those_of_single_products_for_every_number_of_threads) {
  random_numbers random;
  for (const scheme& s : jit::schemes())
    for (int i = 0; i < 4; ++i) {
      const configuration how = some_configuration(random);
      const std::vector<right_case> rights = random_rights(random);
      if (!is_possible(how, rights, s)) continue;
      shared_case c(random, s, how, random.number(1, 200), random.number(1, 200), rights, false);
      const std::vector<std::vector<float>> together = c.run_all(1);
      for (int threads = 2; threads <= 5; ++threads) {
        const std::vector<std::vector<float>> several = c.run_all(threads);
        for (std::size_t r = 0; r < rights.size(); ++r)
          EXPECT_TRUE(are_equal(together[r], several[r]))
              << c.text() << ", result " << r << ", " << threads << " threads, COLLAGE_SEED=" << random.seed();
      }
      for (std::size_t r = 0; r < rights.size(); ++r)
        EXPECT_TRUE(are_equal(together[r], c.run({r}, 2).front()))
            << c.text() << ", result " << r << " alone, COLLAGE_SEED=" << random.seed();
    }
}

TEST(jit_shared_products, empty_extents) {
  random_numbers random;
  using enum right_case::what;
  const configuration how = jit::default_configuration(instruction_set::avx2);
  for (const scheme& s : jit::schemes()) {
    for (const std::vector<right_case>& rights : {std::vector<right_case>{{0, bias}, {5, bias}, {0, nothing}},
                                                  {{0, bias}, {0, bias}},
                                                  {{9, gelu}, {0, gelu}}}) {
      shared_case c(random, s, how, 7, 11, rights, true);
      c.expect_right(c.run_all(2), true);
    }
    shared_case without_rows(random, s, how, 0, 11, {{3, bias}, {5, nothing}}, true);
    without_rows.expect_right(without_rows.run_all(2), true);
    shared_case without_depth(random, s, how, 4, 0, {{3, bias}, {5, nothing}}, true);
    without_depth.expect_right(without_depth.run_all(2), true);
  }
}

/// Rows that are a multiple of a page apart are copied first, once for all products.
TEST(jit_shared_products, long_rows) {
  random_numbers random;
  using enum right_case::what;
  const configuration how = jit::default_configuration(instruction_set::avx2);
  some_cases takes;
  for (const scheme& s : jit::schemes())
    for (const std::int64_t k : {1024, 2049}) {
      if (!takes()) continue;
      shared_case c(random, s, how, 50, k, {{70, bias}, {33, nothing, true}, {64, bias}}, true);
      c.expect_right(c.run_all(2), true);
    }
}

TEST(jit_shared_products, nan_stays_in_its_row_and_its_product) {
  const std::int64_t rows = 20, depth = 9, columns = 35;
  std::vector<float> a(static_cast<std::size_t>(rows * depth), 1.0F),
      b(static_cast<std::size_t>(depth * columns), 1.0F);
  std::vector<float> other = b;
  a[3 * depth + 2] = not_a_number;
  other[4 * columns + 6] = not_a_number;
  const scheme_product::right_operand rights[] = {{columns, {}}, {columns, {}}};
  const scheme_product product(jit::schemes().front(), jit::default_configuration(instruction_set::avx2), rows, depth,
                               rights, 2);
  std::vector<float> packed[2], result[2], workspace(product.workspace() / 4 + 1);
  scheme_product::call c;
  c.a = a.data();
  c.workspace = workspace.data();
  for (std::size_t i = 0; i < 2; ++i) {
    packed[i].resize(product.packed_size(i));
    product.pack(i == 0 ? b.data() : other.data(), false, packed[i].data(), i);
    result[i].resize(static_cast<std::size_t>(rows * columns));
    c.right[i] = {packed[i].data(), {}, {result[i].data()}};
  }
  product.run(c);
  for (std::size_t p = 0; p < 2; ++p)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        EXPECT_EQ(std::isnan(result[p][static_cast<std::size_t>(i * columns + j)]), i == 3 || (p == 1 && j == 6));
}

TEST(jit_shared_products, none_or_too_many_are_an_error) {
  const std::vector<scheme_product::right_operand> rights(scheme_product::most_rights + 1, {4, {}});
  const configuration how = jit::default_configuration(instruction_set::avx2);
  for (const std::size_t count : {std::size_t{0}, rights.size()}) try {
      const scheme_product made(jit::schemes().front(), how, 4, 4, std::span(rights).first(count), 1);
      ADD_FAILURE() << count;
    } catch (const collage::error& e) {
      EXPECT_EQ(e.kind(), collage::error_kind::invalid_argument);
      EXPECT_NE(std::string(e.what()).find("from 1 to 3 right operands, and not " + std::to_string(count)),
                std::string::npos)
          << e.what();
    }
}

TEST(jit_shared_points, few_are_promising) {
  random_numbers random;
  for (int i = 0; i < 300; ++i) {
    std::vector<std::int64_t> columns;
    for (std::int64_t c = random.number(2, 3); c > 0; --c) columns.push_back(random.number(0, 900));
    const std::int64_t m = random.number(0, 300), k = random.number(0, 2000);
    for (const unsigned features : {0U, 3U, 7U})
      for (const bool is_long : {false, true}) {
        const std::vector<jit::product_point> list = jit::promising_points(m, columns, k, is_long, features);
        EXPECT_GE(list.size(), 1U) << m << " " << k;
        EXPECT_LE(list.size(), 12U);
        EXPECT_TRUE(list.front().algorithm->is_classical());
        for (const jit::product_point& p : list) {
          const jit::product_point::reading read = jit::product_point::read(p.text());
          ASSERT_TRUE(read.point) << p.text() << ": " << read.fault;
          EXPECT_EQ(read.point->how, p.how);
        }
      }
  }
}

/// Sums of the left operand are made once for all columns, and tiles are as wide as one result.
TEST(jit_shared_points, count_sums_once) {
  const auto names = [](std::int64_t m, std::int64_t k, const std::vector<std::int64_t>& columns) {
    std::set<std::string> list;
    for (const jit::product_point& p : jit::promising_points(m, columns, k, false, 7U)) list.insert(p.algorithm->name);
    return list;
  };
  EXPECT_FALSE(names(3136, 256, {64}).contains("strassen"));
  EXPECT_TRUE(names(3136, 256, {64, 64, 64}).contains("strassen"));
  for (const jit::product_point& p : jit::promising_points(100, std::vector<std::int64_t>{16, 16, 16}, 300, false, 7U))
    EXPECT_EQ(p.how.vectors, 1);
}

}  // namespace jit_shared_product_test
