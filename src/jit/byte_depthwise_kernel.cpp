#include "byte_depthwise_kernel.hpp"

#include "configuration_reading.hpp"

#include <collage/backends/impl/byte_weights.hpp>
#include <collage/error.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace collage::inline v0::detail::jit {
namespace {

struct run_byte_depthwise {
  std::shared_ptr<const byte_depthwise> made;
  std::shared_ptr<const std::byte> weights;
  std::size_t image = 0;
  void operator()(const kernel_call& call) const { made->run({call.in[image], weights.get(), call.out[0]}); }
};

configuration_reading<byte_depthwise_configuration> read_bytes(const collage::configuration& how) {
  return read_configuration(&parse_byte_depthwise_configuration, how,
                            "it is not of the form: bytes1 avx512-vnni tile 3x4 order channels");
}

std::string name_of(const byte_depthwise_configuration& c, const std::string& refusal) {
  if (!refusal.empty()) return "depthwise of bytes, replica";
  return "depthwise of bytes, " + std::to_string(c.rows) + "x" + std::to_string(c.columns) +
         (c.order == byte_depthwise_order::channels ? ", channels first" : ", columns first");
}

/// Uint8 weights whose zero point is 128 become int8 ones, of which 128 is 0. Float32 ones are rounded by their scales.
std::vector<std::int8_t> signed_weights(const byte_convolution& c, const build_context& context, std::uint32_t value) {
  const std::int64_t count = c.shape.channels * c.shape.taps();
  if (context.network().type_of(value).type == dtype::f32)
    return rounded_weights(context.constant<float>(value), c.weight_scales, c.shape.taps());
  const auto* const bytes = context.constant<std::uint8_t>(value);
  const std::uint8_t flip = context.network().type_of(value).type == dtype::u8 ? 0x80 : 0;
  std::vector<std::int8_t> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back(static_cast<std::int8_t>(bytes[i] ^ flip));
  return list;
}
std::string packing_of(const byte_depthwise_configuration& how, const byte_depthwise_shape& s, dtype type) {
  return byte_depthwise::packing(how, s) + (type == dtype::u8    ? ", of uint8"
                                            : type == dtype::f32 ? ", of float32"
                                                                 : "");
}

int number_of(const build_context& context, std::uint32_t value) {
  return context.network().type_of(value).type == dtype::i8 ? int{*context.constant<std::int8_t>(value)}
                                                            : int{*context.constant<std::uint8_t>(value)};
}
/// The form of the integers that a node quantises to or dequantises.
byte_form form_of(const any_match& m, std::uint32_t node, dtype type, const build_context& context) {
  const auto in = m.inputs_of(node);
  return {type, *context.constant<float>(in[1]), in.size() < 3 ? 0 : number_of(context, in[2])};
}

void check_zeros_of_weights(const any_match& m, const quantised_depthwise_match& q, const build_context& context) {
  const auto in = m.inputs_of(q.weight_scales);
  const dtype type = m.type_of(q.weights).type;
  bool is_right = type == dtype::i8;
  if (in.size() == 3) {
    const auto* const zeros = context.constant<std::uint8_t>(in[2]);
    const std::uint8_t wanted = type == dtype::i8 ? 0 : 128;
    is_right =
        std::all_of(zeros, zeros + m.type_of(in[2]).dims.elements(), [&](std::uint8_t z) { return z == wanted; });
  }
  if (!is_right)
    throw error(error_kind::unsupported,
                "weights of a quantised depthwise convolution have a zero point other than 0 for int8 or 128 for uint8",
                "jit");
}

/// The integers as which a plan stores a value.
byte_form stored_form(std::uint32_t value, const build_context& context) {
  const integer_scale how = context.scale_of(value, dtype::u8);
  return {dtype::u8, how.scale, how.zero_point};
}

/// The forms of values and the scales of weights, as a file has them.
void read_file(byte_convolution& c, const any_match& m, const quantised_depthwise_match& q,
               const build_context& context) {
  check_zeros_of_weights(m, q, context);
  c.image = form_of(m, q.image_scales, m.type_of(q.image).type, context);
  c.result = q.is_quantised() ? form_of(m, q.last, m.type_of(m.output()).type, context) : byte_form{dtype::f32};
  const std::uint32_t scales = m.inputs_of(q.weight_scales)[1];
  const auto* const list = context.constant<float>(scales);
  c.weight_scales.assign(list, list + m.type_of(scales).dims.elements());
}

byte_convolution convolution_of(const any_match& m, const quantised_depthwise_match& q, const build_context& context) {
  byte_convolution c;
  c.shape = byte_depthwise_of(m);
  if (q.is_of_file()) {
    read_file(c, m, q, context);
  } else {
    c.image = stored_form(q.image, context);
    c.result = stored_form(m.output(), context);
    const auto* const weights = context.constant<float>(q.weights);
    c.weight_scales =
        scales_of_weights(c.shape.channels, c.shape.taps(), "jit",
                          [&](std::int64_t channel, std::int64_t i) { return weights[channel * c.shape.taps() + i]; });
  }
  if (q.bias != match_record::nothing) {
    const auto* const bias = context.constant<float>(q.bias);
    c.bias.assign(bias, bias + c.shape.channels);
  }
  if (q.between == match_record::nothing) return c;
  c.least = 0;
  if (!m.is(q.between, ops::clip)) return c;
  const auto in = m.inputs_of(q.between);
  c.least = static_cast<float>(m.at(in[1]).scalar);
  c.most = static_cast<float>(m.at(in[2]).scalar);
  return c;
}

}  // namespace

byte_depthwise_terms terms_of(const byte_convolution& c) {
  const bool is_float = c.result.type == dtype::f32;
  const double unit = is_float ? 1 : static_cast<double>(c.result.scale);
  byte_depthwise_terms t;
  t.source = c.image.type;
  t.source_zero = c.image.zero;
  t.result = c.result.type;
  t.zero = is_float ? 0 : c.result.zero;
  for (std::size_t i = 0; i < static_cast<std::size_t>(c.shape.channels); ++i) {
    const double weight = static_cast<double>(c.weight_scales[c.weight_scales.size() == 1 ? 0 : i]);
    t.factor.push_back(static_cast<float>(static_cast<double>(c.image.scale) * weight / unit));
    t.offset.push_back(c.bias.empty() ? 0 : static_cast<float>(static_cast<double>(c.bias[i]) / unit));
  }
  t.least = static_cast<float>(static_cast<double>(c.least) / unit);
  t.most = static_cast<float>(static_cast<double>(c.most) / unit);
  return t;
}

kernel build_byte_depthwise(const byte_convolution& c, const byte_operands& from, build_context& context) {
  const byte_depthwise_configuration how = needed(read_bytes(context.configuration()), context.configuration());
  const std::vector<std::int8_t> weights = signed_weights(c, context, from.weights);
  run_byte_depthwise run{
      std::make_shared<const byte_depthwise>(how, c.shape, terms_of(c), weights.data(), context.threads()),
      {},
      from.image};
  run.weights = context.packed(from.weights, packing_of(how, c.shape, context.network().type_of(from.weights).type),
                               byte_depthwise::packed_size(how, c.shape),
                               [&](std::byte* to) { byte_depthwise::pack(how, c.shape, weights.data(), to); });
  const std::string name = name_of(how, run.made->refusal());
  return {name, std::move(run)};
}

byte_depthwise_shape byte_depthwise_of(const any_match& m) {
  const quantised_depthwise_match q(m);
  const shape &x = m.type_of(q.image).dims, &w = m.type_of(q.weights).dims;
  const ops::conv_attributes t = m.attributes(q.depthwise, ops::conv);
  return {.batch = x[0],
          .channels = x[1],
          .height = x[2],
          .width = x[3],
          .window_rows = w[2],
          .window_columns = w[3],
          .stride_rows = t.strides[0],
          .stride_columns = t.strides[1],
          .dilation_rows = t.dilations[0],
          .dilation_columns = t.dilations[1],
          .pad_top = t.pads_begin[0],
          .pad_left = t.pads_begin[1],
          .pad_bottom = t.pads_end[0],
          .pad_right = t.pads_end[1]};
}

void propose_byte_depthwise(const any_match& m, configuration_list& to) {
  for (const byte_depthwise_configuration& c : promising_configurations(byte_depthwise_of(m))) to.add(to_text(c));
}

verdict knows_byte_depthwise(const any_match& m, const collage::configuration& how) {
  const auto found = read_bytes(how);
  if (!found.how) return {false, found.fault};
  if (found.how->is_replica()) return {};
  return first_failure({{can_generate(*found.how, byte_depthwise_of(m)), "its tile is too large for this window"},
                        {refusal_of_bytes().empty(), "it is for AVX-512 with VNNI, which this processor lacks"}});
}

kept_constants weights_of_byte_depthwise(const any_match& m, const collage::configuration& how) {
  const auto found = read_bytes(how);
  if (!found.how) return {};
  const quantised_depthwise_match q(m);
  const byte_depthwise_shape s = byte_depthwise_of(m);
  return {
      {q.weights, packing_of(*found.how, s, m.type_of(q.weights).type), byte_depthwise::packed_size(*found.how, s)}};
}

void set_byte_depthwise_forms(const any_match& m, value_forms& to) {
  const quantised_depthwise_match q(m);
  const form stored = q.is_of_file() ? form(channels_last) : form(channels_last).of(dtype::u8);
  to.set(q.image, stored);
  to.set(m.output(), stored);
}

kernel build_byte_depthwise(const any_match& m, build_context& context) {
  const quantised_depthwise_match q(m);
  const byte_operands from = {m.index_of(q.image), q.weights};
  kernel built = build_byte_depthwise(convolution_of(m, q, context), from, context);
  for (std::size_t i = 0; i < m.arguments().size(); ++i)
    if (i != from.image) built.does_not_read(i);
  return built;
}

}  // namespace collage::inline v0::detail::jit
