#include "lower_tf_idf.hpp"

#include <collage/op/comparison.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/reduce.hpp>
#include <collage/op/slice.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

/// The n-grams of one length.
struct gram_pool {
  std::int64_t length = 0;
  std::int64_t count = 0;
  std::vector<std::int64_t> items;  ///< one n-gram after the other
};

/// The pool by length, from where each length begins in it.
std::vector<gram_pool> pools_of(lowering& n) {
  if (n.has_attribute("pool_strings")) n.unsupported("a pool of strings");
  const std::vector<std::int64_t> items = n.integers("pool_int64s"), starts = n.integers("ngram_counts");
  std::vector<gram_pool> pools;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i) + 1;
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : static_cast<std::int64_t>(items.size());
    if (starts[i] < 0 || end < starts[i] || end > static_cast<std::int64_t>(items.size()) ||
        (end - starts[i]) % length != 0)
      n.invalid("its ngram_counts must divide its pool into whole n-grams");
    pools.push_back({length, (end - starts[i]) / length, {items.begin() + starts[i], items.begin() + end}});
  }
  return pools;
}

/// How often each n-gram of a pool is in each row of x [N, L], with items `distance` apart: float32 [N, count].
value counted(lowering& n, value x, const gram_pool& pool, std::int64_t distance) {
  const shape dims = n.dims_of(x);
  const std::int64_t windows = dims[1] - (pool.length - 1) * distance;
  std::optional<value> same;
  for (std::int64_t k = 0; k < pool.length; ++k) {
    oracle_value wanted(tensor_type{dtype::i64, {pool.count}});
    for (std::int64_t i = 0; i < pool.count; ++i)
      wanted.integer[static_cast<std::size_t>(i)] = pool.items[static_cast<std::size_t>(i * pool.length + k)];
    const value item = n(ops::slice, x, {.starts = {0, k * distance}, .steps = {1, 1}, .extents = {dims[0], windows}});
    const value fits = n(ops::equal, n.reshape(item, {dims[0], windows, 1}), n.constant(wanted));
    same = same ? n(ops::logical_and, *same, fits) : fits;
  }
  return n(ops::reduce_sum, n.cast(*same, dtype::f32), {.axes = {1}, .keep_dims = false});
}

}  // namespace

void lower_tf_idf_vectorizer(lowering& n) {
  const dtype type = n.element_type_of(n.operand(0));
  if (type != dtype::i32 && type != dtype::i64) n.invalid("its input must be int32 or int64");
  value x = n.cast(n.operand(0), dtype::i64);
  const shape given = n.dims_of(x);
  if (given.empty() || given.size() > 2) n.invalid("its input must have shape [L] or [N, L]");
  const std::int64_t rows = given.size() == 2 ? given[0] : 1, length = given[given.size() - 1];
  x = n.reshape(x, {rows, length});
  const std::int64_t shortest = n.integer("min_gram_length", 1), longest = n.integer("max_gram_length", 1);
  const std::int64_t skips = n.integer("max_skip_count", 0);
  const std::vector<gram_pool> pools = pools_of(n);
  if (shortest < 1 || longest < shortest || skips < 0 || longest > static_cast<std::int64_t>(pools.size()))
    n.invalid("its lengths must be in order and have pools, and its skips must not be negative");
  const std::vector<std::int64_t> places = n.integers("ngram_indexes");
  std::vector<double> weights = n.reals("weights", std::vector<double>(places.size(), 1.0));
  std::int64_t grams = 0, columns = 0;
  for (const gram_pool& pool : pools) grams += pool.count;
  for (const std::int64_t place : places) {
    if (place < 0 || place >= (std::int64_t{1} << 25)) n.invalid("its ngram_indexes must be from 0 to 2^25");
    columns = std::max(columns, place + 1);
  }
  if (grams != static_cast<std::int64_t>(places.size()) || weights.size() != places.size() || places.empty())
    n.invalid("it must have one index and one weight for each n-gram of its pool");
  if (grams > (std::int64_t{1} << 25) / columns)
    n.unsupported("a pool with more than 2^25 n-grams times output columns");
  std::vector<value> counts;
  for (const gram_pool& pool : pools) {
    if (pool.count == 0) continue;
    std::optional<value> sum;
    if (pool.length >= shortest && pool.length <= longest)
      for (std::int64_t s = 0; s <= (pool.length == 1 ? 0 : skips); ++s) {
        // Divided rather than multiplied, so that no product overflows.
        if (pool.length > length || (pool.length > 1 && s + 1 > (length - 1) / (pool.length - 1))) break;
        const value now = counted(n, x, pool, s + 1);
        sum = sum ? n(ops::add, *sum, now) : now;
      }
    counts.push_back(sum ? *sum : n.filled({dtype::f32, {rows, pool.count}}, 0));
  }
  value all = n(ops::concat, std::span<const value>(counts), {.axis = 1});
  const std::string mode = n.text("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    n.invalid("its mode is \"" + mode + "\", which is none of those defined");
  if (mode == "IDF") all = n(ops::min, all, n.scalar(1, dtype::f32));
  // Each n-gram's count goes to its column, times its weight.
  oracle_value matrix(tensor_type{dtype::f32, {grams, columns}});
  for (std::size_t i = 0; i < places.size(); ++i)
    matrix.real[i * static_cast<std::size_t>(columns) + static_cast<std::size_t>(places[i])] =
        mode == "TF" ? 1.0 : weights[i];
  const value y = n(ops::matmul, all, n.constant(matrix));
  n.result(0, n.reshape(y, given.size() == 2 ? shape{rows, columns} : shape{columns}));
}

}  // namespace collage::inline v0::onnx
