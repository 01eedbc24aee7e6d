#include "attention.hpp"

#include "attention_rows.hpp"
#include "epilogue.hpp"
#include "tile_parameters.hpp"
#include "word_reader.hpp"

#include <collage/backends/impl/team.hpp>
#include <collage/error.hpp>
#include <collage/ops.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace collage::inline v0::detail::jit {
namespace {

constexpr std::array set_scores = {store_mode::set};

std::string attention_word() { return "attention" + std::to_string(attention_version); }

const attention_configuration& checked_attention(const attention_configuration& c, const attention_shape& s) {
  for (const sentence& why : {fault_of(c), fault_of(s)})
    if (!why.empty()) throw error(error_kind::invalid_argument, std::string(why.text, why.size), "jit");
  return c;
}

/// The factor, and the mask: one number for each key, or for each query and key.
epilogue after_scores(const attention_shape& s) {
  epilogue_maker make;
  epilogue_maker::value x = make.product();
  if (s.factor != 1) x = make(ops::mul, {x, make.number(static_cast<double>(s.factor))});
  if (s.mask)
    x = make(ops::add, {x, make.operand(s.mask->row == 0 ? operand_shape::per_column : operand_shape::whole)});
  make.output(x);
  return make.finish();
}
/// One over the sum of each row's exponentials.
epilogue after_values() {
  epilogue_maker make;
  make.output(make(ops::mul, {make.product(), make.operand(operand_shape::per_row)}));
  return make.finish();
}

std::int64_t offset_of(const head_steps& s, std::int64_t heads, std::int64_t matrix) {
  return matrix / heads * s.batch + matrix % heads * s.head;
}
std::int64_t whole_lines(std::int64_t floats) { return (floats + 15) / 16 * 16; }

/// Packs B, whose elements may follow each other along rows or along columns.
void pack_right(const configuration& how, const product& kernels, const head_steps& steps, const float* from,
                std::int64_t rows, std::int64_t columns, float* to) {
  if (steps.column == 1 || columns == 1) return kernels.pack(from, steps.row, to);
  const attention_row_functions work = attention_rows();
  for (std::int64_t first = 0; first < columns; first += how.columns()) {
    const std::int64_t here = std::min<std::int64_t>(how.columns(), columns - first);
    const std::int64_t width = parts_of_extent(here, how.lanes()) * how.lanes();
    work.transpose(from + first * steps.column, steps.column, rows, here, to, width);
    for (std::int64_t row = 0; here < width && row < rows; ++row)
      std::fill(to + row * width + here, to + (row + 1) * width, 0.0F);
    to += rows * width;
  }
}

}  // namespace

sentence fault_of(const attention_configuration& c) {
  sentence why;
  if (c.rows < 1 || c.rows > most_attention_rows)
    why << "the number of rows is " << c.rows << ", and must be from 1 to " << most_attention_rows;
  return why.empty() ? fault_of(c.product) : why;
}

sentence fault_of(const attention_shape& s) {
  sentence why;
  static_cast<void>(
      is_outside(why, "the batch", s.batches, 1) || is_outside(why, "the number of heads", s.heads, 1) ||
      is_outside(why, "the number of queries", s.queries, 1) || is_outside(why, "the number of keys", s.keys, 1) ||
      is_outside(why, "the size of a key", s.size, 1) || is_outside(why, "the size of a value", s.width, 1));
  return why;
}

std::string to_text(const attention_configuration& c) {
  return attention_word() + ' ' + words_of(c.product) + " rows " + std::to_string(c.rows);
}

attention_configuration parse_attention_configuration(std::string_view text) {
  attention_configuration c;
  word_reader read(text, to_text(c));
  read.version(attention_word());
  c.product = read_words(read);
  read.literally("rows");
  c.rows = read.number("the number of rows");
  if (const sentence why = fault_of(c); !why.empty()) read.refuse(std::string(why.text, why.size));
  read.must_be(to_text(c));
  return c;
}

std::vector<attention_configuration> propose_attention(const attention_shape& s, instruction_set set,
                                                       std::int64_t second_level_bytes, int threads) {
  std::vector<attention_configuration> list;
  attention_configuration c;
  c.product = default_configuration(set);
  const int lanes = lanes_of(set), tallest = c.product.rows;
  c.product.vectors = static_cast<int>(std::min<std::int64_t>(2, parts_of_extent(std::max(s.keys, s.width), lanes)));
  // All threads have blocks.
  const std::int64_t shared = parts_of_extent(s.queries * s.matrices(), std::int64_t{2} * threads);
  const std::int64_t most = std::clamp<std::int64_t>(shared, 1, std::min<std::int64_t>(s.queries, most_attention_rows));
  for (const std::int64_t part : {2, 8}) {
    const std::int64_t fitting = second_level_bytes / part / (4 * s.keys);
    const std::int64_t rows = std::clamp<std::int64_t>(fitting, std::min<std::int64_t>(most, tallest), most);
    c.rows = static_cast<int>(parts_of_extent(s.queries, parts_of_extent(s.queries, rows)));
    c.product.rows = static_cast<int>(parts_of_extent(c.rows, parts_of_extent(c.rows, tallest)));
    if (list.empty() || list.back() != c) list.push_back(c);
  }
  return list;
}

attention::attention(const attention_configuration& how, const attention_shape& shape, int threads, unsigned features)
    : how_(checked_attention(how, shape)),
      shape_(shape),
      threads_(std::max(threads, 1)),
      features_(features),
      arena_(std::make_shared<code_arena>()),
      packs_for_itself_(threads_ == 1 || shape.matrices() >= std::int64_t{4} * threads_) {
  blocks_.push_back(kernels_for(std::min<std::int64_t>(how.rows, shape.queries)));
  if (const std::int64_t rest = shape.queries % how.rows; rest != 0 && shape.queries > how.rows)
    blocks_.push_back(kernels_for(rest));
  static_cast<void>(arena_->seal());  // `bind` and `refusal` know the result
  for (block_kernels& b : blocks_)
    for (product* p : {&b.scores, &b.values}) p->bind();
}

attention::block_kernels attention::kernels_for(std::int64_t rows) const {
  return {product(how_.product, {rows, shape_.keys, shape_.size}, set_scores, after_scores(shape_), arena_, features_),
          product(how_.product, {rows, shape_.width, shape_.keys}, set_scores, after_values(), arena_, features_)};
}

/// An odd number of cache lines: rows that are a multiple of a page apart displace each other.
std::int64_t attention::scores_step() const {
  const std::int64_t lines = whole_lines(shape_.keys) / 16;
  return 16 * (lines + (lines % 2 == 0 ? 1 : 0));
}
/// The scores of a block, and a number for each row.
std::int64_t attention::scores_floats() const {
  const std::int64_t rows = std::min<std::int64_t>(how_.rows, shape_.queries);
  return rows * scores_step() + whole_lines(rows);
}
std::int64_t attention::packed_step() const {
  return whole_lines(packed_floats_of_keys()) + whole_lines(packed_floats_of_values());
}
std::size_t attention::scratch_bytes() const {
  const std::int64_t packed = packs_for_itself_ ? threads_ : shape_.matrices();
  return static_cast<std::size_t>(4 * (packed * packed_step() + threads_ * scores_floats()));
}

void attention::pack_keys(const attention_call& call, std::int64_t matrix, float* to) const {
  pack_right(how_.product, blocks_.front().scores, shape_.key, call.keys + offset_of(shape_.key, shape_.heads, matrix),
             shape_.size, shape_.keys, to);
}
void attention::pack_values(const attention_call& call, std::int64_t matrix, float* to) const {
  pack_right(how_.product, blocks_.front().values, shape_.value,
             call.values + offset_of(shape_.value, shape_.heads, matrix), shape_.keys, shape_.width, to);
}

void attention::run_block(const attention_call& call, std::int64_t matrix, std::int64_t block, const float* packed,
                          float* scratch) const {
  const std::int64_t first = block * how_.rows, rows = std::min<std::int64_t>(how_.rows, shape_.queries - first);
  const block_kernels& kernels = rows == how_.rows || blocks_.size() == 1 ? blocks_.front() : blocks_.back();
  const std::int64_t step = scores_step();
  float* const nowhere[] = {nullptr};
  float* const scores[] = {scratch};
  float* const factors = scratch + std::min<std::int64_t>(how_.rows, shape_.queries) * step;
  const float* masks[] = {nullptr};
  std::int64_t mask_steps[] = {0};
  if (shape_.mask) {
    masks[0] = call.mask + offset_of(*shape_.mask, shape_.heads, matrix) + first * shape_.mask->row;
    mask_steps[0] = shape_.mask->row;
  }
  const std::size_t operands = shape_.mask ? 1 : 0;
  kernels.scores.run({.a = call.queries + offset_of(shape_.query, shape_.heads, matrix) + first * shape_.query.row,
                      .a_step = shape_.query.row,
                      .packed = packed,
                      .to = nowhere,
                      .operands = std::span(masks).first(operands),
                      .operand_steps = std::span(mask_steps).first(operands),
                      .outputs = scores,
                      .output_steps = {&step, 1}});
  const attention_row_functions work = attention_rows();
  for (std::int64_t row = 0; row < rows; ++row) factors[row] = 1 / work.exponentials(scratch + row * step, shape_.keys);
  const float* const sums[] = {factors};
  float* const results[] = {call.result + offset_of(shape_.result, shape_.heads, matrix) + first * shape_.result.row};
  kernels.values.run({.a = scratch,
                      .a_step = step,
                      .packed = packed + whole_lines(packed_floats_of_keys()),
                      .to = nowhere,
                      .operands = sums,
                      .operand_steps = mask_steps,  // not read: the operand has one number for each row
                      .outputs = results,
                      .output_steps = {&shape_.result.row, 1}});
}

void attention::run(const attention_call& call) const {
  const std::int64_t behind_keys = whole_lines(packed_floats_of_keys());
  if (packs_for_itself_) {
    const std::int64_t room = packed_step() + scores_floats();
    return host::parallel(threads_, shape_.matrices(), [&](std::int64_t matrix, int thread) {
      float* const packed = call.scratch + thread * room;
      pack_keys(call, matrix, packed);
      pack_values(call, matrix, packed + behind_keys);
      for (std::int64_t block = 0; block < block_count(); ++block)
        run_block(call, matrix, block, packed, packed + packed_step());
    });
  }
  float* const rooms = call.scratch + shape_.matrices() * packed_step();
  host::parallel(threads_, 2 * shape_.matrices(), [&](std::int64_t i, int) {
    float* const packed = call.scratch + i / 2 * packed_step();
    if (i % 2 == 0) pack_keys(call, i / 2, packed);
    else pack_values(call, i / 2, packed + behind_keys);
  });
  host::parallel(threads_, shape_.matrices() * block_count(), [&](std::int64_t i, int thread) {
    const std::int64_t matrix = i / block_count();
    run_block(call, matrix, i % block_count(), call.scratch + matrix * packed_step(), rooms + thread * scores_floats());
  });
}

}  // namespace collage::inline v0::detail::jit
