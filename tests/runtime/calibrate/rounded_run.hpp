// Runs of networks whose values are rounded as 8-bit numbers between kernels would be.
#pragma once

#include <collage/calibrate/ranges.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/matmul.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>

#include <calibrate/parts.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace collage_test {

/// An engine without fusion, so that every value can be rounded.
inline collage::dynamic_engine unfused_engine(const collage::graph& network, collage::backend_table table) {
  const auto packed = std::make_shared<collage::packed_weights>();
  const auto placed = collage::detail::place_unfused(network, table, 1, packed);
  return {network, placed.made, table, 1, packed};
}

/// The network with rounded weights of convolutions and products.
inline collage::graph with_rounded_weights(collage::graph network, const collage::graph_ranges& ranges) {
  for (const collage::value_range& v : ranges.values) {
    if (network.at(v.value).role != collage::value_role::constant || v.how.element != collage::dtype::i8 ||
        !v.has_numbers())
      continue;
    const collage::tensor_type& type = network.type_of(v.value);
    const std::shared_ptr<std::byte> bytes = collage::allocate_bytes(type.bytes());
    std::memcpy(bytes.get(), network.bytes_of(v.value).data(), type.bytes());
    collage::round_to(v.how, {reinterpret_cast<float*>(bytes.get()), type.bytes() / sizeof(float)}, type.dims);
    network.set_bytes(v.value, bytes);
  }
  return network;
}

/// Rounds what each step writes: everything, or only what convolutions and products read.
struct rounding {
  const collage::graph& network;
  const collage::graph_ranges& ranges;
  const collage::dynamic_engine& engine;
  bool is_for_products = false;

  bool rounds(std::uint32_t value) const {
    if (!is_for_products) return true;
    for (const collage::use& by : network.view().uses_of(value)) {
      const std::uint64_t kind = network.view().kind_id_of(by.node);
      if (kind == collage::kind_id<struct collage::ops::conv> || kind == collage::kind_id<struct collage::ops::matmul>)
        return true;
    }
    return false;
  }
  static void after(void* data, std::size_t step, const collage::dynamic_context& context) {
    const auto& self = *static_cast<const rounding*>(data);
    const std::uint32_t v = self.engine.steps()[step].output;
    const collage::value_range* const range = collage::find_range(self.ranges, v);
    if (range == nullptr || !range->has_numbers() || !self.rounds(v)) return;
    auto* const numbers = static_cast<float*>(const_cast<void*>(context.data_of(v)));
    const collage::shape& dims = self.network.type_of(v).dims;
    collage::round_to(range->how, {numbers, static_cast<std::size_t>(dims.elements())}, dims);
  }
  void run(const collage::run_buffers& memory) {
    engine.context().run(memory.inputs, memory.outputs, {.data = this, .before = nullptr, .after = &rounding::after});
  }
};

/// The squared error of a result, and the square of what was expected.
struct squared_error {
  double error = 0, square = 0;
  void add(std::span<const float> expected, std::span<const float> found) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double a = static_cast<double>(expected[i]), b = static_cast<double>(found[i]);
      square += a * a;
      error += (a - b) * (a - b);
    }
  }
  double relative() const { return std::sqrt(error / square); }
};

}  // namespace collage_test
