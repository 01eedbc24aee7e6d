// The descriptions of operator kinds: ids, arity, attributes as words, traced bodies, arithmetic.
#include <collage/ops.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

namespace {

namespace c = collage;
namespace op = collage::ops;
using c::opcode;

// Ids and descriptions ------------------------------------------------------------------------------------------------

template <class... K>
constexpr bool ids_differ(const K&...) {
  constexpr std::uint64_t ids[] = {c::kind_of<K>.id...};
  for (std::size_t i = 0; i < sizeof...(K); ++i)
    for (std::size_t j = i + 1; j < sizeof...(K); ++j)
      if (ids[i] == ids[j]) return false;
  return true;
}
static_assert(ids_differ(op::relu, op::leaky_relu, op::elu, op::hard_sigmoid, op::sigmoid, op::tanh, op::erf, op::exp,
                         op::log, op::sqrt, op::reciprocal, op::neg, op::abs, op::floor, op::ceil, op::sin, op::cos,
                         op::softplus, op::add, op::sub, op::mul, op::div, op::max, op::min, op::pow, op::clip,
                         op::conv, op::max_pool, op::average_pool, op::matmul, op::reduce_mean, op::reduce_sum,
                         op::reduce_max, op::reduce_min, op::softmax, op::layer_norm, op::reshape, op::transpose,
                         op::concat, op::resize));
static_assert(c::kind_of<decltype(op::relu)>.id == c::kind_of<struct op::relu>.id, "of the constant as of the type");
static_assert(c::kind_of<decltype(op::relu)>.id == c::detail::hash("relu"));
static_assert(c::kind_of<decltype(op::relu)>.name[0] == 'r' && c::kind_of<decltype(op::relu)>.name[4] == '\0');

constexpr const c::kind_info& conv = c::kind_of<decltype(op::conv)>;
static_assert(conv.inputs.least == 2 && conv.inputs.most == 3 && conv.outputs == 1 && !conv.commutative);
static_assert(conv.fusion == c::fusion_kind::anchor && conv.body == nullptr);
/// Through a parameter: compilers warn of addresses that they can see are not null.
constexpr bool given(auto* function) { return function != nullptr; }
static_assert(given(conv.normalise) && given(conv.count) && given(conv.reference) && given(conv.defaults));
constexpr const c::kind_info& add = c::kind_of<decltype(op::add)>;
static_assert(add.commutative && add.fusion == c::fusion_kind::broadcast && given(add.body) && !given(add.normalise));
static_assert(!c::kind_of<decltype(op::sub)>.commutative && !c::kind_of<decltype(op::pow)>.commutative);
static_assert(c::kind_of<decltype(op::relu)>.fusion == c::fusion_kind::elementwise);
static_assert(c::kind_of<decltype(op::concat)>.inputs.most == c::any_number);
static_assert(!given(c::kind_of<decltype(op::reshape)>.count), "it computes nothing");

// A kind of a user's own works like the others.
inline constexpr struct swish : c::elementwise_kind<swish, 1> {
  static constexpr char name[] = "swish";
  using attributes = op::alpha_attributes;
  static constexpr auto body(auto x, auto alpha) { return x / (1.0 + c::math::exp(-(alpha * x))); }
} swish{};
static_assert(c::operator_kind<struct swish>);
static_assert(c::kind_of<decltype(swish)>.body->inputs == 1);
static_assert(!c::operator_kind<int>);

// Attributes as words -------------------------------------------------------------------------------------------------

struct every_field {
  bool flag = false;
  std::int64_t number = 0;
  double real = 0;
  op::resize_mode mode = op::resize_mode::nearest;
  c::shape list{};
  c::short_text text{};
  c::real_list reals{};
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("flag", self.flag);
    visitor("number", self.number);
    visitor("real", self.real);
    visitor("mode", self.mode);
    visitor("list", self.list);
    visitor("text", self.text);
    visitor("reals", self.reals);
  }
};
constexpr bool same_reals(const c::real_list& a, const c::real_list& b) {
  for (std::size_t i = 0; i < a.size() && a.size() == b.size(); ++i)
    if (a[i] != b[i]) return false;
  return a.size() == b.size();
}
constexpr bool same_text(const c::short_text& a, const c::short_text& b) {
  for (std::size_t i = 0; i < sizeof a.text; ++i)
    if (a.text[i] != b.text[i]) return false;
  return true;
}
constexpr bool round_trip(const every_field& a) {
  const every_field b = c::from_words<every_field>(c::to_words(a).list());
  return a.flag == b.flag && a.number == b.number &&
         __builtin_bit_cast(std::uint64_t, a.real) == __builtin_bit_cast(std::uint64_t, b.real) && a.mode == b.mode &&
         a.list == b.list && same_text(a.text, b.text) && same_reals(a.reals, b.reals);
}
static_assert(round_trip({}));
static_assert(round_trip({true, -5, -0.0, op::resize_mode::cubic, {1, -2, 3}, "bhqk,bkhd->bqhd", {2, {0.5, -3}}}));
static_assert(round_trip({false, INT64_MIN, 1e-308, op::resize_mode::linear, c::shape::filled(8, INT64_MAX),
                          "\xC3\xA9"}));
static_assert(c::to_words(every_field{}).size == 1 + 1 + 1 + 1 + 1 + 7 + 1);
static_assert(same_text("0123456789012345678901234567890123456789012345678901234",
                        "01234567890123456789012345678901234567890123456789012345678"),
              "text of more than 55 characters is cut");

static_assert([] {
  const op::conv_attributes a{
      .groups = 7, .strides = {2, 1}, .dilations = {3, 4}, .pads_begin = {5, 6}, .pads_end = {0, 9}};
  const auto b = c::from_words<op::conv_attributes>(c::to_words(a).list());
  return b.groups == 7 && b.strides == a.strides && b.dilations == a.dilations && b.pads_begin == a.pads_begin &&
         b.pads_end == a.pads_end;
}());
static_assert([] {
  const op::pool_attributes a{.window = {2}, .round_up = true, .count_padding = true};
  const auto b = c::from_words<op::pool_attributes>(c::to_words(a).list());
  return b.window == a.window && b.strides.empty() && b.round_up && b.count_padding;
}());
static_assert(c::to_words(c::no_attributes{}).size == 0);
static_assert(c::to_words(op::conv_attributes{.strides = c::shape::filled(8, 1),
                                              .dilations = c::shape::filled(8, 1),
                                              .pads_begin = c::shape::filled(8, 1),
                                              .pads_end = c::shape::filled(8, 1)})
                  .size <= c::max_attribute_words);

// Equal attributes give equal words, whether they were stated or filled in.
template <c::operator_kind K>
constexpr c::attribute_words normalised(const K&, const typename K::attributes& a, const c::shape& x) {
  const c::tensor_type in[] = {{c::dtype::f32, x}};
  c::attribute_words words = c::to_words(a);
  c::kind_of<K>.normalise(words, std::span<const c::tensor_type>(in));
  return words;
}
constexpr bool equal(const c::attribute_words& a, const c::attribute_words& b) {
  if (a.size != b.size) return false;
  for (std::size_t i = 0; i < a.size; ++i)
    if (a.word[i] != b.word[i]) return false;
  return true;
}
static_assert(equal(normalised(op::conv, {}, {1, 3, 8, 8}),
                    normalised(op::conv, {.strides = {1, 1}, .pads_end = {0, 0}}, {1, 3, 8, 8})));
static_assert(equal(normalised(op::softmax, {.axis = -1}, {2, 3}), normalised(op::softmax, {.axis = 1}, {2, 3})));
static_assert(equal(normalised(op::reduce_sum, {.axes = {-1, 0}}, {2, 3, 4}),
                    normalised(op::reduce_sum, {.axes = {0, 2}}, {2, 3, 4})));
static_assert(equal(normalised(op::reduce_sum, {}, {2, 3}), normalised(op::reduce_sum, {.axes = {0, 1}}, {2, 3})));
static_assert(equal(normalised(op::transpose, {}, {2, 3}), normalised(op::transpose, {.permutation = {1, 0}}, {2, 3})));
static_assert(equal(normalised(op::layer_norm, {}, {2, 3}), normalised(op::layer_norm, {.axis = 1}, {2, 3})));

// Traced bodies -------------------------------------------------------------------------------------------------------

/// Computes a body with the codes that constant evaluation can do.
constexpr double run(const c::traced_body& body, std::span<const double> in, std::span<const double> attributes = {}) {
  double value[c::traced_body::max_size] = {};
  for (std::size_t i = 0; i < body.size; ++i) {
    const c::instruction& o = body.code[i];
    const double a = value[o.a], b = value[o.b];
    switch (o.code) {
      case opcode::input: value[i] = in[o.a]; break;
      case opcode::attribute: value[i] = attributes[o.a]; break;
      case opcode::constant: value[i] = o.value; break;
      case opcode::add: value[i] = a + b; break;
      case opcode::subtract: value[i] = a - b; break;
      case opcode::multiply: value[i] = a * b; break;
      case opcode::divide: value[i] = a / b; break;
      case opcode::minimum: value[i] = a < b ? a : b; break;
      case opcode::maximum: value[i] = a > b ? a : b; break;
      case opcode::negate: value[i] = -a; break;
      case opcode::absolute: value[i] = a < 0 ? -a : a; break;
      case opcode::less: value[i] = a < b ? 1 : 0; break;
      case opcode::equal: value[i] = a == b ? 1 : 0; break;
      case opcode::logical_not: value[i] = a == 0 ? 1 : 0; break;
      case opcode::select: value[i] = a != 0 ? b : value[o.c]; break;
      case opcode::exponential: value[i] = 1000 + a; break;  // a stand-in that shows where it was called, and with what
      default: throw "this test does not know the code";
    }
  }
  return value[body.size - 1];
}
template <c::operator_kind K>
constexpr double run(const K&, std::initializer_list<double> in, std::initializer_list<double> attributes = {}) {
  return run(*c::kind_of<K>.body, {in.begin(), in.size()}, {attributes.begin(), attributes.size()});
}
static_assert(run(op::relu, {-2}) == 0 && run(op::relu, {3}) == 3);
static_assert(run(op::leaky_relu, {-2}, {0.25}) == -0.5 && run(op::leaky_relu, {2}, {0.25}) == 2);
static_assert(run(op::hard_sigmoid, {1}, {0.5, 0.25}) == 0.75 && run(op::hard_sigmoid, {9}, {0.5, 0.25}) == 1 &&
              run(op::hard_sigmoid, {-9}, {0.5, 0.25}) == 0);
static_assert(run(op::elu, {-2}, {3}) == 3 * (1000 - 2 - 1) && run(op::elu, {2}, {3}) == 2);
static_assert(run(op::sigmoid, {5}) == 1.0 / (1.0 + (1000 - 5)));
static_assert(run(op::reciprocal, {4}) == 0.25 && run(op::neg, {4}) == -4 && run(op::abs, {-4}) == 4);
static_assert(run(op::add, {7, 2}) == 9 && run(op::sub, {7, 2}) == 5 && run(op::mul, {7, 2}) == 14 &&
              run(op::div, {7, 2}) == 3.5);
static_assert(run(op::max, {7, 2}) == 7 && run(op::min, {7, 2}) == 2);
static_assert(run(op::clip, {9, 0, 6}) == 6 && run(op::clip, {-9, 0, 6}) == 0 && run(op::clip, {3, 0, 6}) == 3);

constexpr bool ends_with(const c::traced_body& body, opcode last) { return body.code[body.size - 1].code == last; }
static_assert(ends_with(*c::kind_of<decltype(op::tanh)>.body, opcode::tangent_hyperbolic));
static_assert(ends_with(*c::kind_of<decltype(op::erf)>.body, opcode::error_function));
static_assert(ends_with(*c::kind_of<decltype(op::pow)>.body, opcode::power));
static_assert(c::kind_of<decltype(op::relu)>.body->size == 3 &&
              c::kind_of<decltype(op::relu)>.body->code[0].code == opcode::input);

// A body that hands an operand on has it as its result.
struct second_of : c::elementwise_kind<second_of, 2> {
  static constexpr char name[] = "second_of";
  static constexpr auto body(auto, auto y) { return y; }
};
struct first_of : c::elementwise_kind<first_of, 2> {
  static constexpr char name[] = "first_of";
  static constexpr auto body(auto x, auto) { return x; }
};
static_assert(run(second_of{}, {1, 2}) == 2 && run(first_of{}, {1, 2}) == 1);

// Arithmetic ----------------------------------------------------------------------------------------------------------

template <c::operator_kind K>
constexpr double flops(const K&, std::initializer_list<c::shape> operands, const c::shape& out,
                       const typename K::attributes& a = {}) {
  c::tensor_type in[4];
  std::size_t count = 0;
  for (const c::shape& s : operands) in[count++].dims = s;
  c::tensor_type result[] = {{c::dtype::f32, out}};
  const c::inference io{{in, count}, result};
  return c::kind_of<K>.count(c::to_words(a).list(), io).flops;
}
static_assert(flops(op::matmul, {{4, 5}, {5, 6}}, {4, 6}) == 2 * 4 * 5 * 6);
static_assert(flops(op::matmul, {{3, 5, 4}, {5, 6}}, {3, 4, 6}, {.transpose_a = true}) == 2 * 3 * 4 * 5 * 6);
static_assert(flops(op::conv, {{1, 8, 9, 9}, {4, 2, 3, 3}}, {1, 4, 7, 7}, {.groups = 4}) == 2.0 * 4 * 7 * 7 * 2 * 9);
static_assert(flops(op::conv, {{1, 8, 9}, {4, 8, 3}, {4}}, {1, 4, 7}) == 2.0 * 4 * 7 * 8 * 3 + 4 * 7);
static_assert(flops(op::relu, {{2, 3}}, {2, 3}) == 6);
static_assert(flops(op::sigmoid, {{2, 3}}, {2, 3}) == 24, "negate, exponential, add, divide");
static_assert(flops(op::max_pool, {{1, 2, 4}}, {1, 2, 2}, {.window = {3}}) == 12);
static_assert(flops(op::reduce_sum, {{2, 3, 4}}, {2, 3, 1}) == 24);

// Shapes and verdicts -------------------------------------------------------------------------------------------------

static_assert(c::shape{}.elements() == 1 && c::shape{2, 0}.elements() == 0 &&
              c::shape{2, c::unknown}.elements() == c::unknown);
static_assert(c::shape{1, 2} == c::shape{1, 2} && !(c::shape{1, 2} == c::shape{1, 2, 1}) &&
              !(c::shape{1, 2} == c::shape{2, 1}));
static_assert(c::shape{1, 2, 3, 4, 5, 6, 7, 8}.rank == c::shape::max_rank);
static_assert(c::tensor_type{c::dtype::f16, {2, 3}}.bytes() == 12);
static_assert(c::size_of(c::dtype::boolean) == 1 && c::size_of(c::dtype::i64) == 8 && c::is_floating(c::dtype::bf16) &&
              !c::is_floating(c::dtype::i32));

static_assert(c::first_failure({{true, "a"}, {true, "b"}}).rule == nullptr);
static_assert(c::first_failure({{true, "a"}, {false, "b", 2}, {false, "c"}}).operand == 2);
static_assert(bool(c::verdict(true)) && !c::verdict(false) && c::verdict(false).rule != nullptr);

}  // namespace
