// Attention on generated kernels for products: scores, their scale and mask, softmax, and the product with the values.
//
// A thread computes a block of queries at a time. Their scores stay in a cache, and are never written to the network's memory. The
// exponentials of a row are multiplied by the values as they are, and the result by one over their sum.
#pragma once

#include "configuration.hpp"
#include "extent_check.hpp"
#include "product.hpp"

#include <collage/detail/sentence.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::detail::jit {

/// Raised with every change after which an old text would mean another kernel.
inline constexpr int attention_version = 1;

/// How matrices of one operand lie in memory. Steps are in floats; 0 repeats a matrix, a row or a column.
struct head_steps {
  std::int64_t batch = 0, head = 0, row = 0, column = 1;
  friend constexpr bool operator==(const head_steps&, const head_steps&) = default;
};

struct attention_shape {
  std::int64_t batches = 1, heads = 1;
  std::int64_t queries = 1, keys = 1;
  std::int64_t size = 1;   ///< of a query and of a key
  std::int64_t width = 1;  ///< of a value
  head_steps query = {};   ///< rows are queries, and columns follow each other
  head_steps key = {};     ///< rows are elements of a key, and columns are keys: one of both follow each other
  head_steps value = {};   ///< rows are keys: rows or columns follow each other
  head_steps result = {};  ///< rows are queries, and columns follow each other
  std::optional<head_steps> mask = {};  ///< rows are queries, and columns are keys, which follow each other
  float factor = 1;                     ///< of the scores, before the mask is added

  constexpr std::int64_t matrices() const { return batches * heads; }
};

/// A text is canonical, as in "attention1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows 28".
struct attention_configuration {
  configuration product = {};
  int rows = 28;  ///< queries of a block
  friend constexpr bool operator==(const attention_configuration&, const attention_configuration&) = default;
};

inline constexpr int most_attention_rows = 65536;

/// Why there is no such kernel, in one sentence; empty if there is one.
sentence fault_of(const attention_configuration& c);
sentence fault_of(const attention_shape& s);

std::string to_text(const attention_configuration& c);
/// Error (invalid_argument): the text is not canonical, or `fault_of` has a reason.
attention_configuration parse_attention_configuration(std::string_view text);

/// The configurations that are worth measuring for a shape, at most 2: blocks whose scores take a half or an eighth of the
/// second-level cache.
std::vector<attention_configuration> propose_attention(const attention_shape& s, instruction_set set,
                                                       std::int64_t second_level_bytes, int threads);

/// The memory of one run.
struct attention_call {
  const float* queries = nullptr;
  const float* keys = nullptr;
  const float* values = nullptr;
  const float* mask = nullptr;  ///< read if the shape has one
  float* result = nullptr;
  float* scratch = nullptr;  ///< `scratch_bytes`
};

/// The constructor adds code to an arena of its own. Where generated code cannot run, the replica does. Results do not depend on the
/// number of threads, bit by bit.
class attention {
 public:
  /// `threads` is the most that `run` uses. Error (invalid_argument): `fault_of` has a reason.
  attention(const attention_configuration& how, const attention_shape& shape, int threads,
            unsigned features = processor_features());

  /// Why the replica runs, in one sentence; empty if generated code runs.
  const std::string& refusal() const { return blocks_.front().scores.refusal(); }
  std::size_t scratch_bytes() const;
  void run(const attention_call& call) const;

 private:
  /// Kernels for blocks of so many queries.
  struct block_kernels {
    product scores, values;
  };
  /// Scratch memory of a thread: the keys and values of one matrix, if the thread packs them, and the scores of a block.
  std::int64_t scores_step() const;
  std::int64_t scores_floats() const;
  std::int64_t packed_floats_of_keys() const { return packed_floats(how_.product, shape_.size, shape_.keys); }
  std::int64_t packed_floats_of_values() const { return packed_floats(how_.product, shape_.keys, shape_.width); }
  std::int64_t packed_step() const;
  std::int64_t block_count() const { return (shape_.queries + how_.rows - 1) / how_.rows; }

  block_kernels kernels_for(std::int64_t rows) const;
  void pack_keys(const attention_call& call, std::int64_t matrix, float* to) const;
  void pack_values(const attention_call& call, std::int64_t matrix, float* to) const;
  void run_block(const attention_call& call, std::int64_t matrix, std::int64_t block, const float* packed,
                 float* scratch) const;

  attention_configuration how_;
  attention_shape shape_;
  int threads_;
  unsigned features_;
  std::shared_ptr<code_arena> arena_;
  std::vector<block_kernels> blocks_;  ///< of whole blocks, and of the last one
  bool packs_for_itself_ = true;       ///< each thread computes whole matrices; else all share the packed ones
};

}  // namespace collage::inline v0::detail::jit
