// Shape rules of transposed convolution, poolings, recurrent cells; of all windows also with numbers that no network
// has: constant evaluation does not compile where one overflows.
#include "infer.hpp"

namespace {

using namespace collage_test;
constexpr std::int64_t u = c::unknown;
constexpr std::int64_t highest = 0x7FFFFFFFFFFFFFFF;
constexpr std::int64_t lowest = -highest - 1;

// Transposed convolution ----------------------------------------------------------------------------------------------

static_assert(infer(op::conv_transpose, {{1, 3, 4, 4}, {3, 8, 4, 4}},
                    {.strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}})
                  .is({1, 8, 8, 8}));
static_assert(infer(op::conv_transpose, {{2, 6, 5}, {6, 2, 3}, {6}}, {.groups = 3}).is({2, 6, 7}));
static_assert(infer(op::conv_transpose, {{1, 1, 3}, {1, 1, 2}}, {.strides = {3}, .dilations = {2}}).is({1, 1, 9}));
static_assert(infer(op::conv_transpose, {{1, 1, 3}, {1, 1, 2}}, {.output_padding = {5}}).is({1, 1, 9}));
static_assert(infer(op::conv_transpose, {{u, 1, u}, {1, u, 2}}).is({u, u, u}));
static_assert(infer(op::conv_transpose, {{1, 3}, {3, 8}}).refused_at(0));
static_assert(infer(op::conv_transpose, {{1, 3, 4}, {3, 8, 4, 4}}).refused_at(1));
static_assert(infer(op::conv_transpose, {{1, 3, 4}, {4, 8, 2}}).refused_at(1));
static_assert(infer(op::conv_transpose, {{1, 3, 4}, {3, 8, 2}}, {.groups = 2}).refused_at(0));
static_assert(infer(op::conv_transpose, {{1, 3, 4}, {3, 8, 2}, {7}}).refused_at(2));
static_assert(infer(op::conv_transpose, {{1, 3, 0}, {3, 8, 2}}).refused_at(0));
static_assert(infer(op::conv_transpose, {{1, 3, 1}, {3, 8, 2}}, {.pads_end = {2}}).refused(), "nothing is left");
static_assert(infer(op::conv_transpose, {{1, 3, 4}, {3, 8, 2}}, {.output_padding = {-1}}).refused());
static_assert(infer(op::conv_transpose, {{1, 3, 4}, {3, 8, 2}}, {.output_padding = {0, 0}}).refused());

// Numbers at the ends of the range ------------------------------------------------------------------------------------

constexpr std::int64_t ends[] = {lowest, 1, 0x7FFFFFFF, highest};

constexpr bool nothing_overflows() {
  for (const std::int64_t a : ends)
    for (const std::int64_t b : ends)
      for (const std::int64_t extent : {lowest, std::int64_t{0}, std::int64_t{1} << 48, highest})
        for (const std::int64_t window : {std::int64_t{2}, highest}) {
          (void)infer(op::conv, {{1, 1, extent}, {1, 1, window}}, {.strides = {a}, .pads_end = {b}});
          (void)infer(op::conv_transpose, {{1, 1, extent}, {1, b, window}}, {.groups = a, .strides = {b}});
          (void)infer(op::conv_transpose, {{1, 1, extent}, {1, 1, window}}, {.strides = {a}, .output_padding = {b}});
          (void)infer(op::max_pool, {{1, 1, extent}},
                      {.window = {window}, .strides = {a}, .pads_begin = {b}, .round_up = true});
          (void)infer(op::max_pool, {{1, 1, extent}}, {.window = {2}, .dilations = {a}, .pads_begin = {b}});
          (void)infer(op::reduce_prod, {{1, extent}}, {.axes = {a, b}});
          (void)infer(op::lrn, {{1, extent}}, {.size = a});
          (void)infer(op::log_softmax, {{1, extent}}, {.axis = a});
          (void)infer(op::lstm, {{1, a, extent}, {1, b, extent}, {1, b, window}});
        }
  return true;
}
static_assert(nothing_overflows());
static_assert(infer(op::max_pool, {{1, 1, 4096, 4096}}, {.window = {2048, 2048}}).refused(), "too many taps");

// Poolings and norms --------------------------------------------------------------------------------------------------

constexpr op::pool_attributes by_two{.window = {2, 2}, .strides = {2, 2}};
static_assert(infer(op::max_pool_with_indices, {{1, 8, 6, 6}}, {by_two, true}).is({1, 8, 3, 3}));
static_assert(infer(op::lp_pool, {{1, 8, 6, 6}}, {by_two, 3}).is({1, 8, 3, 3}));
static_assert(infer(op::lp_pool, {{1, 8, 6, 6}}, {by_two, 0}).refused());
static_assert(infer_types(op::lp_pool, {{c::dtype::i32, {1, 8, 6, 6}}}, {by_two, 2}).refused_at(0));
static_assert(infer(op::max_pool, {{1, 8, 1, 6}}, by_two).refused_at(0), "a window that does not fit");
static_assert(infer(op::lrn, {{2, 3, 4}}, {.size = 3}).is({2, 3, 4}));
static_assert(infer(op::lrn, {{2}}, {.size = 3}).refused_at(0));
static_assert(infer(op::lrn, {{2, 3}}, {.size = 0}).refused());
static_assert(infer(op::log_softmax, {{2, u}}).is({2, u}));
static_assert(infer(op::log_softmax, {{2, 3}}, {.axis = 2}).refused());
static_assert(infer_types(op::softmax, {{c::dtype::i64, {2}}}).refused_at(0));
static_assert(infer_types(op::reduce_log_sum_exp, {{c::dtype::i64, {2}}}).refused_at(0));

// Recurrent cells -----------------------------------------------------------------------------------------------------

/// An LSTM of 7 steps, batch 2, 3 inputs and 5 hidden units over further operands.
template <class... More>
constexpr inferred lstm(const op::lstm_attributes& a, std::int64_t directions, const More&... more) {
  const auto f = [](const c::shape& dims) { return c::tensor_type{c::dtype::f32, dims}; };
  return infer_types(op::lstm,
                     {f({7, 2, 3}), f({directions, 20, 3}), f({directions, 20, 5}), f({directions, 40}),
                      f({directions, 2, 5}), f({directions, 2, 5}), more...},
                     a);
}
constexpr c::tensor_type lengths{c::dtype::i32, {2}};
static_assert(lstm({}, 1).is({7, 1, 2, 5}));
static_assert(lstm({{.direction = c::recurrent_direction::bidirectional}}, 2).is({7, 2, 2, 5}));
static_assert(lstm({{.direction = c::recurrent_direction::bidirectional}}, 1).refused_at(1));
static_assert(lstm({}, 1, lengths, c::tensor_type{c::dtype::f32, {1, 15}}).is({7, 1, 2, 5}));
static_assert(lstm({}, 1, lengths, c::tensor_type{c::dtype::f32, {1, 20}}).refused_at(7));
static_assert(lstm({}, 1, c::tensor_type{c::dtype::i64, {2}}).refused_at(6));
static_assert(lstm({{.clip = -1}}, 1).refused());
static_assert(lstm({{.activations = {0, 0}}}, 1).refused());
static_assert(lstm({{.activations = {0, 0, 99}}}, 1).refused());
static_assert(infer(op::rnn, {{7, u, 3}, {1, 5, 3}, {1, 5, 5}, {1, 10}, {1, u, 5}}).is({7, 1, u, 5}));
static_assert(infer(op::gru, {{7, 2, 3}, {1, 15, 3}, {1, 15, 5}, {1, 30}, {1, 2, 5}}).is({7, 1, 2, 5}));
static_assert(infer(op::gru, {{7, 2, 3}, {1, 10, 3}, {1, 10, 5}, {1, 20}, {1, 2, 5}}).refused_at(1), "three gates");

}  // namespace
