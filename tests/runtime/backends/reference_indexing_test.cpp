// Operators that copy parts, read and write by index, and order elements: the reference against definitions by index
// arithmetic over all coordinates, and shape rules against any attributes.
#include "support/reference_check.hpp"

#include <algorithm>
#include <span>

namespace backends_reference_indexing_test {

using namespace collage_test::reference;

constexpr dtype types[] = {dtype::f32, dtype::f64, dtype::f16, dtype::i64,
                           dtype::u64, dtype::i32, dtype::u8,  dtype::boolean};

dtype any_type(random_source& random) { return types[random.number(0, std::ssize(types) - 1)]; }
std::int64_t extent_of(const shape& s, std::size_t d) { return s[d]; }
std::size_t some_axis(random_source& random, const shape& dims) {
  return static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(dims.size()) - 1));
}
/// The axis as it is, or counted from the end.
std::int64_t written(random_source& random, std::size_t axis, const shape& dims) {
  return static_cast<std::int64_t>(axis) - (random.chance(0.5) ? static_cast<std::int64_t>(dims.size()) : 0);
}
void copy(oracle_value& to, std::size_t i, const oracle_value& from, std::size_t j) {
  if (collage::is_floating(to.type.type)) to.real[i] = from.real[j];
  else to.integer[i] = from.integer[j];
}
/// Indices in [-extent, extent), the extent depending on where in the list they are.
template <class Extent>
oracle_value indices_for(random_source& random, const shape& dims, const Extent& extent) {
  oracle_value v(collage::tensor_type{random.chance(0.5) ? dtype::i64 : dtype::i32, dims});
  for_each_index(dims, [&](const multi_index& i) {
    const std::int64_t e = extent(i);
    v.integer[at(dims, i)] = random.number(-e, e - 1);
  });
  return v;
}
std::int64_t from_start(std::int64_t index, std::int64_t extent) { return index < 0 ? index + extent : index; }

/// Checks an output whose element at index o is x's at source(o), or `other`'s only one where that is empty.
template <class Source>
void expect_moved(const oracle_value& y, const shape& dims, const oracle_value& x, const Source& source,
                  const std::string& what, const oracle_value* other = nullptr) {
  ASSERT_EQ(text_of(y.type.dims), text_of(dims)) << what;
  oracle_value expected(collage::tensor_type{x.type.type, dims});
  for_each_index(dims, [&](const multi_index& o) {
    const multi_index i = source(o);
    if (i.size() == x.type.dims.size()) copy(expected, at(dims, o), x, at(x.type.dims, i));
    else if (other != nullptr) copy(expected, at(dims, o), *other, 0);
  });
  expect_same(y, expected, what + " of " + text_of(x.type.dims));
}

TEST(indexing, slice_agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    const oracle_value x = random.tensor(random.dims(random.number(0, 5)), any_type(random), 0.1);
    op::slice_attributes a;
    for (const std::int64_t extent : x.type.dims) {
      const std::int64_t start = extent == 0 ? 0 : random.number(0, extent - 1);
      const std::int64_t step = random.number(1, 4) * (random.chance(0.5) ? 1 : -1);
      const std::int64_t most = extent == 0 ? 0 : 1 + (step > 0 ? (extent - 1 - start) / step : start / -step);
      a.starts.push_back(start);
      a.steps.push_back(step);
      a.extents.push_back(random.number(0, most));
    }
    expect_moved(
        run(op::slice, {x}, a), a.extents, x,
        [&](multi_index o) {
          for (std::size_t d = 0; d < o.size(); ++d) o[d] = a.starts[d] + o[d] * a.steps[d];
          return o;
        },
        "slice");
  }
}

TEST(indexing, equal_slices_have_equal_records) {
  op::slice_attributes a{.starts = {3, 2}, .steps = {-5, 7}, .extents = {0, 1}};
  op::slice_attributes b{.starts = {0, 2}, .steps = {2, -1}, .extents = {0, 1}};
  op::slice.normalise(a, {});
  op::slice.normalise(b, {});
  const collage::attribute_words x = collage::to_words(a), y = collage::to_words(b);
  EXPECT_TRUE(std::ranges::equal(x.list(), y.list()));
}

TEST(indexing, expand_and_tile_agree_with_their_definitions) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    shape to = random.dims(random.number(0, 5));
    shape from, given;
    for (std::size_t d = static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(to.size())));
         d < to.size(); ++d)
      from.push_back(random.chance(0.4) ? 1 : to[d]);
    // What the target leaves at 1 comes from the input, leading dimensions too.
    for (std::size_t d = 0; d < to.size(); ++d) {
      const std::size_t back = to.size() - d;
      const bool same = back <= from.size() && from[from.size() - back] == to[d];
      if (given.empty() && same && random.chance(0.3)) continue;
      given.push_back(same && random.chance(0.5) ? 1 : to[d]);
    }
    const oracle_value x = random.tensor(from, any_type(random), 0.1);
    expect_moved(
        run(op::expand, {x}, {.dims = given}), to, x,
        [&](const multi_index& o) {
          multi_index i(o.end() - static_cast<std::ptrdiff_t>(from.size()), o.end());
          for (std::size_t d = 0; d < i.size(); ++d) i[d] = from[d] == 1 ? 0 : i[d];
          return i;
        },
        "expand");
    shape repeats, tiled;
    for (const std::int64_t extent : from) {
      repeats.push_back(random.number(random.chance(0.1) ? 0 : 1, 3));
      tiled.push_back(extent * repeats[repeats.size() - 1]);
    }
    expect_moved(
        run(op::tile, {x}, {.repeats = repeats}), tiled, x,
        [&](multi_index o) {
          for (std::size_t d = 0; d < o.size(); ++d) o[d] %= from[d];
          return o;
        },
        "tile");
  }
}

/// Where a walk from index 0 of `extent` elements, one step for each place of padding, comes to.
std::int64_t walked(op::pad_mode mode, std::int64_t place, std::int64_t extent) {
  std::int64_t i = 0, step = place < 0 ? -1 : 1;
  for (std::int64_t done = 0; done != place; done += place < 0 ? -1 : 1) {
    if (mode == op::pad_mode::edge) i = std::clamp<std::int64_t>(i + step, 0, extent - 1);
    if (mode == op::pad_mode::wrap) i = (i + step + extent) % extent;
    if (mode == op::pad_mode::reflect && extent > 1) {
      if (i + step < 0 || i + step == extent) step = -step;
      i += step;
    }
  }
  return i;
}

TEST(indexing, pad_agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 400; ++round) {
    const oracle_value x = random.tensor(random.dims(random.number(0, 4)), any_type(random), 0.1);
    const shape& dims = x.type.dims;
    op::pad_attributes a{.mode = static_cast<op::pad_mode>(round % 4)};
    shape padded, cut, left;
    for (const std::int64_t extent : dims) {
      const std::int64_t low = extent > 1 ? -1 : 0;
      const bool keeps = a.mode != op::pad_mode::constant && extent + 2 * low <= 0;
      a.pads_begin.push_back(keeps ? 0 : random.number(low, 9));
      a.pads_end.push_back(keeps ? 0 : random.number(low, 9));
      const std::int64_t begin = a.pads_begin[padded.size()], end = a.pads_end[padded.size()];
      cut.push_back(begin < 0 ? 1 : 0);
      left.push_back(extent - cut[padded.size()] - (end < 0 ? 1 : 0));
      padded.push_back(begin + extent + end);
    }
    std::vector<oracle_value> in{x};
    const oracle_value value = random.tensor(random.chance(0.5) ? shape{} : shape{1}, x.type.type);
    const bool given = a.mode == op::pad_mode::constant && random.chance(0.5);
    if (given) in.push_back(value);
    expect_moved(
        run(op::pad, in, a), padded, x,
        [&](const multi_index& o) {
          multi_index i;
          for (std::size_t d = 0; d < o.size(); ++d) {
            const std::int64_t place = o[d] - std::max<std::int64_t>(a.pads_begin[d], 0);
            const bool outside = place < 0 || place >= left[d];
            if (a.mode == op::pad_mode::constant && outside) return multi_index(o.size() + 1);
            i.push_back(cut[d] + (outside ? walked(a.mode, place, left[d]) : place));
          }
          return i;
        },
        "pad in mode " + std::to_string(round % 4), given ? &value : nullptr);
  }
  const oracle_value all_cut = run(op::pad, {reals({4}, {1, 2, 3, 4})}, {.pads_begin = {-5}, .pads_end = {2}});
  expect_same(all_cut, reals({1}, {0}), "what is cut off and padded again");
}

TEST(indexing, gathers_agree_with_their_definitions) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    const oracle_value x = random.tensor(random.dims(random.number(1, 5), false), any_type(random), 0.1);
    const shape& dims = x.type.dims;
    const std::size_t axis = some_axis(random, dims);
    const std::int64_t extent = dims[axis];
    // gather
    oracle_value indices =
        indices_for(random, random.dims(random.number(0, 3)), [&](const multi_index&) { return extent; });
    const std::size_t rank = indices.type.dims.size();
    shape out;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (d != axis) out.push_back(dims[d]);
      else
        for (const std::int64_t e : indices.type.dims) out.push_back(e);
    }
    const auto in_axis = static_cast<std::ptrdiff_t>(axis);
    expect_moved(
        run(op::gather, {x, indices}, {.axis = written(random, axis, dims)}), out, x,
        [&](multi_index o) {
          const auto first = o.begin() + in_axis;
          const auto last = first + static_cast<std::ptrdiff_t>(rank);
          const std::int64_t index = indices.integer[at(indices.type.dims, multi_index(first, last))];
          o.insert(o.erase(first, last), from_start(index, extent));
          return o;
        },
        "gather");
    // gather_elements
    shape listed;
    for (std::size_t d = 0; d < dims.size(); ++d)
      listed.push_back(d == axis ? random.number(0, 6) : random.number(1, dims[d]));
    indices = indices_for(random, listed, [&](const multi_index&) { return extent; });
    expect_moved(
        run(op::gather_elements, {x, indices}, {.axis = written(random, axis, dims)}), listed, x,
        [&](multi_index o) {
          o[axis] = from_start(indices.integer[at(listed, o)], extent);
          return o;
        },
        "gather_elements");
    // gather_nd
    const auto shared = static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(dims.size())));
    const auto depth = static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(dims.size() - shared)));
    shape places;
    for (std::size_t d = 0; d < shared; ++d) places.push_back(dims[d]);
    for (std::int64_t more = random.number(0, 2); more > 0; --more) places.push_back(random.number(0, 4));
    out = places;
    for (std::size_t d = shared + depth; d < dims.size(); ++d) out.push_back(dims[d]);
    if (out.size() > shape::max_rank) continue;
    const std::size_t rows = places.size();
    places.push_back(static_cast<std::int64_t>(depth));
    indices = indices_for(random, places, [&](const multi_index& i) {
      return extent_of(dims, shared + static_cast<std::size_t>(i.back()));
    });
    expect_moved(
        run(op::gather_nd, {x, indices}, {.batch_dims = static_cast<std::int64_t>(shared)}), out, x,
        [&](const multi_index& o) {
          const auto begin = o.begin();
          multi_index i(begin, begin + static_cast<std::ptrdiff_t>(shared));
          multi_index row(begin, begin + static_cast<std::ptrdiff_t>(rows));
          row.push_back(0);
          for (std::size_t d = 0; d < depth; ++d) {
            row.back() = static_cast<std::int64_t>(d);
            i.push_back(from_start(indices.integer[at(places, row)], dims[shared + d]));
          }
          i.insert(i.end(), begin + static_cast<std::ptrdiff_t>(rows), o.end());
          return i;
        },
        "gather_nd");
  }
}

/// An update to an element of a type, in arithmetic written for this test alone.
void combine(op::scatter_reduction how, oracle_value& to, std::size_t i, const oracle_value& from, std::size_t j) {
  using enum op::scatter_reduction;
  const dtype type = to.type.type;
  if (how == none) return copy(to, i, from, j);
  if (collage::is_floating(type)) {
    const double x = to.real[i], u = from.real[j];
    const bool nan = std::isnan(x) || std::isnan(u);
    to.real[i] = how == sum       ? x + u
                 : how == product ? x * u
                 : nan            ? not_a_number
                 : how == largest ? std::max(x, u)
                                  : std::min(x, u);
    return;
  }
  const std::int64_t x = to.integer[i], u = from.integer[j];
  const auto bx = static_cast<std::uint64_t>(x), bu = static_cast<std::uint64_t>(u);
  const bool below = type == dtype::u64 ? bx < bu : x < u;
  std::uint64_t result = how == sum ? bx + bu : how == product ? bx * bu : (how == largest) == below ? bu : bx;
  if (type == dtype::u8) result &= 0xFF;
  if (type == dtype::boolean) result = result != 0 ? 1 : 0;
  to.integer[i] = type == dtype::i32 ? static_cast<std::int32_t>(result) : static_cast<std::int64_t>(result);
}

TEST(indexing, scatters_agree_with_their_definitions) {
  random_source random;
  for (int round = 0; round < 300; ++round) {
    const auto how = static_cast<op::scatter_reduction>(round % 5);
    const oracle_value x = random.tensor(random.dims(random.number(1, 4), false), any_type(random), 0.05);
    const shape& dims = x.type.dims;
    const std::size_t axis = some_axis(random, dims);
    shape listed;
    for (std::size_t d = 0; d < dims.size(); ++d)
      listed.push_back(d == axis ? random.number(0, 9) : random.number(0, dims[d]));
    oracle_value indices = indices_for(random, listed, [&](const multi_index&) { return extent_of(dims, axis); });
    oracle_value updates = random.tensor(listed, x.type.type, 0.05);
    oracle_value expected = x;
    for_each_index(listed, [&](const multi_index& i) {
      multi_index to = i;
      to[axis] = from_start(indices.integer[at(listed, i)], dims[axis]);
      combine(how, expected, at(dims, to), updates, at(listed, i));
    });
    const op::scatter_elements_attributes a{.axis = written(random, axis, dims), .reduction = how};
    const std::string what = " with reduction " + std::to_string(round % 5) + " into " + text_of(dims);
    expect_same(run(op::scatter_elements, {x, indices, updates}, a), expected, "scatter_elements" + what);

    const auto depth = static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(dims.size())));
    shape places, slices;
    for (std::int64_t more = random.number(0, 2); more > 0; --more) places.push_back(random.number(0, 5));
    slices = places;
    for (std::size_t d = depth; d < dims.size(); ++d) slices.push_back(dims[d]);
    const std::size_t rows = places.size();
    places.push_back(static_cast<std::int64_t>(depth));
    indices = indices_for(random, places,
                          [&](const multi_index& i) { return extent_of(dims, static_cast<std::size_t>(i.back())); });
    updates = random.tensor(slices, x.type.type, 0.05);
    expected = x;
    for_each_index(slices, [&](const multi_index& i) {
      multi_index to, row(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(rows));
      row.push_back(0);
      for (std::size_t d = 0; d < depth; ++d) {
        row.back() = static_cast<std::int64_t>(d);
        to.push_back(from_start(indices.integer[at(places, row)], dims[d]));
      }
      to.insert(to.end(), i.begin() + static_cast<std::ptrdiff_t>(rows), i.end());
      combine(how, expected, at(dims, to), updates, at(slices, i));
    });
    expect_same(run(op::scatter_nd, {x, indices, updates}, {.reduction = how}), expected, "scatter_nd" + what);
  }
}

TEST(indexing, an_index_outside_is_an_error) {
  const oracle_value x = reals({3}, {1, 2, 3});
  for (const std::int64_t outside : {std::int64_t{3}, std::int64_t{-4}, std::numeric_limits<std::int64_t>::min(),
                                     std::numeric_limits<std::int64_t>::max()}) {
    const oracle_value one = integers({1}, {outside});
    EXPECT_THROW((void)run(op::gather, {x, one}), collage::error);
    EXPECT_THROW((void)run(op::gather_elements, {x, one}), collage::error);
    EXPECT_THROW((void)run(op::gather_nd, {x, one}), collage::error);
    EXPECT_THROW((void)run(op::scatter_elements, {x, one, reals({1}, {5})}), collage::error);
    EXPECT_THROW((void)run(op::scatter_nd, {x, one, reals({}, {5})}), collage::error);
  }
  EXPECT_THROW((void)run(op::gather, {reals({0}, {}), integers({1}, {0})}), collage::error);
  const oracle_value square = reals({2, 2}, {1, 2, 3, 4});
  EXPECT_THROW((void)run(op::reverse_sequence, {square, integers({2}, {1, 3})}), collage::error);
  EXPECT_THROW((void)run(op::reverse_sequence, {square, integers({2}, {-1, 1})}), collage::error);
}

TEST(indexing, triangles_and_reversed_sequences_agree_with_their_definitions) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    const oracle_value x = random.tensor(random.dims(random.number(2, 4)), any_type(random), 0.1);
    const shape& dims = x.type.dims;
    const bool upper = random.chance(0.5);
    const std::int64_t k =
        random.chance(0.1) ? (random.chance(0.5) ? 1 : -1) * (std::int64_t{1} << 62) : random.number(-8, 8);
    expect_moved(
        run(op::trilu, {x}, {.upper = upper, .k = k}), dims, x,
        [&](const multi_index& o) {
          const std::int64_t above = o[o.size() - 1] - o[o.size() - 2];
          return (upper ? above >= k : above <= k) ? o : multi_index{};
        },
        "trilu");
    const std::size_t time = some_axis(random, dims);
    const std::size_t batch =
        (time + static_cast<std::size_t>(random.number(1, static_cast<std::int64_t>(dims.size()) - 1))) % dims.size();
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < dims[batch]; ++b) lengths.push_back(random.number(0, dims[time]));
    expect_moved(
        run(op::reverse_sequence, {x, integers({dims[batch]}, lengths)},
            {.batch_axis = written(random, batch, dims), .time_axis = written(random, time, dims)}),
        dims, x,
        [&](multi_index o) {
          const std::int64_t length = lengths[static_cast<std::size_t>(o[batch])];
          if (o[time] < length) o[time] = length - 1 - o[time];
          return o;
        },
        "reverse_sequence");
  }
}

TEST(indexing, cumulative_sum_agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    const dtype type = types[random.number(0, 6)];
    const oracle_value x = random.tensor(random.dims(random.number(1, 4)), type);
    const shape& dims = x.type.dims;
    const std::size_t axis = some_axis(random, dims);
    const op::cumulative_sum_attributes a{
        .axis = written(random, axis, dims), .exclusive = random.chance(0.5), .reverse = random.chance(0.5)};
    oracle_value expected(x.type);
    for_each_index(dims, [&](const multi_index& o) {
      for (std::int64_t i = 0; i < dims[axis]; ++i) {
        if (a.reverse ? i < o[axis] : i > o[axis]) continue;
        if (a.exclusive && i == o[axis]) continue;
        multi_index from = o;
        from[axis] = i;
        combine(op::scatter_reduction::sum, expected, at(dims, o), x, at(dims, from));
      }
    });
    expect_same(run(op::cumulative_sum, {x}, a), expected, "cumulative_sum of " + text_of(dims));
  }
}

/// Whether element i of a tensor is larger than element j; NaN is larger than numbers.
bool is_larger(const oracle_value& x, std::size_t i, std::size_t j) {
  if (collage::is_floating(x.type.type))
    return x.real[i] > x.real[j] || (std::isnan(x.real[i]) && !std::isnan(x.real[j]));
  if (x.type.type == dtype::u64)
    return static_cast<std::uint64_t>(x.integer[i]) > static_cast<std::uint64_t>(x.integer[j]);
  return x.integer[i] > x.integer[j];
}

TEST(indexing, the_largest_and_smallest_agree_with_their_definitions) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    oracle_value x = random.tensor(random.dims(random.number(1, 4), false), any_type(random), 0.2);
    for (double& e : x.real) e = std::round(e);  // so that there are equal ones
    const shape& dims = x.type.dims;
    const std::size_t axis = some_axis(random, dims);
    op::top_k_attributes a{.k = random.number(0, dims[axis]), .axis = written(random, axis, dims)};
    a.largest = random.chance(0.5);
    shape out = dims;
    out[axis] = a.k;
    shape single = dims;
    single[axis] = 1;
    oracle_value values(collage::tensor_type{x.type.type, out}), places(collage::tensor_type{dtype::i64, out});
    const bool last = random.chance(0.5);
    oracle_value top(collage::tensor_type{dtype::i64, single}), bottom(top);
    for_each_index(dims, [&](const multi_index& i) {
      // An element's rank is how many others come before it.
      std::int64_t before = 0;
      bool is_top = true, is_bottom = true;
      for (multi_index j = i, start = i; (j[axis] = start[axis] - i[axis]) < dims[axis]; ++start[axis]) {
        const std::size_t me = at(dims, i), other = at(dims, j);
        const bool more = is_larger(x, other, me), less = is_larger(x, me, other);
        const bool nan = collage::is_floating(x.type.type) && std::isnan(x.real[me]);
        const bool other_nan = collage::is_floating(x.type.type) && std::isnan(x.real[other]);
        if ((a.largest ? more : less) || (!more && !less && j[axis] < i[axis])) ++before;
        const bool wins_tie = !more && !less && j[axis] != i[axis] && (last ? j[axis] > i[axis] : j[axis] < i[axis]);
        if (more || wins_tie) is_top = false;
        if ((nan || other_nan ? more : less) || wins_tie) is_bottom = false;
      }
      if (is_top) top.integer[at(single, i)] = i[axis];
      if (is_bottom) bottom.integer[at(single, i)] = i[axis];
      if (before >= a.k) return;
      multi_index o = i;
      o[axis] = before;
      copy(values, at(out, o), x, at(dims, i));
      places.integer[at(out, o)] = i[axis];
    });
    const std::string what = " of " + text_of(dims) + " along " + std::to_string(axis);
    op::top_k_attributes normal = a;
    op::top_k.normalise(normal, std::vector{x.type});
    std::vector<oracle_value> in{x};
    const auto got = collage::evaluate_node(collage::kind_of<struct op::top_k>, collage::to_words(normal).list(), in);
    expect_same(got.at(0), values, "top_k" + what);
    expect_same(got.at(1), places, "top_k's indices" + what);
    const bool keep = random.chance(0.5);
    if (!keep) {
      shape dropped;
      for (std::size_t d = 0; d < dims.size(); ++d)
        if (d != axis) dropped.push_back(dims[d]);
      top.type.dims = bottom.type.dims = dropped;
    }
    const op::arg_attributes arg{.axis = a.axis, .keep_dims = keep, .select_last = last};
    expect_same(run(op::arg_max, {x}, arg), top, "arg_max" + what);
    expect_same(run(op::arg_min, {x}, arg), bottom, "arg_min" + what);
  }
}

// Shape rules against anything
// ---------------------------------------------------------------------------------------------------

std::int64_t hostile(random_source& random) {
  constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t high = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t list[] = {low,      low + 1, -(std::int64_t{1} << 62), -1, high / 3, std::int64_t{1} << 59,
                                   high - 1, high};
  return random.chance(0.8) ? random.number(-2, 4) : list[random.number(0, std::ssize(list) - 1)];
}
shape hostile_shape(random_source& random, std::size_t rank) {
  shape s;
  for (std::size_t i = 0; i < rank; ++i) s.push_back(hostile(random));
  return s;
}

struct hostile_attributes {
  random_source& random;
  std::size_t rank;
  void operator()(const char*, shape& s) const {
    s = hostile_shape(random, random.chance(0.9) ? rank : static_cast<std::size_t>(random.number(0, 8)));
  }
  template <class T>
  void operator()(const char*, T& v) const {
    v = static_cast<T>(hostile(random));
  }
};

/// Whatever a shape rule is given, it must answer; what it accepts it must answer with extents that can be multiplied.
/// Answers how often it accepted.
template <class K>
void expect_answers(random_source& random, const K&) {
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::size_t rank = static_cast<std::size_t>(random.number(0, random.chance(0.1) ? 8 : 3));
    std::vector<collage::tensor_type> in;
    const std::uint32_t count = std::min(K::inputs.most, K::inputs.least + (random.chance(0.5) ? 1U : 0U));
    for (std::uint32_t i = 0; i < count; ++i) {
      const dtype type = i == 1 && K::inputs.least > 1 && random.chance(0.9) ? dtype::i64 : dtype::f32;
      in.push_back({type, hostile_shape(random, random.chance(0.7) ? rank
                                                                   : static_cast<std::size_t>(random.number(
                                                                         0, random.chance(0.5) ? 8 : 2)))});
      if (random.chance(0.7))
        for (std::size_t d = 0; d < in.back().rank(); ++d) in.back().dims[d] = random.number(0, 3);
    }
    typename K::attributes a{};
    K::attributes::visit(a, hostile_attributes{random, rank});
    if constexpr (requires { K::normalise(a, in); }) K::normalise(a, in);
    std::vector<collage::tensor_type> out(K::outputs);
    collage::inference io{in, out};
    if (!K::infer(a, io)) continue;
    ++accepted;
    bool sane = true;  // an input that is too large itself may be handed on
    for (const collage::tensor_type& t : in) sane = sane && collage::detail::is_countable(t.dims);
    for (const collage::tensor_type& t : out)
      ASSERT_TRUE(!sane || collage::detail::is_countable(t.dims)) << K::name << ' ' << text_of(t.dims);
  }
  EXPECT_GT(accepted, 3) << K::name << " accepted next to nothing, so that this test says nothing";
}

TEST(indexing, shape_rules_answer_whatever_they_are_given) {
  random_source random;
  const auto all = [&](const auto&... kinds) { (expect_answers(random, kinds), ...); };
  all(op::slice, op::expand, op::tile, op::pad, op::gather, op::gather_elements, op::gather_nd, op::scatter_elements,
      op::scatter_nd, op::trilu, op::reverse_sequence, op::cumulative_sum, op::top_k, op::arg_max, op::arg_min,
      op::reshape, op::transpose, op::concat);
}

}  // namespace backends_reference_indexing_test
