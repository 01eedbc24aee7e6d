#include "scheme_product.hpp"

#include "generate.hpp"
#include "replica.hpp"

#include <collage/error.hpp>

#include <algorithm>
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

scheme_product::scheme_product(const scheme& algorithm, const configuration& how, const product_extents& extents,
                               const epilogue& finish, int threads, unsigned features)
    : algorithm_(algorithm),
      how_(how),
      extents_(extents),
      operands_(finish.operands),
      has_epilogue_(!finish.empty()),
      threads_(std::max(threads, 1)),
      features_(features),
      block_m_(divided(extents.m, static_cast<std::int64_t>(algorithm.rows))),
      block_k_(divided(extents.k, static_cast<std::int64_t>(algorithm.inner))),
      block_n_(divided(extents.n, static_cast<std::int64_t>(algorithm.columns))),
      is_direct_(algorithm.is_classical()) {
  if (algorithm.left.values() > most_values)
    throw error(
        error_kind::unsupported,
        std::string("the algorithm ") + algorithm.name + " adds more than " + std::to_string(most_values) + " blocks",
        "jit");
  choose_sums();
  divide_rows();
  try {
    make_kernels(finish);
  } catch (const error& e) {
    // An epilogue that finds no room beside a tile is computed after it, in a smaller one.
    if (!is_direct_ || !has_epilogue_ || e.kind() != error_kind::unsupported) throw;
    is_direct_ = false;
    divide_rows();
    make_kernels(finish);
  }
  bind();
}

/// Which values of the left program are kept for all rows: sums, and blocks that cannot be read where they are.
void scheme_product::choose_sums() {
  const bilinear::program_view& left = algorithm_.left;
  slot_of_.assign(left.values(), -1);
  // Rows that are a multiple of a page apart displace each other in a first-level cache of 8 ways. With 14 rows, products
  // then take up to three times as long, and a copy costs 2 %.
  const bool is_aligned = extents_.k % 1024 == 0 && how_.rows > 9 && extents_.m > how_.rows && extents_.n >= 64;
  for (const std::uint16_t v : left.output) {
    const auto inner = static_cast<std::int64_t>(algorithm_.inner);
    const std::int64_t i = v / inner, l = v % inner;
    const bool is_there = v < left.inputs && (i + 1) * block_m_ <= extents_.m && (l + 1) * block_k_ <= extents_.k;
    if ((!is_there || is_aligned) && slot_of_[v] < 0) slot_of_[v] = slots_++;
  }
  const std::int64_t lines = divided(block_k_, 16);
  sum_step_ = 16 * (lines + (lines % 2 == 0 ? 1 : 0));
}

void scheme_product::divide_rows() {
  const std::int64_t rows = how_.rows, all = divided(block_m_, rows) * rows;
  const auto rank = static_cast<std::int64_t>(algorithm_.rank);
  panels_first_ = rank * block_k_ * block_n_ * 4 <= cached_bytes;
  std::int64_t most = all;
  if (panels_first_) most = std::min(most, cached_bytes / 2 / std::max<std::int64_t>(extents_.k * 4, 1));
  if (!is_direct_) most = std::min(most, part_bytes / (blocks() * how_.columns() * 4));
  // Several tasks for each thread, so that one that is held up does not hold up all.
  if (threads_ > 1)
    most = std::min(most, divided(block_m_, divided(4 * threads_, std::max<std::int64_t>(panels(), 1))));
  chunk_ = std::max(most / rows * rows, rows);
  chunks_ = divided(block_m_, chunk_);
}

std::int64_t scheme_product::panel_columns(std::int64_t panel) const {
  return std::min<std::int64_t>(how_.columns(), block_n_ - panel * how_.columns());
}
std::int64_t scheme_product::panel_width(std::int64_t panel) const {
  return divided(panel_columns(panel), how_.lanes()) * how_.lanes();
}
std::int64_t scheme_product::room_size() const {
  const std::int64_t values = slots_ == 0 ? 0 : static_cast<std::int64_t>(algorithm_.left.values()) * value_step();
  return divided(std::max(values, is_direct_ ? 0 : blocks() * part_size()), 16) * 16;
}

void scheme_product::make_kernels(const epilogue& finish) {
  arena_ = std::make_shared<code_arena>();
  refusal_ = refusal_of(how_.set, features_);
  kernels_.clear();
  steps_.clear();
  if (extents_.m == 0 || extents_.n == 0) return;
  make_steps(finish);
  if (!is_direct_ && has_epilogue_) make_finish(finish);
}

void scheme_product::make_steps(const epilogue& finish) {
  const epilogue none;
  const std::int64_t last_rows = block_m_ % how_.rows, last_panel = panels() - 1;
  const bool is_last_narrow = panel_columns(last_panel) < how_.columns();
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
        const std::int64_t columns = j == 0       ? how_.columns()
                                     : is_direct_ ? panel_columns(last_panel)
                                                  : panel_width(last_panel);
        step.kernels[i][j] =
            is_there ? kernel_for(how_, i == 0 ? how_.rows : last_rows, columns, modes, is_direct_ ? finish : none)
                     : no_kernel;
      }
    steps_.push_back(std::move(step));
  }
}

/// Kernels that multiply nothing: they add a product of zeros to a complete part, and apply the epilogue.
void scheme_product::make_finish(const epilogue& finish) {
  configuration how = how_;
  how.rows = finish_rows_ = std::max((how.set == instruction_set::avx512 ? 12 : 4) / how.vectors, 1);
  how.unroll = 1;
  how.prefetch = 0;
  finish_.assign(static_cast<std::size_t>(how.columns()) + 1, {no_kernel, no_kernel});
  constexpr store_mode add[] = {store_mode::add};
  for (std::int64_t j = 0; j < static_cast<std::int64_t>(algorithm_.columns); ++j)
    for (std::int64_t panel = 0; panel < panels(); ++panel) {
      const std::int64_t column = j * block_n_ + panel * how_.columns();
      const std::int64_t columns = std::min(panel_columns(panel), extents_.n - column);
      if (columns <= 0) continue;
      auto& both = finish_[static_cast<std::size_t>(columns)];
      if (both[0] != no_kernel) continue;
      both = {kernel_for(how, finish_rows_, columns, add, finish), kernel_for(how, 1, columns, add, finish)};
    }
}

std::size_t scheme_product::kernel_for(const configuration& how, std::int64_t rows, std::int64_t columns,
                                       std::span<const store_mode> modes, const epilogue& finish) {
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const tile_plan& p = *kernels_[i].plan;
    if (p.how == how && p.rows == rows && p.columns == columns && std::ranges::equal(p.destinations, modes) &&
        p.finish.empty() == finish.empty())
      return i;
  }
  kernel made;
  made.plan = std::make_shared<const tile_plan>(
      make_plan(how, static_cast<int>(rows), static_cast<int>(columns), modes, finish));
  made.run = replica().run;
  if (refusal_.empty()) made.ticket = arena_->add(generate(*made.plan));
  kernels_.push_back(std::move(made));
  return kernels_.size() - 1;
}

void scheme_product::bind() {
  if (!refusal_.empty()) return;
  if (refusal_ = arena_->seal(); !refusal_.empty()) return;
  for (kernel& k : kernels_) k.run = arena_->function<tile_function>(k.ticket);
}

void scheme_product::pack(const float* b, bool transposed, float* to) const {
  struct term {
    double factor;
    std::int64_t row, column;
  };
  const std::int64_t n = extents_.n, k = extents_.k;
  std::vector<term> terms;
  for (std::int64_t panel = 0; panel < panels(); ++panel) {
    const std::int64_t width = panel_width(panel);
    for (std::size_t p = 0; p < algorithm_.rank; ++p, to += block_k_ * width) {
      terms.clear();
      for (std::size_t block = 0; block < algorithm_.inner * algorithm_.columns; ++block)
        if (const int factor = algorithm_.right(p, block); factor != 0)
          terms.push_back({static_cast<double>(factor),
                           static_cast<std::int64_t>(block / algorithm_.columns) * block_k_,
                           static_cast<std::int64_t>(block % algorithm_.columns) * block_n_ + panel * how_.columns()});
      const auto one = [&](std::int64_t i, std::int64_t j) {
        double sum = 0;
        for (const term& t : terms) {
          const std::int64_t row = t.row + i, column = t.column + j;
          if (row < k && column < n)
            sum += t.factor * static_cast<double>(transposed ? b[column * k + row] : b[row * n + column]);
        }
        to[i * width + j] = static_cast<float>(sum);
      };
      const std::int64_t columns = panel_columns(panel);
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
