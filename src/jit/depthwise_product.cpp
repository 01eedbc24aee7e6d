#include "depthwise_product.hpp"

#include "product_point.hpp"
#include "word_reader.hpp"

#include <collage/backends/impl/team.hpp>
#include <collage/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace collage::inline v0::detail::jit {
namespace {

constexpr std::array set_only = {store_mode::set};

std::string version_word() { return "depthwise" + std::to_string(depthwise_version); }
std::int64_t parts_of(std::int64_t all, std::int64_t size) { return (all + size - 1) / size; }

/// `s`, if there is a kernel for it.
const depthwise_shape& checked(const depthwise_configuration& c, const depthwise_shape& s) {
  for (const sentence& why : {fault_of(c), fault_of(s)})
    if (!why.empty()) throw error(error_kind::invalid_argument, std::string(why.text, why.size), "jit");
  return s;
}

product_extents extents_of(const depthwise_shape& s, std::int64_t rows, std::int64_t outputs) {
  return {rows * s.output_width(), outputs, s.channels};
}

}  // namespace

std::string to_text(const depthwise_configuration& c) {
  return version_word() + ' ' + words_of(c.product) + " rows " + std::to_string(c.rows) + " threads " +
         (c.partition == depthwise_partition::blocks ? "blocks" : "shared");
}

depthwise_configuration parse_depthwise_configuration(std::string_view text) {
  depthwise_configuration c;
  word_reader read(text, to_text(c));
  read.version(version_word());
  c.product = read_words(read);
  read.literally("rows");
  c.rows = read.number("the number of rows of a block");
  read.literally("threads");
  const std::string_view share = read.word("what threads share");
  if (share != "blocks" && share != "shared")
    read.refuse("threads have '" + std::string(share) + "', and blocks and shared are known");
  c.partition = share == "blocks" ? depthwise_partition::blocks : depthwise_partition::shared;
  if (const sentence why = fault_of(c); !why.empty()) read.refuse(std::string(why.text, why.size));
  read.must_be(to_text(c));
  return c;
}

std::vector<depthwise_configuration> promising_configurations(const depthwise_shape& s, std::int64_t outputs,
                                                              bool is_long, int threads, unsigned features) {
  constexpr std::size_t most = 12, tiles_of_each = 2;
  constexpr std::int64_t least_pixels = 14;  // a product of fewer rows reads its weights too often
  const std::int64_t height = s.output_height(), width = s.output_width();
  std::vector<depthwise_configuration> list;
  // The block's pixels lie in the first-level cache, or in a part of the second-level one.
  for (const std::int64_t bytes : {std::int64_t{128} << 10, std::int64_t{32} << 10, std::int64_t{512} << 10}) {
    const std::int64_t wanted = std::max(bytes / (width * s.channels * 4), parts_of(least_pixels, width));
    const std::int64_t fitting =
        std::clamp<std::int64_t>(wanted, 1, std::min<std::int64_t>(height, most_depthwise_rows));
    const std::int64_t rows = parts_of(height, parts_of(height, fitting));  // blocks of nearly one size
    const bool keeps_busy = s.batch * parts_of(height, rows) >= 2 * threads;
    std::size_t found = 0;
    for (const product_point& p : promising_points(rows * width, outputs, s.channels, is_long, features)) {
      if (!p.algorithm->is_classical() || found == tiles_of_each) continue;
      ++found;
      for (const depthwise_partition partition : {depthwise_partition::blocks, depthwise_partition::shared}) {
        if (partition == depthwise_partition::shared && (threads == 1 || keeps_busy)) continue;
        const depthwise_configuration c = {p.how, static_cast<int>(rows), partition};
        if (std::ranges::find(list, c) == list.end() && list.size() < most) list.push_back(c);
      }
    }
  }
  return list;
}

depthwise_blocks blocks_of(const depthwise_configuration& c, const depthwise_shape& s) {
  depthwise_blocks b;
  b.rows = std::min<std::int64_t>(c.rows, s.output_height());
  b.per_image = parts_of(s.output_height(), b.rows);
  // An odd number of lines, so that the rows of a tile do not displace each other in a cache.
  const std::int64_t lines = parts_of(s.channels, 16);
  b.step = 16 * (lines + (lines % 2 == 0 ? 1 : 0));
  b.floats = b.rows * s.output_width() * b.step;
  return b;
}

depthwise_product::depthwise_product(const depthwise_configuration& how, const depthwise_shape& shape,
                                     std::int64_t outputs, const bounds& between, const epilogue& finish, int threads,
                                     unsigned features)
    : how_(how),
      shape_(checked(how, shape)),
      outputs_(outputs),
      between_(between),
      has_epilogue_(!finish.empty()),
      operands_(finish.operands),
      threads_(std::max(threads, 1)),
      blocks_(blocks_of(how, shape)),
      rows_(depthwise_rows(shape.window, shape.stride)),
      arena_(std::make_shared<code_arena>()),
      full_(how.product, extents_of(shape, blocks_.rows, outputs), set_only, finish, arena_, features),
      rest_(how.product, extents_of(shape, shape.output_height() % blocks_.rows, outputs), set_only, finish, arena_,
            features) {
  static_cast<void>(arena_->seal());  // `bind` and `refusal` know the result
  full_.bind();
  rest_.bind();
}

void depthwise_product::pack(const float* weights, float* to) const {
  std::fill_n(to, packed_size(), 0.0F);
  for (std::int64_t o = 0; o < outputs_; ++o)
    for (std::int64_t c = 0; c < shape_.channels; ++c)
      to[packed_place(how_.product, shape_.channels, outputs_, c, o)] = weights[o * shape_.channels + c];
}

std::size_t depthwise_product::workspace() const {
  const std::int64_t rooms = how_.partition == depthwise_partition::blocks ? threads_ : 1;
  return static_cast<std::size_t>(rooms * blocks_.floats) * sizeof(float);
}

depthwise_product::block_place depthwise_product::place_of(std::int64_t block) const {
  const std::int64_t first = block % blocks_.per_image * blocks_.rows;
  return {block / blocks_.per_image, first, std::min(first + blocks_.rows, shape_.output_height())};
}

void depthwise_product::convolve(const depthwise_product_call& call, const block_place& at, float* room,
                                 std::int64_t first_channel, std::int64_t last_channel) const {
  rows_({.shape = shape_,
         .from = call.from + at.image * shape_.height * shape_.width * shape_.channels,
         .weights = call.window,
         .bias = call.bias,
         .least = between_.least,
         .most = between_.most,
         .to = room,
         .to_step = blocks_.step},
        {at.first_row, at.last_row, first_channel, last_channel});
}

void depthwise_product::multiply(const depthwise_product_call& call, const block_place& at, const float* room,
                                 std::int64_t first_panel, std::int64_t last_panel) const {
  const std::int64_t pixel = (at.image * shape_.output_height() + at.first_row) * shape_.output_width();
  std::array<const float*, epilogue::most_operands> operands = {};
  std::array<std::int64_t, epilogue::most_operands> steps = {};
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const std::int64_t offset = operands_[i] == operand_shape::whole     ? pixel * outputs_
                                : operands_[i] == operand_shape::per_row ? pixel
                                                                         : 0;
    operands[i] = call.operands[i] + offset;
    steps[i] = outputs_;
  }
  float* const output = call.to + pixel * outputs_;
  float* const to[] = {has_epilogue_ ? nullptr : output};
  const product& chosen = at.last_row - at.first_row == blocks_.rows ? full_ : rest_;
  chosen.run({.a = room,
              .a_step = blocks_.step,
              .packed = call.packed,
              .to = to,
              .to_step = outputs_,
              .operands = std::span(operands).first(operands_.size()),
              .operand_steps = std::span(steps).first(operands_.size()),
              .outputs = std::span(&output, 1),
              .output_steps = std::span(&outputs_, 1)},
             {first_panel, last_panel, 0, chosen.bands()});
}

void depthwise_product::run(const depthwise_product_call& call) const {
  const std::int64_t blocks = shape_.batch * blocks_.per_image;
  if (how_.partition == depthwise_partition::blocks) {
    host::parallel(threads_, blocks, [&](std::int64_t b, int thread) {
      float* const room = call.scratch + thread * blocks_.floats;
      const block_place at = place_of(b);
      convolve(call, at, room, 0, shape_.channels);
      multiply(call, at, room, 0, full_.panels());
    });
    return;
  }
  const depthwise_parts parts = {shape_.channels};
  for (std::int64_t b = 0; b < blocks; ++b) {
    const block_place at = place_of(b);
    host::parallel(threads_, parts.count(),
                   [&](std::int64_t i, int) { convolve(call, at, call.scratch, parts.first(i), parts.last(i)); });
    host::parallel(threads_, full_.panels(), [&](std::int64_t i, int) { multiply(call, at, call.scratch, i, i + 1); });
  }
}

}  // namespace collage::inline v0::detail::jit
