// How running products are lowered, against products over all indices.
#ifdef COLLAGE_HAS_ONNX
#include <cstdint>
#include <string>

#include "live_node.hpp"
#include "support/reference_check.hpp"
#include "writer.hpp"

namespace onnx_lower_indexing_test {

using namespace collage_test;
using namespace collage_test::reference;

TEST(onnx_cumulative_product, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    const std::int64_t rank = random.number(1, 4), axis = random.number(0, rank - 1);
    const bool exclusive = random.chance(0.5), reverse = random.chance(0.5);
    const auto along = static_cast<std::size_t>(axis);
    const oracle_value x = random.tensor(random.dims(rank), random.chance(0.5) ? dtype::f64 : dtype::i64);
    live_node n(26, {x});
    add_initializer(*n.model.mutable_graph(),
                    tensor_of<std::int64_t>("axis", {}, {axis - (random.chance(0.5) ? rank : 0)}));
    n.operands.push_back("axis");
    n.finish("CumProd", 1, {attribute("exclusive", exclusive ? 1 : 0), attribute("reverse", reverse ? 1 : 0)});
    oracle_value wanted(x.type);
    for_each_index(x.type.dims, [&](const multi_index& i) {
      double real = 1;
      std::uint64_t integer = 1;  // wraps around
      for (multi_index j = i; j[along] >= 0 && j[along] < x.type.dims[along]; j[along] += reverse ? 1 : -1) {
        if (exclusive && j == i) continue;
        if (x.real.empty()) integer *= static_cast<std::uint64_t>(x.integer[at(x.type.dims, j)]);
        else real *= x.real[at(x.type.dims, j)];
      }
      if (x.real.empty()) wanted.integer[at(x.type.dims, i)] = static_cast<std::int64_t>(integer);
      else wanted.real[at(x.type.dims, i)] = real;
    });
    expect_same(n.computed().at(0), wanted, "axis " + std::to_string(axis) + " of " + text_of(x.type.dims));
    if (HasFatalFailure()) return;
  }
}

}  // namespace onnx_lower_indexing_test
#endif
