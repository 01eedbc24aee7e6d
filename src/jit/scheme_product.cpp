#include "scheme_product.hpp"

#include "replica.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <array>
#include <string>

// Building. scheme_product_run.cpp has what runs.

namespace collage::inline v0::detail::jit {
namespace {

std::int64_t divided(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }

/// Half of a small second-level cache.
constexpr std::int64_t cached_bytes = std::int64_t{512} << 10;
/// Parts of the result that a task keeps until they are complete.
constexpr std::int64_t part_bytes = std::int64_t{64} << 10;

}  // namespace

std::string packing_of(const scheme& algorithm, const configuration& how) {
  return std::string("jit product ") + algorithm.name + " panels of " + std::to_string(how.columns()) + " lanes " +
         std::to_string(how.lanes());
}

std::size_t packed_floats(const scheme& algorithm, const configuration& how, const product_extents& extents) {
  const std::int64_t one = packed_floats(how, divided(extents.k, static_cast<std::int64_t>(algorithm.inner)),
                                         divided(extents.n, static_cast<std::int64_t>(algorithm.columns)));
  return static_cast<std::size_t>(one) * algorithm.rank;
}

scheme_product::scheme_product(const scheme& algorithm, const configuration& how, std::int64_t rows, std::int64_t depth,
                               std::span<const right_operand> rights, int threads, unsigned features)
    : algorithm_(algorithm),
      how_(how),
      rows_(rows),
      depth_(depth),
      threads_(std::max(threads, 1)),
      features_(features),
      block_m_(divided(rows, static_cast<std::int64_t>(algorithm.rows))),
      block_k_(divided(depth, static_cast<std::int64_t>(algorithm.inner))) {
  if (rights.empty() || rights.size() > most_rights)
    throw error(error_kind::invalid_argument,
                "a kernel has from 1 to " + std::to_string(most_rights) + " right operands, and not " +
                    std::to_string(rights.size()),
                "jit");
  for (const right_operand& r : rights)
    strips_.push_back({.columns = r.columns,
                       .block_n = divided(r.columns, static_cast<std::int64_t>(algorithm.columns)),
                       .operands = r.finish.operands,
                       .outputs = r.finish.outputs.size(),
                       .is_direct = algorithm.is_classical()});
  choose_sums();
  for (strip& s : strips_) divide_rows(s);
  make_kernels(rights);
  bind();
}

scheme_product::scheme_product(const scheme& algorithm, const configuration& how, const product_extents& extents,
                               const epilogue& finish, int threads, unsigned features)
    : scheme_product(algorithm, how, extents.m, extents.k, std::array{right_operand{extents.n, finish}}, threads,
                     features) {}

/// Which values of the left program are kept for all rows: sums, and blocks that cannot be read where they are.
void scheme_product::choose_sums() {
  const bilinear::program_view& left = algorithm_.left;
  slot_of_.assign(left.values(), -1);
  std::int64_t columns = 0;
  for (const strip& s : strips_) columns += s.columns;
  // Rows that are a multiple of a page apart displace each other in a first-level cache of 8 ways. With 14 rows, products
  // then take up to three times as long, and a copy costs 2 %.
  const bool is_aligned = depth_ % 1024 == 0 && how_.rows > 9 && rows_ > how_.rows && columns >= 64;
  for (const std::uint16_t v : left.output) {
    const auto inner = static_cast<std::int64_t>(algorithm_.inner);
    const std::int64_t i = v / inner, l = v % inner;
    const bool is_there = v < left.inputs && (i + 1) * block_m_ <= rows_ && (l + 1) * block_k_ <= depth_;
    if ((!is_there || is_aligned) && slot_of_[v] < 0) slot_of_[v] = slots_++;
  }
  const std::int64_t lines = divided(block_k_, 16);
  sum_step_ = 16 * (lines + (lines % 2 == 0 ? 1 : 0));
}

void scheme_product::divide_rows(strip& s) const {
  const std::int64_t rows = how_.rows, all = divided(block_m_, rows) * rows;
  const auto rank = static_cast<std::int64_t>(algorithm_.rank);
  s.panels_first = rank * block_k_ * s.block_n * 4 <= cached_bytes;
  std::int64_t most = all;
  if (s.panels_first) most = std::min(most, cached_bytes / 2 / std::max<std::int64_t>(depth_ * 4, 1));
  if (!s.is_direct) most = std::min(most, part_bytes / (blocks() * how_.columns() * 4));
  // Several tasks for each thread, so that one that is held up does not hold up all.
  if (threads_ > 1) {
    std::int64_t all_panels = 0;
    for (const strip& each : strips_) all_panels += panels(each);
    most = std::min(most, divided(block_m_, divided(4 * threads_, std::max<std::int64_t>(all_panels, 1))));
  }
  s.chunk = std::max(most / rows * rows, rows);
  s.chunks = divided(block_m_, s.chunk);
}

std::int64_t scheme_product::panel_columns(const strip& s, std::int64_t panel) const {
  return std::min<std::int64_t>(how_.columns(), s.block_n - panel * how_.columns());
}
std::int64_t scheme_product::panel_width(const strip& s, std::int64_t panel) const {
  return divided(panel_columns(s, panel), how_.lanes()) * how_.lanes();
}
std::int64_t scheme_product::room_size() const {
  std::int64_t most = slots_ == 0 ? 0 : static_cast<std::int64_t>(algorithm_.left.values()) * value_step();
  for (const strip& s : strips_)
    if (!s.is_direct) most = std::max(most, blocks() * part_size(s));
  return divided(most, 16) * 16;
}

void scheme_product::make_kernels(std::span<const right_operand> rights) {
  for (std::size_t i = 0; i < strips_.size();) {
    if (i == 0) {
      arena_ = std::make_shared<code_arena>();
      refusal_ = refusal_of(how_.set, features_);
      kernels_.clear();
    }
    strip& s = strips_[i];
    try {
      make_strip(s, rights[i].finish);
      ++i;
    } catch (const error& e) {
      // An epilogue that finds no room beside a tile is computed after it, in a smaller one.
      if (!s.is_direct || s.outputs == 0 || e.kind() != error_kind::unsupported) throw;
      s.is_direct = false;
      divide_rows(s);
      i = 0;  // the arena has code that is not needed now
    }
  }
}

void scheme_product::make_strip(strip& s, const epilogue& finish) {
  s.steps.clear();
  s.finish.clear();
  if (rows_ == 0 || s.columns == 0) return;
  make_steps(s, finish);
  if (!s.is_direct && s.outputs > 0) make_finish(s, finish);
}

void scheme_product::make_steps(strip& s, const epilogue& finish) {
  const epilogue none;
  const std::int64_t last_rows = block_m_ % how_.rows, last_panel = panels(s) - 1;
  const bool is_last_narrow = panel_columns(s, last_panel) < how_.columns();
  std::vector<bool> has_begun(static_cast<std::size_t>(blocks()));
  for (std::size_t p = 0; p < algorithm_.rank; ++p) {
    product_step step;
    step.left = algorithm_.left.output[p];
    std::vector<store_mode> modes;
    for (std::size_t b = 0; b < has_begun.size(); ++b) {
      const int c = algorithm_.output(b, p);
      if (c == 0) continue;
      step.blocks.push_back(b);
      if (has_begun[b]) modes.push_back(c > 0 ? store_mode::add : store_mode::subtract);
      else modes.push_back(c > 0 ? store_mode::set : store_mode::set_negative);
      has_begun[b] = true;
    }
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        const bool is_there = (i == 0 ? block_m_ >= how_.rows : last_rows != 0) &&
                              (j == 0 ? !is_last_narrow || last_panel > 0 : is_last_narrow);
        // Scratch memory has whole vectors.
        const std::int64_t columns = j == 0        ? how_.columns()
                                     : s.is_direct ? panel_columns(s, last_panel)
                                                   : panel_width(s, last_panel);
        step.kernels[i][j] =
            is_there ? kernel_for(how_, i == 0 ? how_.rows : last_rows, columns, modes, s.is_direct ? finish : none)
                     : no_kernel;
      }
    s.steps.push_back(std::move(step));
  }
}

/// Kernels that multiply nothing: they add a product of zeros to a complete part, and apply the epilogue.
void scheme_product::make_finish(strip& s, const epilogue& finish) {
  configuration how = how_;
  how.rows = s.finish_rows = std::max((how.set == instruction_set::avx512 ? 12 : 4) / how.vectors, 1);
  how.unroll = 1;
  how.prefetch = 0;
  s.finish.assign(static_cast<std::size_t>(how.columns()) + 1, {no_kernel, no_kernel});
  constexpr store_mode add[] = {store_mode::add};
  for (std::int64_t j = 0; j < static_cast<std::int64_t>(algorithm_.columns); ++j)
    for (std::int64_t panel = 0; panel < panels(s); ++panel) {
      const std::int64_t column = j * s.block_n + panel * how_.columns();
      const std::int64_t columns = std::min(panel_columns(s, panel), s.columns - column);
      if (columns <= 0) continue;
      auto& both = s.finish[static_cast<std::size_t>(columns)];
      if (both[0] != no_kernel) continue;
      both = {kernel_for(how, s.finish_rows, columns, add, finish), kernel_for(how, 1, columns, add, finish)};
    }
}

std::size_t scheme_product::kernel_for(const configuration& how, std::int64_t rows, std::int64_t columns,
                                       std::span<const store_mode> modes, const epilogue& finish) {
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const tile_plan& p = *kernels_[i].plan;
    if (p.how == how && p.rows == rows && p.columns == columns && std::ranges::equal(p.destinations, modes) &&
        p.finish == finish)
      return i;
  }
  kernel made;
  made.plan = std::make_shared<const tile_plan>(
      make_plan(how, static_cast<int>(rows), static_cast<int>(columns), modes, finish));
  made.run = replica().run;
  if (refusal_.empty()) made.ticket = arena_->add(made.plan);
  kernels_.push_back(std::move(made));
  return kernels_.size() - 1;
}

void scheme_product::bind() {
  if (!refusal_.empty()) return;
  if (refusal_ = arena_->seal(); !refusal_.empty()) return;
  for (kernel& k : kernels_) k.run = arena_->function<tile_function>(k.ticket);
}

void scheme_product::pack(const float* b, bool transposed, float* to, std::size_t which) const {
  struct term {
    double factor;
    std::int64_t row, column;
  };
  const strip& s = strips_[which];
  const std::int64_t n = s.columns, k = depth_;
  std::vector<term> terms;
  for (std::int64_t panel = 0; panel < panels(s); ++panel) {
    const std::int64_t width = panel_width(s, panel);
    for (std::size_t p = 0; p < algorithm_.rank; ++p, to += block_k_ * width) {
      terms.clear();
      for (std::size_t block = 0; block < algorithm_.inner * algorithm_.columns; ++block)
        if (const int factor = algorithm_.right(p, block); factor != 0)
          terms.push_back({static_cast<double>(factor),
                           static_cast<std::int64_t>(block / algorithm_.columns) * block_k_,
                           static_cast<std::int64_t>(block % algorithm_.columns) * s.block_n + panel * how_.columns()});
      const auto one = [&](std::int64_t i, std::int64_t j) {
        double sum = 0;
        for (const term& t : terms) {
          const std::int64_t row = t.row + i, column = t.column + j;
          if (row < k && column < n)
            sum += t.factor * static_cast<double>(transposed ? b[column * k + row] : b[row * n + column]);
        }
        to[i * width + j] = static_cast<float>(sum);
      };
      const std::int64_t columns = panel_columns(s, panel);
      for (std::int64_t i = 0; i < block_k_; ++i) std::fill(to + i * width + columns, to + (i + 1) * width, 0.0F);
      if (transposed)
        for (std::int64_t j = 0; j < columns; ++j)
          for (std::int64_t i = 0; i < block_k_; ++i) one(i, j);
      else
        for (std::int64_t i = 0; i < block_k_; ++i)
          for (std::int64_t j = 0; j < columns; ++j) one(i, j);
    }
  }
}

}  // namespace collage::inline v0::detail::jit
