// The search spaces of the backend's matches, with the texts of its configurations.
#include "attention_kernel.hpp"
#include "attention_space.hpp"
#include "byte_depthwise_kernel.hpp"
#include "convolution_kernel.hpp"
#include "convolution_point.hpp"
#include "convolution_space.hpp"
#include "depthwise_kernel.hpp"
#include "depthwise_spaces.hpp"
#include "direct_kernel.hpp"
#include "direct_space.hpp"
#include "kernel_family.hpp"
#include "machine.hpp"
#include "matches.hpp"
#include "product_point.hpp"
#include "product_space.hpp"

#include <collage/backends/jit.hpp>
#include <collage/error.hpp>
#include <collage/tune/any_space.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace collage::inline v0 {
namespace detail::jit {
namespace {

using space_pointer = std::shared_ptr<const tune::any_space>;

/// The size of a cache; the usual one where the system hides it.
[[maybe_unused]] std::int64_t cache_bytes(int name, std::int64_t usual) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : usual;
}

}  // namespace

tune::machine machine_of(instruction_set set, int threads) {
  const convolution_machine here = this_machine();
  tune::machine made;
  made.lanes = lanes_of(set);
  made.registers = registers_of(set);
  made.threads = threads;
  made.second_level_bytes = here.second_level_bytes;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  made.first_level_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, made.first_level_bytes);
  // Some processors sum up several caches, of which a core has one.
  made.third_level_bytes = std::min(cache_bytes(_SC_LEVEL3_CACHE_SIZE, made.third_level_bytes), made.third_level_bytes);
#endif
  return made;
}

namespace {

/// A text of `product_point`.
struct product_text {
  const scheme* algorithm = nullptr;

  std::string operator()(const product_space& s, const product_space::point& p) const {
    return product_point{algorithm, s.configuration_of(p)}.text();
  }
  std::optional<product_space::point> parse(const product_space&, std::string_view words) const {
    const product_point::reading read = product_point::read(words);
    if (!read.point) return {};
    const configuration& c = read.point->how;
    return product_space::point{c.rows, c.vectors, c.unroll, c.prefetch, static_cast<int>(c.broadcast)};
  }
};

space_pointer space_of_products(const any_match& m, const product_match& shape, const collage::configuration& like,
                                int threads) {
  const product_point::reading read = product_point::read(like.text());
  if (!read.point) return nullptr;
  const scheme& s = *read.point->algorithm;
  std::int64_t widest = 0;  // a tile is within one result
  for (const product_match& p : products_in(m)) widest = std::max(widest, p.n);
  const auto block = [](std::int64_t extent, std::size_t parts) {
    return parts_of_extent(extent, static_cast<std::int64_t>(parts));
  };
  const product_task task = {.m = block(shape.m, s.rows),
                             .n = block(widest, s.columns),
                             .k = block(shape.k, s.inner),
                             .spare = spare_registers(needs_many_registers(m, shape)),
                             .has_one_broadcast = true};
  return std::make_shared<const tune::any_space>(product_space(task, machine_of(read.point->how.set, threads)),
                                                 product_text{&s});
}

/// A text of `convolution_point`.
struct convolution_text {
  image_layout from = image_layout::plain, to = image_layout::plain;

  std::string operator()(const convolution_space& s, const convolution_space::point& p) const {
    return convolution_point{s.configuration_of(p), from, to}.text();
  }
  std::optional<convolution_space::point> parse(const convolution_space& s, std::string_view words) const {
    const convolution_point::reading read = convolution_point::read(words);
    if (!read.point) return {};
    return tune::own_text().parse(s, to_text(read.point->how));
  }
};

space_pointer space_of_convolution(const any_match& m, const product_match& shape, const collage::configuration& like,
                                   int threads) {
  const convolution_point::reading read = convolution_point::read(like.text());
  if (!read.point) return nullptr;
  convolution_shape s = convolution_of(m, shape);
  s.from = read.point->from;
  s.to = read.point->to;
  convolution_space space(s, machine_of(read.point->how.product.set, threads));
  if (!space.task_fault().empty()) return nullptr;
  return std::make_shared<const tune::any_space>(std::move(space), convolution_text{s.from, s.to});
}

space_pointer space_of_depthwise(const any_match& m, const product_match& shape, const collage::configuration& like,
                                 int threads) {
  try {
    const depthwise_configuration c = parse_depthwise_configuration(like.text());
    const depthwise_task task = {depthwise_of(m, shape), shape.n, spare_registers(needs_many_registers(m, shape))};
    return std::make_shared<const tune::any_space>(depthwise_space(task, machine_of(c.product.set, threads)));
  } catch (const error&) { return nullptr; }
}

space_pointer space_of_direct(const any_match& m, const product_match& shape, const collage::configuration& like,
                              int threads) {
  try {
    const direct_configuration c = parse_direct_configuration(like.text());
    const direct_task task = {direct_of(m, shape), spare_registers(needs_many_registers(m, shape))};
    return std::make_shared<const tune::any_space>(direct_space(task, machine_of(c.product.set, threads)));
  } catch (const error&) { return nullptr; }
}

space_pointer space_of_attention(const any_match& m, const collage::configuration& like, int threads) {
  try {
    const attention_configuration c = parse_attention_configuration(like.text());
    const attention_task task = {attention_of(m), spare_registers(false)};
    return std::make_shared<const tune::any_space>(attention_space(task, machine_of(c.product.set, threads)));
  } catch (const error&) { return nullptr; }
}

space_pointer space_of_bytes(const any_match& m, const collage::configuration& like) {
  try {
    if (parse_byte_depthwise_configuration(like.text()).is_replica()) return nullptr;
    return std::make_shared<const tune::any_space>(byte_depthwise_space(byte_depthwise_of(m)));
  } catch (const error&) { return nullptr; }
}

}  // namespace
}  // namespace detail::jit

std::shared_ptr<const tune::any_space> jit::search_space(const any_match& m, const configuration& like, int threads) {
  using namespace detail::jit;
  switch (family_of(m, like.text())) {
    case kernel_family::bytes: return space_of_bytes(m, like);
    case kernel_family::attention: return space_of_attention(m, like, threads);
    case kernel_family::direct: return space_of_direct(m, product_match(m), like, threads);
    case kernel_family::bilinear: return space_of_convolution(m, product_match(m), like, threads);
    case kernel_family::depthwise: return space_of_depthwise(m, product_match(m), like, threads);
    default: return space_of_products(m, product_match(m), like, threads);
  }
}

}  // namespace collage::inline v0
