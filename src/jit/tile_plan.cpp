#include "tile_plan.hpp"

#include <collage/backends/impl/elementwise_polynomials.hpp>
#include <collage/error.hpp>

#include <string>
#include <vector>

namespace collage::inline v0::detail::jit {
namespace {

static_assert(epilogue::most_operands == tile_call::most_operands);
static_assert(epilogue::most_outputs == tile_call::most_outputs);

std::uint32_t bits(float x) { return __builtin_bit_cast(std::uint32_t, x); }

template <class Numbers>
void add_ratio(std::vector<std::uint32_t>& to, const Numbers& n) {
  to.push_back(bits(n.end));
  for (const float x : n.above) to.push_back(bits(x));
  for (const float x : n.below) to.push_back(bits(x));
}

std::vector<std::uint32_t> constants_of(const tile_plan& plan) {
  using e = host::exponential_numbers;
  std::vector<std::uint32_t> list = {0x80000000,
                                     0x7FFFFFFF,
                                     bits(1.0F),
                                     bits(e::least),
                                     bits(e::most),
                                     bits(e::inverse_logarithm),
                                     bits(e::shift),
                                     bits(e::logarithm_rest),
                                     bits(e::minus_logarithm),
                                     127};
  for (const float x : e::polynomial) list.push_back(bits(x));
  add_ratio(list, host::tangent_hyperbolic_numbers);
  add_ratio(list, host::error_function_numbers);
  for (int lane = 0; lane < 8; ++lane) list.push_back(lane < plan.tail() ? 0xFFFFFFFF : 0);
  for (const float x : plan.finish.numbers) list.push_back(bits(x));
  return list;
}

static_assert(constant_at::polynomial + host::exponential_numbers::terms == constant_at::hyperbolic);
static_assert(constant_at::hyperbolic + 1 + 2 * host::tangent_hyperbolic_numbers.terms == constant_at::error);
static_assert(constant_at::error + 1 + 2 * host::error_function_numbers.terms == constant_at::mask);

}  // namespace

tile_plan make_plan(const configuration& how, int rows, int columns, std::span<const store_mode> destinations,
                    const epilogue& finish) {
  const auto refuse = [](const std::string& why) { throw error(error_kind::invalid_argument, why, "jit"); };
  if (const sentence why = fault_of(how); !why.empty()) refuse(std::string(why.text, why.size));
  if (rows < 1 || rows > how.rows || columns < 1 || columns > how.columns())
    refuse("a tile of " + std::to_string(rows) + " rows and " + std::to_string(columns) + " columns is not within " +
           std::to_string(how.rows) + " rows and " + std::to_string(how.columns()) + " columns");
  if (destinations.empty() || destinations.size() > tile_call::most_destinations)
    refuse("a kernel has from 1 to " + std::to_string(tile_call::most_destinations) + " destinations, and not " +
           std::to_string(destinations.size()));
  tile_plan made;
  made.how = how;
  made.rows = rows;
  made.columns = columns;
  made.destinations.assign(destinations.begin(), destinations.end());
  made.finish = finish;
  made.constants = constants_of(made);
  return made;
}

}  // namespace collage::inline v0::detail::jit
