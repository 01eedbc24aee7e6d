// The shape rules of the operators that copy parts, read and write by index, and order elements.
#include "infer.hpp"

#include <limits>

namespace {

using namespace collage_test;
constexpr std::int64_t u = c::unknown;
constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t high = std::numeric_limits<std::int64_t>::max();
constexpr c::tensor_type real(const c::shape& dims) { return {c::dtype::f32, dims}; }
constexpr c::tensor_type list(const c::shape& dims) { return {c::dtype::i64, dims}; }

static_assert(infer(op::slice, {{5, 6}}, {.starts = {4, 1}, .steps = {-2, 3}, .extents = {3, 2}}).is({3, 2}));
static_assert(infer(op::slice, {{u}}, {.starts = {7}, .steps = {2}, .extents = {9}}).is({9}));
static_assert(infer(op::slice, {{0}}, {.starts = {9}, .steps = {low}, .extents = {0}}).is({0}));
static_assert(infer(op::slice, {{5}}, {.starts = {4}, .steps = {-2}, .extents = {4}}).refused());
static_assert(infer(op::slice, {{5}}, {.starts = {1}, .steps = {3}, .extents = {3}}).refused());
static_assert(infer(op::slice, {{5}}, {.starts = {5}, .steps = {1}, .extents = {1}}).refused());
static_assert(infer(op::slice, {{5}}, {.starts = {0}, .steps = {0}, .extents = {1}}).refused());
static_assert(infer(op::slice, {{5}}, {.starts = {4}, .steps = {low}, .extents = {2}}).refused());
static_assert(infer(op::slice, {{u}}, {.starts = {high}, .steps = {high}, .extents = {2}}).refused());
static_assert(infer(op::slice, {{5}}, {.starts = {0}, .steps = {1}, .extents = {-1}}).refused());

static_assert(infer(op::expand, {{3, 1}}, {.dims = {2, 1, 6}}).is({2, 3, 6}));
static_assert(infer(op::expand, {{3, 1}}, {.dims = {0}}).is({3, 0}));
static_assert(infer(op::expand, {{u, 1}}, {.dims = {4, 2}}).is({4, 2}));
static_assert(infer(op::expand, {{3}}, {.dims = {4}}).refused());
static_assert(infer(op::expand, {{3}}, {.dims = {-1, 3}}).refused());
static_assert(infer(op::expand, {{}}, {.dims = {std::int64_t{1} << 40, std::int64_t{1} << 40}}).refused());
static_assert(infer(op::tile, {{3, u, 2}}, {.repeats = {2, 3, 0}}).is({6, u, 0}));
static_assert(infer(op::tile, {{3}}, {.repeats = {high}}).refused());
static_assert(infer(op::tile, {{3}}, {.repeats = {-1}}).refused());
static_assert(infer(op::tile, {{3}}, {.repeats = {1, 1}}).refused());

static_assert(infer(op::pad, {{3, u}}, {.pads_begin = {1, 0}, .pads_end = {-2, 1}}).is({2, u}));
static_assert(infer(op::pad, {{3}, {1}}, {.pads_begin = {1}, .pads_end = {0}}).is({4}));
static_assert(infer(op::pad, {{3}, {2}}, {.pads_begin = {1}, .pads_end = {0}}).refused_at(1));
static_assert(infer_types(op::pad, {real({3}), list({})}, {.pads_begin = {1}, .pads_end = {0}}).refused_at(1));
static_assert(infer(op::pad, {{3}}, {.pads_begin = {-2}, .pads_end = {-2}}).refused());
static_assert(infer(op::pad, {{0}}, {.pads_begin = {1}, .pads_end = {0}, .mode = op::pad_mode::edge}).refused());
static_assert(infer(op::pad, {{3}}, {.pads_begin = {high}, .pads_end = {low}}).refused());
static_assert(infer(op::pad, {{3}}, {.pads_begin = {1}}).refused());

static_assert(infer_types(op::gather, {real({2, 3, 4}), list({5, u})}, {.axis = -2}).is({2, 5, u, 4}));
static_assert(infer_types(op::gather, {real({2, 3}), list({})}, {.axis = 1}).is({2}));
static_assert(infer_types(op::gather, {real({}), list({})}).refused());
static_assert(infer_types(op::gather, {real({2}), real({2})}).refused_at(1));
static_assert(infer_types(op::gather, {real({1, 1, 1, 1, 1}), list({1, 1, 1, 1, 1})}).refused());
static_assert(infer_types(op::gather_elements, {real({2, 3}), list({7, 2})}).is({7, 2}));
static_assert(infer_types(op::gather_elements, {real({2, 3}), list({2, 4})}).refused_at(1));
static_assert(infer_types(op::gather_elements, {real({2, 3}), list({2})}).refused_at(1));
static_assert(infer_types(op::gather_nd, {real({2, 3, 4}), list({2, 5, 1})}, {.batch_dims = 1}).is({2, 5, 4}));
static_assert(infer_types(op::gather_nd, {real({2, 3}), list({4, 0})}).is({4, 2, 3}));
static_assert(infer_types(op::gather_nd, {real({2, 3}), list({4, 3})}).refused_at(1));
static_assert(infer_types(op::gather_nd, {real({2, 3}), list({4, u})}).refused_at(1));
static_assert(infer_types(op::gather_nd, {real({2, 3}), list({3, 1})}, {.batch_dims = 1}).refused_at(1));
static_assert(infer_types(op::gather_nd, {real({2, 3}), list({3, 1})}, {.batch_dims = high}).refused());
static_assert(infer_types(op::scatter_elements, {real({2, 3}), list({7, 2}), real({7, 2})}).is({2, 3}));
static_assert(infer_types(op::scatter_elements, {real({2, 3}), list({7, 2}), real({2, 7})}).refused_at(2));
static_assert(infer_types(op::scatter_elements, {real({2, 3}), list({7, 2}), list({7, 2})}).refused_at(2));
static_assert(infer_types(op::scatter_nd, {real({2, 3, 4}), list({5, 2}), real({5, 4})}).is({2, 3, 4}));
static_assert(infer_types(op::scatter_nd, {real({2, 3, 4}), list({5, 2}), real({5, 3})}).refused_at(2));
static_assert(infer_types(op::scatter_nd, {real({2, 3, 4}), list({}), real({})}).refused_at(1));

static_assert(infer(op::trilu, {{u, 3, 4}}, {.k = low}).is({u, 3, 4}));
static_assert(infer(op::trilu, {{3}}).refused());
static_assert(infer_types(op::reverse_sequence, {real({4, 2, 5}), list({2})}).is({4, 2, 5}));
static_assert(infer_types(op::reverse_sequence, {real({4, 2}), list({4})}).refused_at(1));
static_assert(infer_types(op::reverse_sequence, {real({4, 2}), list({2})}, {.batch_axis = 0}).refused());
static_assert(infer(op::cumulative_sum, {{2, 3}}, {.axis = -1}).is({2, 3}));
static_assert(infer(op::cumulative_sum, {{2, 3}}, {.axis = 2}).refused());
static_assert(infer(op::top_k, {{2, 5}}, {.k = 3}).is({2, 3}));
static_assert(infer(op::top_k, {{2, u}}, {.k = 3, .axis = -2}).refused());
static_assert(infer(op::top_k, {{2, 5}}, {.k = -1}).refused());
static_assert(infer(op::top_k, {{}}, {.k = 0}).refused());
static_assert(infer(op::arg_max, {{2, u, 4}}, {.axis = 1, .keep_dims = false}).is({2, 4}));
static_assert(infer(op::arg_min, {{2, 3}}, {.axis = -1}).is({2, 1}));
static_assert(infer(op::arg_min, {{2, 3}}).out.type == c::dtype::i64);
static_assert(infer(op::arg_max, {{2, 0}}, {.axis = 1}).refused());
static_assert(infer(op::arg_max, {{0, 0}}, {.axis = 1}).is({0, 1}), "nothing is looked for");

}  // namespace
