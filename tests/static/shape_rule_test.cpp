// The shape rule of every kind, unknown extents included.
#include "infer.hpp"

namespace {

using namespace collage_test;
constexpr std::int64_t u = c::unknown;

// Elementwise: one operand --------------------------------------------------------------------------------------------

static_assert(infer(op::relu, {{2, 3}}).is({2, 3}));
static_assert(infer(op::relu, {{}}).is({}));
static_assert(infer(op::leaky_relu, {{u, 3}}, {.alpha = 0.5}).is({u, 3}));
static_assert(infer_types(op::neg, {{c::dtype::i64, {4}}}).out.type == c::dtype::i64);

template <class... K>
constexpr bool all_keep_their_shape(const K&... kinds) {
  return (infer(kinds, {{2, u, 3}}).is({2, u, 3}) && ...);
}
static_assert(all_keep_their_shape(op::relu, op::leaky_relu, op::elu, op::hard_sigmoid, op::sigmoid, op::tanh, op::erf,
                                   op::exp, op::log, op::sqrt, op::reciprocal, op::neg, op::abs, op::floor, op::ceil,
                                   op::sin, op::cos, op::softplus));

// Elementwise: broadcasting -------------------------------------------------------------------------------------------

template <class... K>
constexpr bool all_broadcast(const K&... kinds) {
  return (infer(kinds, {{2, 1, 4}, {3, 1}}).is({2, 3, 4}) && ...) && (infer(kinds, {{2, 3}, {4}}).refused_at(1) && ...);
}
static_assert(all_broadcast(op::add, op::sub, op::mul, op::div, op::max, op::min, op::pow));
static_assert(infer(op::add, {{}, {5, 6}}).is({5, 6}));
static_assert(infer(op::add, {{0, 3}, {1, 3}}).is({0, 3}));
static_assert(infer(op::add, {{0}, {2}}).refused());
static_assert(infer(op::add, {{1, 1, 1, 1, 1, 1, 1, 2}, {2}}).is({1, 1, 1, 1, 1, 1, 1, 2}));
static_assert(infer(op::add, {{u, 3}, {5, 3}}).is({5, 3}), "the unknown extent can only be 5 or 1");
static_assert(infer(op::add, {{u, 3}, {1, 3}}).is({u, 3}));
static_assert(infer(op::add, {{u}, {u}}).is({u}), "the same symbol is the same extent");
static_assert(infer(op::add, {{-2}, {-3}}).is({u}), "two symbols: any of them may be 1");
static_assert(infer_types(op::add, {{c::dtype::f32, {2}}, {c::dtype::i64, {2}}}).refused_at(1));
static_assert(infer(op::clip, {{2, 3}, {}, {3}}).is({2, 3}));
static_assert(infer(op::clip, {{2, 3}, {}, {4}}).refused_at(2));

// Convolution ---------------------------------------------------------------------------------------------------------

static_assert(infer(op::conv, {{1, 3, 224, 224}, {64, 3, 7, 7}},
                    {.strides = {2, 2}, .pads_begin = {3, 3}, .pads_end = {3, 3}})
                  .is({1, 64, 112, 112}));
static_assert(infer(op::conv, {{2, 8, 10}, {4, 8, 3}}).is({2, 4, 8}), "one spatial dimension");
static_assert(infer(op::conv, {{2, 8, 5, 6, 7}, {4, 8, 2, 3, 4}}).is({2, 4, 4, 4, 4}), "three");
static_assert(infer(op::conv, {{1, 32, 9, 9}, {32, 1, 3, 3}}, {.groups = 32}).is({1, 32, 7, 7}));
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}}, {.dilations = {2, 1}}).is({1, 4, 5, 7}));
static_assert(
    infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}}, {.pads_begin = {1, 0}, .pads_end = {0, 2}}).is({1, 4, 8, 9}),
    "pads on one side");
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}, {4}}).is({1, 4, 7, 7}));
static_assert(infer(op::conv, {{1, 3, 2, 9}, {4, 3, 3, 3}}).refused_at(0), "a window that does not fit");

static_assert(infer(op::conv, {{3, 9}, {4, 3}}).refused_at(0));
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3}}).refused_at(1));
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 5, 3, 3}}).refused_at(1));
static_assert(infer(op::conv, {{1, 4, 9, 9}, {3, 2, 3, 3}}, {.groups = 2}).refused_at(1),
              "3 output channels, 2 groups");
static_assert(infer(op::conv, {{1, 5, 9, 9}, {4, 2, 3, 3}}, {.groups = 2}).refused_at(1), "5 input channels, 2 groups");
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}, {3}}).refused_at(2));
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}, {1, 4}}).refused_at(2));
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 0, 3}}).refused());
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}}, {.groups = 0}).refused());
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}}, {.strides = {0, 1}}).refused());
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}}, {.strides = {1, 1, 1}}).refused());
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}}, {.dilations = {1, 0}}).refused());
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}}, {.pads_begin = {-1, 0}}).refused());
static_assert(infer_types(op::conv, {{c::dtype::f32, {1, 3, 9, 9}}, {c::dtype::f64, {4, 3, 3, 3}}}).refused_at(1));

static_assert(infer(op::conv, {{u, 3, u, 9}, {4, 3, 3, 3}}).is({u, 4, u, 7}));
static_assert(infer(op::conv, {{1, u, 9, 9}, {4, 3, 3, 3}}).is({1, 4, 7, 7}));
static_assert(infer(op::conv, {{1, 3, 9, 9}, {u, 3, 3, 3}}, {.groups = 3}).refused_at(1),
              "3 channels per group of 3 are 9");
static_assert(infer(op::conv, {{1, 9, 9, 9}, {u, 3, 3, 3}}, {.groups = 3}).is({1, u, 7, 7}));
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, u, 3}}).is({1, 4, u, 7}));
static_assert(infer(op::conv, {{1, 3, 9, 9}, {4, 3, 3, 3}, {u}}).is({1, 4, 7, 7}));
static_assert(infer(op::conv, {{1, 3, 9, 9}, {u, 3, 3, 3}, {4}}).refused() == false);

// Pooling -------------------------------------------------------------------------------------------------------------

template <class... K>
constexpr bool all_pool(const K&... kinds) {
  return (infer(kinds, {{1, 8, 6, 6}}, {.window = {2, 2}, .strides = {2, 2}}).is({1, 8, 3, 3}) && ...) &&
         (infer(kinds, {{1, 8, 7}}, {.window = {3}, .strides = {2}}).is({1, 8, 3}) && ...) &&
         (infer(kinds, {{1, 8, 6}}, {.window = {3}, .strides = {2}, .round_up = true}).is({1, 8, 3}) && ...) &&
         (infer(kinds, {{1, 8, 6}}, {.window = {3}, .strides = {2}}).is({1, 8, 2}) && ...) &&
         (infer(kinds, {{u, 8, u}}, {.window = {3}}).is({u, 8, u}) && ...) &&
         (infer(kinds, {{8, 6}}, {.window = {2}}).refused_at(0) && ...) &&
         (infer(kinds, {{1, 8, 6}}, {.window = {0}}).refused() && ...) &&
         (infer(kinds, {{1, 8, 6}}, {.window = {-1}}).refused() && ...) &&
         (infer(kinds, {{1, 8, 6}}).refused() && ...) &&
         (infer(kinds, {{1, 8, 6}}, {.window = {2}, .pads_begin = {2}}).refused() && ...);
}
static_assert(all_pool(op::max_pool, op::average_pool));
// The last, partial place must start inside the input or its leading pad: at stride 3, the third place would not.
static_assert(
    infer(op::max_pool, {{1, 1, 5}}, {.window = {2}, .strides = {3}, .pads_end = {1}, .round_up = true}).is({1, 1, 2}));

// Matrix multiplication -----------------------------------------------------------------------------------------------

static_assert(infer(op::matmul, {{4, 5}, {5, 6}}).is({4, 6}));
static_assert(infer(op::matmul, {{5, 4}, {5, 6}}, {.transpose_a = true}).is({4, 6}));
static_assert(infer(op::matmul, {{4, 5}, {6, 5}}, {.transpose_b = true}).is({4, 6}));
static_assert(infer(op::matmul, {{2, 1, 4, 5}, {3, 5, 6}}).is({2, 3, 4, 6}));
static_assert(infer(op::matmul, {{5}, {5, 6}}).is({6}));
static_assert(infer(op::matmul, {{4, 5}, {5}}).is({4}));
static_assert(infer(op::matmul, {{5}, {5}}).is({}));
static_assert(infer(op::matmul, {{7, 4, 5}, {5}}).is({7, 4}));
static_assert(infer(op::matmul, {{4, 5}, {4, 6}}).refused_at(1));
static_assert(infer(op::matmul, {{2, 4, 5}, {3, 5, 6}}).refused_at(1));
static_assert(infer(op::matmul, {{}, {5}}).refused_at(0));
static_assert(infer(op::matmul, {{5}, {}}).refused_at(1));
static_assert(infer_types(op::matmul, {{c::dtype::f32, {2, 2}}, {c::dtype::i64, {2, 2}}}).refused_at(1));
static_assert(infer(op::matmul, {{u, 4, u}, {5, 6}}).is({u, 4, 6}));

// Reductions ----------------------------------------------------------------------------------------------------------

template <class... K>
constexpr bool all_reduce(const K&... kinds) {
  return (infer(kinds, {{2, 3, 4}}).is({1, 1, 1}) && ...) &&
         (infer(kinds, {{2, 3, 4}}, {.keep_dims = false}).is({}) && ...) &&
         (infer(kinds, {{2, u, 4}}, {.axes = {-1, 0}}).is({1, u, 1}) && ...) &&
         (infer(kinds, {{2, u, 4}}, {.axes = {1}, .keep_dims = false}).is({2, 4}) && ...) &&
         (infer(kinds, {{2, 3}}, {.axes = {2}}).refused() && ...) &&
         (infer(kinds, {{2, 3}}, {.axes = {-3}}).refused() && ...) &&
         (infer(kinds, {{2, 3}}, {.axes = {1, -1}}).refused() && ...);
}
static_assert(all_reduce(op::reduce_mean, op::reduce_sum, op::reduce_max, op::reduce_min));

// Softmax and norms ---------------------------------------------------------------------------------------------------

static_assert(infer(op::softmax, {{2, 3}}).is({2, 3}));
static_assert(infer(op::softmax, {{2, u}}, {.axis = 0}).is({2, u}));
static_assert(infer(op::softmax, {{2, 3}}, {.axis = 2}).refused());
static_assert(infer(op::softmax, {{}}).refused());
static_assert(infer(op::layer_norm, {{2, 3, 8}, {8}}).is({2, 3, 8}));
static_assert(infer(op::layer_norm, {{2, 3, 8}, {8}, {8}}).is({2, 3, 8}));
static_assert(infer(op::layer_norm, {{2, 3, 8}, {3, 1}, {}}, {.axis = 1}).is({2, 3, 8}));
static_assert(infer(op::layer_norm, {{2, 3, 8}, {7}}).refused_at(1));
static_assert(infer(op::layer_norm, {{2, 3, 8}, {8}, {4, 2, 3, 8}}).refused_at(2));
static_assert(infer(op::layer_norm, {{2, 3, 1}, {8}}).refused_at(1), "the scale may not enlarge the input");
static_assert(infer(op::layer_norm, {{2, 3, 8}, {8}}, {.axis = 3}).refused());
static_assert(infer(op::layer_norm, {{u, u, 8}, {8}}).is({u, u, 8}));
static_assert(infer(op::layer_norm, {{2, u}, {8}}).is({2, u}));

// Movement ------------------------------------------------------------------------------------------------------------

static_assert(infer(op::reshape, {{2, 3, 4}}, {.dims = {6, 4}}).is({6, 4}));
static_assert(infer(op::reshape, {{2, 3, 4}}, {.dims = {0, -1}}).is({2, 12}));
static_assert(infer(op::reshape, {{2, 3, 4}}, {.dims = {-1}}).is({24}));
static_assert(infer(op::reshape, {{1}}).is({}), "to a scalar");
static_assert(infer(op::reshape, {{0, 3}}, {.dims = {3, 0}, .allow_zero = true}).is({3, 0}));
static_assert(infer(op::reshape, {{2, 3, 4}}, {.dims = {5, 5}}).refused());
static_assert(infer(op::reshape, {{2, 3, 4}}, {.dims = {-1, -1}}).refused());
static_assert(infer(op::reshape, {{2, 3, 4}}, {.dims = {7, -1}}).refused());
static_assert(infer(op::reshape, {{2}}, {.dims = {2, 0}}).refused());
static_assert(infer(op::reshape, {{u, 3, 4}}, {.dims = {0, 12}}).is({u, 12}));
static_assert(infer(op::reshape, {{u, 3, 4}}, {.dims = {12, -1}}).is({12, u}));
static_assert(infer(op::reshape, {{u}}, {.dims = {std::int64_t{1} << 40, std::int64_t{1} << 40}}).refused());

constexpr c::tensor_type data{c::dtype::f32, {2, 3, 4}};
constexpr std::int64_t target[] = {4, -1};
constexpr c::list_view<const std::int64_t> known[] = {{}, target};
static_assert(infer_types(op::reshape, {data, {c::dtype::i64, {2}}}, {}, known).is({4, 6}));
static_assert(infer_types(op::reshape, {data, {c::dtype::i64, {2}}}).out.dims.rank == 2);
static_assert(!infer_types(op::reshape, {data, {c::dtype::i64, {2}}}).out.dims.is_concrete(),
              "a target that is not known yet");
static_assert(infer_types(op::reshape, {data, {c::dtype::f32, {2}}}).refused_at(1));
static_assert(infer_types(op::reshape, {data, {c::dtype::i64, {2, 1}}}).refused_at(1));
static_assert(infer_types(op::reshape, {data, {c::dtype::i64, {9}}}).refused_at(1));
static_assert(infer_types(op::reshape, {data, {c::dtype::i64, {u}}}).refused_at(1));

static_assert(infer(op::transpose, {{2, 3, 4}}).is({4, 3, 2}));
static_assert(infer(op::transpose, {{2, u, 4}}, {.permutation = {1, 2, 0}}).is({u, 4, 2}));
static_assert(infer(op::transpose, {{2, 3}}, {.permutation = {0, 0}}).refused());
static_assert(infer(op::transpose, {{2, 3}}, {.permutation = {0, 2}}).refused());
static_assert(infer(op::transpose, {{2, 3}}, {.permutation = {0, -1}}).refused());
static_assert(infer(op::transpose, {{2, 3}}, {.permutation = {0}}).refused());
static_assert(infer(op::transpose, {{}}).is({}));

static_assert(infer(op::concat, {{2, 3}, {2, 5}, {2, 1}}, {.axis = 1}).is({2, 9}));
static_assert(infer(op::concat, {{2, 3}}, {.axis = -1}).is({2, 3}));
static_assert(infer(op::concat, {{2, 3}, {2, 3}}, {.axis = -2}).is({4, 3}));
static_assert(infer(op::concat, {{u, 3}, {2, u}}, {.axis = 1}).is({2, u}));
static_assert(infer(op::concat, {{2, 3}, {3, 3}}, {.axis = 1}).refused_at(1));
static_assert(infer(op::concat, {{2, 3}, {2, 3}, {2}}, {.axis = 1}).refused_at(2));
static_assert(infer(op::concat, {{2, 3}}, {.axis = 2}).refused());
static_assert(infer(op::concat, {{}}).refused());
static_assert(infer_types(op::concat, {{c::dtype::f32, {2}}, {c::dtype::i64, {2}}}).refused_at(1));

static_assert(infer(op::resize, {{1, 3, 8, 8}}, {.sizes = {1, 3, 16, 4}}).is({1, 3, 16, 4}));
static_assert(infer(op::resize, {{1, 3, u, u}}, {.sizes = {1, 3, 16, 4}}).is({1, 3, 16, 4}));
static_assert(infer(op::resize, {{1, 3, 8, 8}}, {.sizes = {16, 16}}).refused());
static_assert(infer(op::resize, {{1, 3, 8, 8}}, {.sizes = {1, 3, -1, 16}}).refused());
static_assert(infer(op::resize, {{1, 3, 0, 8}}, {.sizes = {1, 3, 4, 16}}).refused());
static_assert(infer(op::resize, {{1, 3, 8, 8}}, {.sizes = {1, 3, 4, 4}, .scales = {2, {0.5, 0.5}}}).refused());

}  // namespace
