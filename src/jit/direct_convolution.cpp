#include "direct_convolution.hpp"

#include "product_point.hpp"
#include "tile_parameters.hpp"
#include "word_reader.hpp"

#include <collage/backends/impl/team.hpp>
#include <collage/error.hpp>

#include <array>
#include <utility>

namespace collage::inline v0::detail::jit {
namespace {

constexpr std::array set_only = {store_mode::set}, add_only = {store_mode::add};

std::string version_word() { return "direct" + std::to_string(direct_version); }

const direct_configuration& checked(const direct_configuration& c, const direct_shape& s, const epilogue& finish) {
  for (const sentence& why : {fault_of(c), fault_of(s)})
    if (!why.empty()) throw error(error_kind::invalid_argument, std::string(why.text, why.size), "jit");
  for (const operand_shape o : finish.operands)
    if (o == operand_shape::per_row)
      throw error(error_kind::unsupported,
                  "an operand of a convolution's epilogue has one number for each row of a product", "jit",
                  "use one number for each channel or element");
  return c;
}

product_extents extents_of(const direct_shape& s) { return {s.width.outputs(), s.outputs, s.inner()}; }

/// Rows of the input under so many rows of outputs.
std::int64_t rows_under(const direct_extent& height, std::int64_t rows) {
  return (rows - 1) * height.stride + height.reach();
}

}  // namespace

sentence fault_of(const direct_configuration& c) {
  sentence why;
  if (c.rows < 1 || c.rows > most_direct_rows)
    why << "the number of rows is " << c.rows << ", and must be from 1 to " << most_direct_rows;
  return why.empty() ? fault_of(c.product) : why;
}

sentence fault_of(const direct_shape& s) {
  sentence why;
  if (is_outside(why, "the batch", s.batch, 1) || is_outside(why, "the number of input channels", s.channels, 1) ||
      is_outside(why, "the number of output channels", s.outputs, 1))
    return why;
  for (const direct_extent* e : {&s.depth, &s.height, &s.width})
    if (is_outside(why, "an extent of the image", e->size, 1) ||
        is_outside(why, "an extent of the window", e->window, 1) || is_outside(why, "a stride", e->stride, 1) ||
        is_outside(why, "a dilation", e->dilation, 1) || is_outside(why, "a pad", e->pad_begin, 0) ||
        is_outside(why, "a pad", e->pad_end, 0) || is_outside(why, "an extent of the output", e->outputs(), 1))
      return why;
  return why;
}

std::string to_text(const direct_configuration& c) {
  return version_word() + ' ' + words_of(c.product) + " rows " + std::to_string(c.rows);
}

direct_configuration parse_direct_configuration(std::string_view text) {
  direct_configuration c;
  word_reader read(text, to_text(c));
  read.version(version_word());
  c.product = read_words(read);
  read.literally("rows");
  c.rows = read.number("the number of rows");
  if (const sentence why = fault_of(c); !why.empty()) read.refuse(std::string(why.text, why.size));
  read.must_be(to_text(c));
  return c;
}

std::vector<direct_configuration> propose_direct(const direct_shape& s, instruction_set set,
                                                 std::int64_t second_level_bytes, bool is_long) {
  std::vector<direct_configuration> list;
  const int lanes = lanes_of(set), spare = spare_registers(is_long);
  const std::int64_t across = s.width.outputs(), down = s.height.outputs();
  // The rows of a block, of inputs and of sums, take half of the second-level cache. Weights are the rest.
  const std::int64_t row = 4 * (s.width.padded() * s.channels * s.height.stride * s.depth.window + across * s.outputs);
  const std::int64_t fitting =
      std::clamp<std::int64_t>(second_level_bytes / 2 / std::max<std::int64_t>(row, 1), 1, down);
  const std::int64_t needed = parts_of_extent(s.outputs, lanes);
  for (const int vectors : {static_cast<int>(std::min<std::int64_t>(2, needed)), 3}) {
    if (vectors > needed) break;
    direct_configuration c;
    c.product = default_configuration(set);
    c.product.vectors = vectors;
    const int kept = std::max(c.product.vectors + (set == instruction_set::avx2 ? 1 : 0), spare);
    const std::int64_t most = std::min((registers_of(set) - kept) / c.product.vectors, most_rows);
    c.product.rows = static_cast<int>(parts_of_extent(across, parts_of_extent(across, most)));
    c.rows = static_cast<int>(
        std::min<std::int64_t>(parts_of_extent(down, parts_of_extent(down, fitting)), most_direct_rows));
    if (fault_of(c).empty()) list.push_back(c);
  }
  return list;
}

direct_convolution::direct_convolution(const direct_configuration& how, const direct_shape& shape,
                                       const epilogue& finish, int threads, unsigned features)
    : how_(checked(how, shape, finish)),
      shape_(shape),
      finish_(finish),
      threads_(std::max(threads, 1)),
      arena_(std::make_shared<code_arena>()),
      first_(how.product, extents_of(shape), set_only, {}, arena_, features),
      middle_(how.product, extents_of(shape), add_only, {}, arena_, features),
      last_(how.product, extents_of(shape), add_only, finish, arena_, features),
      only_(how.product, extents_of(shape), set_only, finish, arena_, features),
      blocks_(parts_of_extent(shape.height.outputs(), how.rows)),
      row_floats_(shape.width.padded() * shape.channels) {
  static_cast<void>(arena_->seal());  // `bind` and `refusal` know the result
  for (product* p : {&first_, &middle_, &last_, &only_}) p->bind();
  // Few blocks: threads share their channels, too.
  const std::int64_t all = shape.batch * shape.depth.outputs() * blocks_;
  if (threads_ > 1 && all < 2 * threads_) panel_parts_ = std::min(only_.panels(), parts_of_extent(2 * threads_, all));
  const std::int64_t rows = std::min<std::int64_t>(how.rows, shape.height.outputs());
  const auto lines = [](std::int64_t floats) { return (floats + 15) / 16 * 16; };
  if (shape.has_pads()) copied_floats_ = lines(rows_under(shape.height, rows) * row_floats_);
  scratch_floats_ = copied_floats_;
  if (!finish.empty() && shape.products() > 1) scratch_floats_ += lines(rows * shape.width.outputs() * shape.outputs);
}

void direct_convolution::pack(const float* weights, float* to) const {
  const std::int64_t area = shape_.depth.window * shape_.height.window * shape_.width.window;
  const std::int64_t inner = shape_.inner(), of_product = packed_floats(how_.product, inner, shape_.outputs);
  const std::int64_t taps = inner / shape_.channels;  // of one product
  std::fill_n(to, of_product * shape_.products(), 0.0F);
  for (std::int64_t p = 0; p < shape_.products(); ++p)
    for (std::int64_t k = 0; k < inner; ++k)
      for (std::int64_t o = 0; o < shape_.outputs; ++o)
        to[p * of_product + packed_place(how_.product, inner, shape_.outputs, k, o)] =
            weights[(o * shape_.channels + k % shape_.channels) * area + p * taps + k / shape_.channels];
}

direct_convolution::part direct_convolution::part_of(std::int64_t index) const {
  const std::int64_t share = index % panel_parts_, block = index / panel_parts_ % blocks_;
  const std::int64_t slice = index / panel_parts_ / blocks_, panels = only_.panels();
  return {slice / shape_.depth.outputs(),
          slice % shape_.depth.outputs(),
          block * how_.rows,
          std::min((block + 1) * how_.rows, shape_.height.outputs()),
          panels * share / panel_parts_,
          panels * (share + 1) / panel_parts_};
}

void direct_convolution::copy_rows(const float* slice, std::int64_t first, std::int64_t count, float* to) const {
  const std::int64_t left = shape_.width.pad_begin * shape_.channels, row = shape_.width.size * shape_.channels;
  for (std::int64_t y = first; y < first + count; ++y, to += row_floats_) {
    if (y < 0 || y >= shape_.height.size) {
      std::fill_n(to, row_floats_, 0.0F);
      continue;
    }
    std::fill_n(to, left, 0.0F);
    std::copy_n(slice + y * row, row, to + left);
    std::fill(to + left + row, to + row_floats_, 0.0F);
  }
}

direct_convolution::rows_of_input direct_convolution::rows_for(const direct_call& call, const part& at,
                                                               std::int64_t slice, float* scratch) const {
  const std::int64_t row = shape_.width.size * shape_.channels;
  const float* const image = call.from + (at.image * shape_.depth.size + slice) * shape_.height.size * row;
  const std::int64_t first = at.first_row * shape_.height.stride - shape_.height.pad_begin;
  if (!shape_.has_pads()) return {image + first * row, row};
  copy_rows(image, first, rows_under(shape_.height, at.last_row - at.first_row), scratch);
  return {scratch, row_floats_};
}

void direct_convolution::multiply(const direct_call& call, const part& at, const rows_of_input& in, float* sums,
                                  std::int64_t index, std::int64_t offset, const product& chosen, bool is_empty) const {
  const std::int64_t across = shape_.width.outputs(), channels = shape_.outputs;
  const std::size_t count = &chosen == &last_ || &chosen == &only_ ? finish_.outputs.size() : 0;
  std::array<std::int64_t, epilogue::most_operands> steps;
  steps.fill(channels);
  for (std::int64_t panel = at.first_panel; panel < at.last_panel; ++panel)  // it stays in a cache
    for (std::int64_t y = at.first_row; y < at.last_row; ++y) {
      const std::int64_t row =
          ((at.image * shape_.depth.outputs() + at.slice) * shape_.height.outputs() + y) * across * channels;
      std::array<const float*, epilogue::most_operands> operands{};
      for (std::size_t i = 0; i < finish_.operands.size(); ++i)
        operands[i] = call.operands[i] + (finish_.operands[i] == operand_shape::whole ? row : 0);
      float* const to[] = {sums == nullptr ? nullptr : sums + (y - at.first_row) * across * channels};
      std::array<float*, epilogue::most_outputs> outputs{};
      for (std::size_t i = 0; i < count; ++i) outputs[i] = call.to[i] + row;
      chosen.run({.a = is_empty ? call.from : in.first + (y - at.first_row) * shape_.height.stride * in.step + offset,
                  .a_step = shape_.width.stride * shape_.channels,
                  .packed = call.weights + index * packed_floats(how_.product, shape_.inner(), channels),
                  .to = to,
                  .to_step = channels,
                  .operands = operands,
                  .operand_steps = steps,
                  .outputs = std::span(outputs).first(count),
                  .output_steps = std::span(steps).first(count)},
                 {panel, panel + 1, 0, chosen.bands(), 0, is_empty ? 0 : shape_.inner()});
    }
}

void direct_convolution::run_part(const direct_call& call, const part& at, float* scratch) const {
  // Slices of the window that meet pads are left out.
  const direct_extent& depth = shape_.depth;
  const std::int64_t begin = at.slice * depth.stride - depth.pad_begin;
  std::int64_t slice = 0, last_slice = depth.window;
  while (slice < last_slice && begin + slice * depth.dilation < 0) ++slice;
  while (slice < last_slice && begin + (last_slice - 1) * depth.dilation >= depth.size) --last_slice;
  const std::int64_t of_slice = shape_.height.window * shape_.pieces();
  const std::int64_t count = (last_slice - slice) * of_slice;
  const std::int64_t first = (at.image * depth.outputs() + at.slice) * shape_.height.outputs() + at.first_row;
  // Without an epilogue, the output holds the sums.
  float* const sums = finish_.empty() ? call.to[0] + first * shape_.width.outputs() * shape_.outputs
                      : count > 1     ? scratch + copied_floats_
                                      : nullptr;
  if (count == 0) return multiply(call, at, {}, sums, 0, 0, only_, true);
  for (std::int64_t done = 0; slice < last_slice; ++slice) {
    const rows_of_input in = rows_for(call, at, begin + slice * depth.dilation, scratch);
    for (std::int64_t tap = 0; tap < of_slice; ++tap, ++done) {
      const std::int64_t down = tap / shape_.pieces() * shape_.height.dilation;
      const std::int64_t across = tap % shape_.pieces() * shape_.width.dilation;
      const product& chosen = count == 1 ? only_ : done == 0 ? first_ : done + 1 == count ? last_ : middle_;
      multiply(call, at, in, sums, slice * of_slice + tap, down * in.step + across * shape_.channels, chosen, false);
    }
  }
}

void direct_convolution::run(const direct_call& call) const {
  const std::int64_t parts = shape_.batch * shape_.depth.outputs() * blocks_ * panel_parts_;
  host::parallel(threads_, parts, [&](std::int64_t i, int thread) {
    run_part(call, part_of(i), call.scratch + thread * scratch_floats_);
  });
}

}  // namespace collage::inline v0::detail::jit
