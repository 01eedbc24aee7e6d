// The definitions of collage/backends/onednn.hpp. Exactly one file of a program includes them, is compiled with OpenMP and is
// linked with oneDNN's build for OpenMP. It is src/onednn.cpp, which is the target collage::onednn, or a file of the user.
#pragma once

#include <array>
#include <collage/backends/impl/compiled_for.hpp>
#include <collage/backends/impl/onednn_bytes.hpp>
#include <collage/backends/impl/onednn_conv.hpp>
#include <collage/backends/impl/onednn_deconv.hpp>
#include <collage/backends/impl/onednn_depthwise.hpp>
#include <collage/backends/impl/onednn_library.hpp>
#include <collage/backends/impl/onednn_matmul.hpp>
#include <collage/backends/impl/onednn_quantised_match.hpp>
#include <collage/backends/impl/onednn_quantised_matmul_float.hpp>
#include <collage/backends/impl/onednn_recurrent.hpp>
#include <collage/backends/impl/onednn_rows.hpp>
#include <collage/backends/impl/onednn_window.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/backends/onednn.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

inline kernel build_single(const any_match& m, build_context& context, std::uint32_t node) {
  if (m.is(node, ops::convert_layout)) return build_conversion(m, context, node);
  const form stored = forms_of_single(m, node).at(context.choice());
  if (m.is(node, ops::max_pool)) return build_max_pool(m, context, node, stored);
  if (m.is(node, ops::average_pool)) return build_average_pool(m, context, node, stored);
  if (m.is(node, ops::resize)) return build_resize(m, context, node);
  if (m.is(node, ops::softmax)) return build_softmax(m, context, node, stored);
  if (m.is(node, ops::layer_norm)) return build_layer_norm(m, context, node, stored);
  if (m.is(node, ops::reduce_mean) || m.is(node, ops::reduce_sum)) return build_reduction(m, context, node, stored);
  if (m.is(node, ops::concat)) return build_concat(m, context, node, stored);
  if (m.is(node, ops::transpose)) return build_transpose(m, context, node, stored);
  if (m.is(node, ops::lstm) || m.is(node, ops::gru)) return build_recurrent(m, context, node);
  if (m.inputs_of(node).size() == 2) return build_binary(m, context, node, stored);
  return build_eltwise(m, context, node, stored);
}

/// In which element types kernels on integers of 8 bits write their results: as uint8, or as the network has them.
inline constexpr std::array<std::optional<dtype>, 2> results_of_bytes{dtype::u8, std::nullopt};

/// The variants of a convolution of either kind: each way in float32, then each in bfloat16. Those on integers of 8 bits follow.
inline std::vector<conv_variant> variants_of(const chain& m, const conv_problem& p) {
  std::vector<conv_variant> list;
  for (const std::optional<dtype> stored : {std::optional<dtype>(), std::optional(dtype::bf16)})
    for (const conv_way way : ways_of(m, p)) list.push_back({way, stored});
  return list;
}
/// Implementations of the library that are tried for a product, in float32 and then in bfloat16. Variants on integers follow.
inline constexpr std::size_t product_implementations = 2;

/// The number of variants of a convolution or product that multiply no integers of 8 bits.
inline std::size_t variants_of_floats(const chain& m) {
  return m.is_convolution(m.anchor) ? variants_of(m, terms_of(m)).size() : 2 * product_implementations;
}
inline std::size_t variants_of_anchor(const chain& m) {
  const bool bytes = m.is_convolution(m.anchor) ? has_bytes(m, terms_of(m)) : has_bytes(m);
  return variants_of_floats(m) + (bytes ? results_of_bytes.size() : 0);
}
/// The forms of a variant; nothing if there is none.
inline value_forms forms_of_anchor(const chain& m, std::size_t choice) {
  value_forms borders;
  if (const std::size_t floats = variants_of_floats(m); choice >= floats) {
    if (choice - floats >= results_of_bytes.size()) return borders;
    const std::uint32_t x = m.is_convolution(m.anchor) ? terms_of(m).x_value : matmul_problem_of(m).a_value;
    return byte_forms(m, x, results_of_bytes[choice - floats], m.is_convolution(m.anchor));
  }
  if (m.is_convolution(m.anchor)) {
    const conv_problem p = terms_of(m);
    return conv_forms(m, p, variants_of(m, p).at(choice));
  }
  if (choice >= product_implementations) store_in(dtype::bf16, m, borders);
  return borders;
}
inline kernel build_anchor(const chain& m, build_context& context) {
  const std::size_t choice = context.choice();
  const value_forms borders = forms_of_anchor(m, choice);
  const bool bytes = choice >= variants_of_floats(m);
  if (!m.is_convolution(m.anchor))
    return bytes ? byte_product(m, context, borders).make()
                 : build_matmul(m, context, borders, choice % product_implementations);
  if (bytes) return build_byte_conv(m, context, borders);
  const conv_variant which = variants_of(m, terms_of(m)).at(choice);
  return is_deconv(m) ? build_deconv(m, context, which) : build_conv(m, context, which);
}

inline kernel build_any(const chain& m, build_context& context) {
  if (m.anchor == match_record::nothing) return build_single(m, context, m.nodes().back());
  if (is_quantised_product(m)) return build_quantised_matmul(m, context);
  if (m.depthwise != match_record::nothing) return build_pair(m, context);
  return build_anchor(m, context);
}

/// The instruction set for which the library compiles its kernels, by the library's own name.
inline const char* instruction_set() {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41: return "sse41";
    case dnnl_cpu_isa_avx: return "avx";
    case dnnl_cpu_isa_avx2: return "avx2";
    case dnnl_cpu_isa_avx2_vnni: return "avx2_vnni";
    case dnnl_cpu_isa_avx2_vnni_2: return "avx2_vnni_2";
    case dnnl_cpu_isa_avx512_core: return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni: return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16: return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_fp16: return "avx512_core_fp16";
    case dnnl_cpu_isa_avx512_core_amx: return "avx512_core_amx";
    case dnnl_cpu_isa_avx512_core_amx_fp16: return "avx512_core_amx_fp16";
    default: return "another instruction set";
  }
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn

namespace collage::inline v0 {

kernel onednn::build(const detail::onednn::chain& m, build_context& context) {
  namespace library = detail::onednn;
  if (const probe_result here = probe(); !here.available) throw error(error_kind::unsupported, here.reason, name);
  const detail::host::team_scope team(context.threads());  // the library divides the work while a kernel is built
  return library::translated(m.pattern(), [&] { return library::build_any(m, context); });
}

kernel onednn::build(const detail::onednn::quantised_conv_match& m, build_context& context) {
  namespace library = detail::onednn;
  if (const probe_result here = probe(); !here.available) throw error(error_kind::unsupported, here.reason, name);
  const detail::host::team_scope team(context.threads());
  return library::translated(m.pattern(), [&] { return library::build_quantised(m, context); });
}

std::size_t onednn::choices(const detail::onednn::quantised_conv_match&) { return detail::onednn::quantised_ways; }

void onednn::layouts(const detail::onednn::quantised_conv_match& m, std::size_t choice, value_forms& to) {
  to = detail::onednn::quantised_borders(m, choice);
}

std::size_t onednn::choices(const detail::onednn::chain& m) {
  using namespace detail::onednn;
  if (m.depthwise != match_record::nothing) return block_size() != 0 ? 2 : 0;
  if (is_quantised_product(m)) return 2;
  if (m.anchor != match_record::nothing) return variants_of_anchor(m);
  const std::uint32_t node = m.nodes().back();
  return m.is(node, ops::convert_layout) ? conversions(m.type_of(m.output())).size() : forms_of_single(m, node).size();
}

void onednn::layouts(const detail::onednn::chain& m, std::size_t choice, value_forms& to) {
  using namespace detail::onednn;
  if (m.depthwise != match_record::nothing) {
    to = pair_layouts(m, choice);
  } else if (m.anchor != match_record::nothing) {
    if (choice < variants_of_anchor(m)) to = forms_of_anchor(m, choice);
  } else if (const std::uint32_t node = m.nodes().back(); m.is(node, ops::convert_layout)) {
    const auto [from, made] = conversions(m.type_of(m.output())).at(choice);
    to.set(m.inputs_of(node)[0], from);
    to.set(m.output(), made);
  } else if (const std::vector<form> forms = forms_of_single(m, node); choice < forms.size()) {
    set_forms_of_single(m, node, forms[choice], to);
  }
}

probe_result onednn::probe() {
  namespace library = detail::onednn;
  if (const char* missing = detail::host::why_not_here(); *missing != '\0')
    return {.available = false, .reason = missing};
  const dnnl_version_t& version = *dnnl_version();
  static const std::string number =
      std::to_string(version.major) + '.' + std::to_string(version.minor) + '.' + std::to_string(version.patch);
  static const std::string details =
      std::string("kernels for ") + library::instruction_set() + "; " + detail::host::compiled_for;
  const bool shares_the_team = version.cpu_runtime == DNNL_RUNTIME_OMP;
  return {.available = shares_the_team,
          .version = number.c_str(),
          .details = details.c_str(),
          .reason = shares_the_team ? "" : "this oneDNN does not run on OpenMP: install its build for GNU OpenMP"};
}

int onednn::enter(int threads) { return detail::host::enter_team(threads); }
void onednn::leave(int token) { detail::host::leave_team(token); }

}  // namespace collage::inline v0
