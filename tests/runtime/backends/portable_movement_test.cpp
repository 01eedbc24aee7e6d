// The backend `portable`: its loops for what moves elements or goes along an axis against the reference, bit for bit, over
// random shapes and all sizes of elements, with one thread and two.
#include "support/backend_check.hpp"
#include "support/reference_check.hpp"

#include <collage/backends/portable.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace backends_portable_movement_test {

using namespace collage_test::reference;
using collage::tensor_type;

constexpr dtype types[] = {dtype::u8,  dtype::boolean,    dtype::f16,    dtype::i16,    dtype::f32,
                           dtype::i32, dtype::f64,        dtype::u64,    dtype::i64,    dtype::i4,
                           dtype::u2,  dtype::f8e4m3fnuz, dtype::f8e5m2, dtype::f8e8m0, dtype::f4e2m1};

struct operand {
  tensor_type type;
  std::shared_ptr<const std::byte> bytes;
};
operand stored(const oracle_value& v) { return {v.type, bytes_of(v)}; }

/// Builds the loops' kernel for one node and compares all its outputs with the reference, or with what is wanted instead.
template <class K>
void check(const K& kind, const std::vector<oracle_value>& in, const typename K::attributes& attributes = {},
           const std::vector<oracle_value>& wanted_instead = {}) {
  std::vector<operand> given;
  for (const oracle_value& v : in) given.push_back(stored(v));
  collage::graph_builder g;
  std::vector<collage::value> operands;
  for (std::size_t i = 0; i < given.size(); ++i) operands.push_back(g.input("x" + std::to_string(i), given[i].type));
  const collage::value first = g(kind, std::span<const collage::value>(operands), attributes);
  for (std::uint32_t i = 0; i < K::outputs; ++i) g.output("y" + std::to_string(i), collage::value{first.index + i});
  const collage::graph network = g.finish();
  std::string what = K::name;
  std::vector<collage::const_tensor_view> views;
  for (const operand& o : given) {
    what += ' ' + std::string(name_of(o.type.type)) + text_of(o.type.dims);
    views.emplace_back(o.bytes.get(), o.type);
  }
  const std::vector<oracle_value> expected =
      wanted_instead.empty() ? collage::evaluate(network, views) : wanted_instead;

  const collage::backend_entry& table = collage::table_of<collage::backend_set<collage::portable>>[0];
  const auto loops = std::find_if(table.patterns.begin(), table.patterns.end(),
                                  [](const auto& p) { return std::string(p.name) == "loops"; });
  ASSERT_NE(loops, table.patterns.end());
  collage::match_record record;
  ASSERT_TRUE(collage::match_at(network.view(), loops->nodes, 0, record)) << what;
  ASSERT_TRUE(bool(loops->accepts(network.view(), record))) << what;
  collage::packed_weights packed;
  for (int threads = 1; threads <= 2; ++threads) {
    collage::build_context context(network, threads, packed);
    const collage::kernel built = loops->build(network.view(), record, context);
    std::vector<const void*> in_pointers;
    for (const std::uint32_t argument : record.argument_list())
      for (std::size_t i = 0; i < network.inputs().size(); ++i)
        if (network.inputs()[i] == argument) in_pointers.push_back(given[i].bytes.get());
    std::vector<collage_test::guarded_memory> out;
    out.reserve(expected.size());
    std::vector<void*> out_pointers;
    for (const oracle_value& v : expected) {
      out.emplace_back(v.type.bytes(), size_of(v.type.type), static_cast<unsigned char>(0x5A));
      out_pointers.push_back(out.back().data());
    }
    const collage_test::guarded_memory workspace(built.workspace(), 0, 0x5A);
    const int token = table.enter(threads);
    const std::size_t before = collage_test::allocations();
    built(collage::kernel_call{in_pointers.data(), out_pointers.data(), workspace.data()});
    EXPECT_EQ(collage_test::allocations(), before) << what << ": it allocated";
    table.leave(token);
    ASSERT_TRUE(workspace.intact()) << what << ": it wrote outside its workspace";
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(out[i].intact()) << what << ": it wrote outside output " << i;
      const operand wanted = stored(expected[i]);
      const std::size_t bytes = wanted.type.bytes();
      ASSERT_TRUE(bytes == 0 || std::memcmp(out[i].data(), wanted.bytes.get(), bytes) == 0)
          << what << ": output " << i << " differs from the reference, " << threads << " threads";
    }
  }
}

/// Shapes that are sometimes large enough for blocks, and for more than one thread.
shape some_dims(random_source& random, std::int64_t least_rank) {
  shape s = random.dims(random.number(least_rank, 5));
  if (!s.empty() && s.elements() < 400 && random.chance(0.3))
    s[static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(s.size()) - 1))] = random.number(20, 90);
  return s;
}
oracle_value some_tensor(random_source& random, const shape& dims) {
  return random.tensor(dims, types[random.number(0, std::ssize(types) - 1)], 0.1);
}
std::int64_t some_axis(random_source& random, const shape& dims) {
  return random.number(0, static_cast<std::int64_t>(dims.size()) - 1);
}
oracle_value indices(random_source& random, const shape& dims, const shape& extents) {
  oracle_value v(tensor_type{random.chance(0.5) ? dtype::i64 : dtype::i32, dims});
  for (std::size_t i = 0; i < v.integer.size(); ++i)
    v.integer[i] = random.number(-extents[i % extents.size()], extents[i % extents.size()] - 1);
  return v;
}
shape some_order(random_source& random, std::size_t rank) {
  shape order;
  for (std::size_t d = 0; d < rank; ++d) order.push_back(static_cast<std::int64_t>(d));
  for (std::size_t d = rank; d > 1; --d)
    std::swap(order[d - 1], order[static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(d) - 1))]);
  return order;
}

TEST(portable_movement, copies_equal_the_reference) {
  random_source random;
  for (int round = 0; round < 100; ++round) {
    const oracle_value x = some_tensor(random, some_dims(random, 1));
    const shape& dims = x.type.dims;
    check(op::transpose, {x}, {.permutation = some_order(random, dims.size())});
    op::slice_attributes slice;
    op::pad_attributes pad{.mode = static_cast<op::pad_mode>(round % 4)};
    shape wider = dims, repeats;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::int64_t start = dims[d] == 0 ? 0 : random.number(0, dims[d] - 1);
      const std::int64_t step = random.chance(0.5) ? 1 : random.number(1, 3) * (random.chance(0.5) ? 1 : -1);
      const std::int64_t most = dims[d] == 0 ? 0 : 1 + (step > 0 ? (dims[d] - 1 - start) / step : start / -step);
      slice.starts.push_back(start);
      slice.steps.push_back(step);
      slice.extents.push_back(random.chance(0.7) ? most : random.number(0, most));
      const bool fixed = random.chance(0.5) || (pad.mode != op::pad_mode::constant && dims[d] < 3);
      pad.pads_begin.push_back(fixed ? 0 : random.number(dims[d] > 2 ? -1 : 0, 5));
      pad.pads_end.push_back(fixed ? 0 : random.number(dims[d] > 2 ? -1 : 0, 5));
      if (dims[d] == 1) wider[d] = random.number(0, 5);
      repeats.push_back(random.number(random.chance(0.1) ? 0 : 1, 3));
    }
    check(op::slice, {x}, slice);
    check(op::expand, {x}, {.dims = wider});
    check(op::tile, {x}, {.repeats = repeats});
    if (pad.mode == op::pad_mode::constant && random.chance(0.5))
      check(op::pad, {x, random.tensor({}, x.type.type)}, pad);
    else check(op::pad, {x}, pad);
    const std::int64_t axis = some_axis(random, dims);
    std::vector<oracle_value> parts;
    for (std::int64_t k = random.number(1, 4); k > 0; --k) {
      shape own = dims;
      own[static_cast<std::size_t>(axis)] = random.number(0, 9);
      parts.push_back(random.tensor(own, x.type.type));
    }
    check(op::concat, parts, {.axis = axis});
    if (dims.size() < 2) continue;
    check(op::trilu, {x}, {.upper = random.chance(0.5), .k = random.number(-9, 9)});
    const shape order = some_order(random, dims.size());
    const std::int64_t batch = dims[static_cast<std::size_t>(order[0])],
                       time = dims[static_cast<std::size_t>(order[1])];
    oracle_value lengths(tensor_type{random.chance(0.5) ? dtype::i64 : dtype::i32, {batch}});
    for (std::int64_t& length : lengths.integer) length = random.number(0, time);
    check(op::reverse_sequence, {x, lengths}, {.batch_axis = order[0], .time_axis = order[1]});
  }
}

TEST(portable_movement, large_copies_equal_the_reference) {
  random_source random;
  for (const dtype type : {dtype::u8, dtype::i16, dtype::f32, dtype::f64}) {
    check(op::transpose, {random.tensor({257, 301}, type)}, {.permutation = {1, 0}});
    check(op::transpose, {random.tensor({2, 20000, 3}, type)}, {.permutation = {0, 2, 1}});
    check(op::transpose, {random.tensor({3, 8, 67, 71}, type)}, {.permutation = {2, 0, 3, 1}});
    check(op::expand, {random.tensor({150, 1}, type)}, {.dims = {2, 150, 300}});
    check(op::slice, {random.tensor({300, 401}, type)},
          {.starts = {299, 400}, .steps = {-1, -2}, .extents = {300, 201}});
    check(op::concat, {random.tensor({300, 300}, type), random.tensor({300, 7}, type)}, {.axis = 1});
    check(op::pad, {random.tensor({2, 150, 300}, type)},
          {.pads_begin = {0, 2, 3}, .pads_end = {0, 1, 4}, .mode = op::pad_mode::reflect});
  }
}

TEST(portable_movement, gathers_and_scatters_equal_the_reference) {
  random_source random;
  for (int round = 0; round < 100; ++round) {
    shape dims = some_dims(random, 1);
    for (std::size_t d = 0; d < dims.size(); ++d) dims[d] = std::max<std::int64_t>(dims[d], 1);
    const oracle_value x = some_tensor(random, dims);
    const std::int64_t axis = some_axis(random, dims);
    const shape along{dims[static_cast<std::size_t>(axis)]};
    check(op::gather, {x, indices(random, random.dims(random.number(0, 3)), along)}, {.axis = axis});
    shape listed = dims;
    for (std::size_t d = 0; d < dims.size(); ++d) listed[d] = random.chance(0.5) ? dims[d] : random.number(0, dims[d]);
    listed[static_cast<std::size_t>(axis)] = random.number(0, 9);
    const oracle_value list = indices(random, listed, along);
    check(op::gather_elements, {x, list}, {.axis = axis});
    check(op::scatter_elements, {x, list, random.tensor(listed, x.type.type)}, {.axis = axis});

    const std::int64_t shared = random.number(0, static_cast<std::int64_t>(dims.size()));
    const std::int64_t depth = random.number(0, static_cast<std::int64_t>(dims.size()) - shared);
    shape places, extents, slices;
    for (std::int64_t d = 0; d < shared; ++d) places.push_back(dims[static_cast<std::size_t>(d)]);
    if (random.chance(0.6)) places.push_back(random.number(0, 9));
    places.push_back(depth);
    for (std::int64_t d = 0; d < depth; ++d) extents.push_back(dims[static_cast<std::size_t>(shared + d)]);
    if (extents.empty()) extents = {1};
    check(op::gather_nd, {x, indices(random, places, extents)}, {.batch_dims = shared});
    if (shared != 0) continue;
    for (std::size_t d = 0; d + 1 < places.size(); ++d) slices.push_back(places[d]);
    for (std::size_t d = static_cast<std::size_t>(depth); d < dims.size(); ++d) slices.push_back(dims[d]);
    check(op::scatter_nd, {x, indices(random, places, extents), random.tensor(slices, x.type.type)});
  }
  check(op::gather, {random.tensor({40000, 9}), indices(random, {30000}, {40000})});
}

// The reference refuses these; a kernel must stay inside its operands and takes the nearest element.
TEST(portable_movement, indices_outside_count_as_the_nearest_inside) {
  constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t high = std::numeric_limits<std::int64_t>::max();
  const oracle_value x = reals({3}, {1, 2, 3}), list = integers({4}, {low, -4, 3, high});
  const oracle_value column = integers({4, 1}, list.integer), two = reals({4}, {7, 8, 9, 4});
  check(op::gather, {x, list}, {}, {reals({4}, {1, 1, 3, 3})});
  check(op::gather_elements, {x, list}, {}, {reals({4}, {1, 1, 3, 3})});
  check(op::gather_nd, {x, column}, {}, {reals({4}, {1, 1, 3, 3})});
  check(op::scatter_elements, {x, list, two}, {}, {reals({3}, {8, 2, 4})});
  check(op::scatter_nd, {x, column, two}, {}, {reals({3}, {8, 2, 4})});
  check(op::gather, {reals({0, 2}, {}), integers({2}, {0, 5})}, {}, {reals({2, 2}, {0, 0, 0, 0})});
  check(op::gather_elements, {reals({0}, {}), integers({1}, {0})}, {}, {reals({1}, {0})});
  check(op::reverse_sequence, {reals({3, 2}, {1, 2, 3, 4, 5, 6}), integers({2}, {low, high})}, {},
        {reals({3, 2}, {1, 6, 3, 4, 5, 2})});
}

TEST(portable_movement, what_goes_along_an_axis_equals_the_reference) {
  random_source random;
  for (int round = 0; round < 100; ++round) {
    shape dims = some_dims(random, 1);
    for (std::size_t d = 0; d < dims.size(); ++d) dims[d] = std::max<std::int64_t>(dims[d], 1);
    if (round == 0) dims = {3, 50, 600};
    if (round == 1) dims = {400, 60};
    oracle_value x = random.tensor(dims, random.chance(0.5) ? dtype::f32 : dtype::i64, 0.1);
    for (double& e : x.real) e = std::round(e * 2);
    const std::int64_t axis = some_axis(random, dims);
    const std::int64_t k = random.number(0, dims[static_cast<std::size_t>(axis)]);
    check(op::top_k, {x}, {.k = k, .axis = axis, .largest = random.chance(0.5)});
    const op::arg_attributes a{.axis = axis, .keep_dims = random.chance(0.5), .select_last = random.chance(0.5)};
    check(op::arg_max, {x}, a);
    check(op::arg_min, {x}, a);
    // NaN of either sign would come out of infinities, and bits are compared.
    check(op::cumulative_sum, {random.tensor(dims, x.type.type)},
          {.axis = axis, .exclusive = random.chance(0.5), .reverse = random.chance(0.5)});
  }
}

}  // namespace backends_portable_movement_test
