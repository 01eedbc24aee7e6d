#include "product.hpp"

#include "replica.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <string>

namespace collage::inline v0::detail::jit {

product::product(const configuration& how, const product_extents& extents, std::span<const store_mode> destinations,
                 const epilogue& finish, std::shared_ptr<code_arena> arena, unsigned features)
    : how_(how),
      extents_(extents),
      arena_(std::move(arena)),
      refusal_(refusal_of(how.set, features)),
      operands_(finish.operands),
      outputs_(finish.outputs.size()),
      destinations_(destinations.size()) {
  if (extents.m < 0 || extents.n < 0 || extents.k < 0)
    throw error(error_kind::invalid_argument, "an extent of a product is negative", "jit");
  if (refusal_.empty() && arena_ == nullptr) refusal_ = "there is no arena for generated code";
  const std::int64_t rows = how.rows, columns = how.columns();
  const std::int64_t last_rows = extents.m % rows, last_columns = extents.n % columns;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const bool is_there =
          (i == 0 ? extents.m >= rows : last_rows != 0) && (j == 0 ? extents.n >= columns : last_columns != 0);
      if (is_there)
        add(kernels_[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)], i == 0 ? rows : last_rows,
            j == 0 ? columns : last_columns, destinations, finish);
    }
  // Wrong destinations are an error for products without elements, too.
  if (extents.m == 0 || extents.n == 0) static_cast<void>(make_plan(how, 1, 1, destinations, finish));
}

void product::add(kernel& to, std::int64_t rows, std::int64_t columns, std::span<const store_mode> destinations,
                  const epilogue& finish) {
  to.plan = std::make_shared<const tile_plan>(
      make_plan(how_, static_cast<int>(rows), static_cast<int>(columns), destinations, finish));
  to.run = replica().run;
  if (refusal_.empty()) to.ticket = arena_->add(to.plan);
}

void product::bind() {
  if (!refusal_.empty()) return;
  if (refusal_ = arena_->seal(); !refusal_.empty()) return;
  for (auto& row : kernels_)
    for (kernel& k : row)
      if (k.plan != nullptr) k.run = arena_->function<tile_function>(k.ticket);
}

int product::panel_width(std::int64_t panel) const {
  const std::int64_t columns = std::min<std::int64_t>(how_.columns(), extents_.n - panel * how_.columns());
  const int lanes = how_.lanes();
  return (static_cast<int>(columns) + lanes - 1) / lanes * lanes;
}

std::size_t product::packed_size() const {
  return static_cast<std::size_t>(packed_floats(how_, extents_.k, extents_.n));
}

void product::pack(const float* b, std::int64_t step, float* to) const {
  for (std::int64_t panel = 0; panel < panels(); ++panel) {
    const std::int64_t first = panel * how_.columns();
    const std::int64_t width = panel_width(panel), columns = std::min(width, extents_.n - first);
    for (std::int64_t k = 0; k < extents_.k; ++k, to += width) {
      std::copy_n(b + k * step + first, columns, to);
      std::fill_n(to + columns, width - columns, 0.0F);
    }
  }
}

void product::run(const product_call& call, const product_part& part) const {
  constexpr std::int64_t size = sizeof(float);
  tile_call tile;
  tile.a_step = call.a_step * size;
  tile.depth = std::min(part.last_step, extents_.k) - part.first_step;
  tile.to_step = call.to_step * size;
  for (std::size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i] == operand_shape::whole) tile.operand_step[i] = call.operand_steps[i] * size;
  for (std::size_t i = 0; i < outputs_; ++i) tile.output_step[i] = call.output_steps[i] * size;
  for (std::int64_t panel = part.first_panel; panel < part.last_panel; ++panel) {
    const std::int64_t column = panel * how_.columns();
    tile.b =
        call.packed + (column - call.first_panel * how_.columns()) * extents_.k + part.first_step * panel_width(panel);
    const std::size_t is_last_panel = column + how_.columns() > extents_.n ? 1 : 0;
    for (std::int64_t band = part.first_band; band < part.last_band; ++band) {
      const std::int64_t row = band * how_.rows;
      const kernel& chosen = kernels_[row + how_.rows > extents_.m ? 1 : 0][is_last_panel];
      tile.plan = chosen.plan.get();
      tile.constants = tile.plan->constants.data();
      tile.a = call.a + row * call.a_step;
      for (std::size_t i = 0; i < destinations_; ++i)
        tile.to[i] = call.to[i] == nullptr ? nullptr : call.to[i] + row * call.to_step + column;
      for (std::size_t i = 0; i < operands_.size(); ++i) {
        const std::int64_t offset = operands_[i] == operand_shape::whole     ? row * call.operand_steps[i] + column
                                    : operands_[i] == operand_shape::per_row ? row
                                    : operands_[i] == operand_shape::single  ? 0
                                                                             : column;
        tile.operand[i] = call.operands[i] + offset;
      }
      for (std::size_t i = 0; i < outputs_; ++i) tile.output[i] = call.outputs[i] + row * call.output_steps[i] + column;
      chosen.run(&tile);
    }
  }
}

}  // namespace collage::inline v0::detail::jit
