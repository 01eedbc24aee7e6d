// The target collage::jit: the backend of generated kernels.
#include <collage/backends/jit.hpp>

#include "jit/attention_kernel.hpp"
#include "jit/byte_depthwise_kernel.hpp"
#include "jit/convolution_families.hpp"
#include "jit/convolution_kernel.hpp"
#include "jit/depthwise_kernel.hpp"
#include "jit/direct_kernel.hpp"
#include "jit/kernel_family.hpp"
#include "jit/product_kernel.hpp"
#include "jit/product_point.hpp"
#include "jit/replica.hpp"

#include <collage/backends/impl/team.hpp>

#include <cstdint>
#include <string>

namespace collage::inline v0 {
namespace detail::jit {
namespace {

/// The rules are in a public header, which does not know the families.
constexpr bool windows_are_known() {
  for (const convolution_family& f : convolution_families)
    if (!has_algorithms(f.window_rows, f.window_columns) || f.enlargement < 1 || f.enlargement > 2) return false;
  for (const int enlargement : {1, 2})
    for (std::int64_t size = 1; size <= 16; ++size) {
      bool has_family = false;
      for (const convolution_family& f : convolution_families)
        has_family = has_family || (f.window_rows == size && f.window_columns == size && f.enlargement == enlargement);
      if (has_family != has_algorithms(size, size)) return false;
    }
  return true;
}
static_assert(windows_are_known(), "has_algorithms in collage/backends/jit_rules.hpp must list the families' windows");

/// Why generated code cannot run here at all, in one sentence; empty if it can.
const std::string& refusal_here() {
  static const std::string why = [] {
    if (std::string lacking = refusal_of(instruction_set::avx2); !lacking.empty()) return lacking;
    code_arena probe;
    constexpr std::uint8_t nothing[] = {0xC3};
    probe.add(nothing);
    return probe.seal();
  }();
  return why;
}

}  // namespace
}  // namespace detail::jit

kernel jit::build(const any_match& m, build_context& context) {
  using namespace detail::jit;
  switch (family_of(m, context.configuration().text())) {
    case kernel_family::bytes: return build_byte_depthwise(m, context);
    case kernel_family::attention: return build_attention(m, context);
    case kernel_family::direct: return build_direct(m, product_match(m), context);
    case kernel_family::bilinear: return build_convolution(m, product_match(m), context);
    case kernel_family::depthwise: return build_depthwise(m, product_match(m), context);
    default: return build_products(m, context);
  }
}

void jit::configurations(const any_match& m, configuration_list& to) {
  using namespace detail::jit;
  switch (proposed_family_of(m)) {
    case kernel_family::bytes: return propose_byte_depthwise(m, to);
    case kernel_family::attention: return propose_attention(m, to);
    case kernel_family::direct: return propose_direct(m, product_match(m), to);
    case kernel_family::bilinear: return propose_convolution(m, product_match(m), to);
    case kernel_family::depthwise: return propose_depthwise(m, product_match(m), to);
    default: return propose_products(m, product_match(m), to);
  }
}

kernel_algorithm jit::algorithm(const any_match& m, const configuration& how) {
  using namespace detail::jit;
  switch (family_of(m, how.text())) {
    case kernel_family::bilinear: return algorithm_of_convolution(m, product_match(m), how);
    case kernel_family::products: return algorithm_of_products(m, product_match(m), how);
    default: return {};
  }
}

kept_constants jit::weights(const any_match& m, const configuration& how) {
  using namespace detail::jit;
  switch (family_of(m, how.text())) {
    case kernel_family::bytes: return weights_of_byte_depthwise(m, how);
    case kernel_family::attention: return {};
    case kernel_family::direct: return weights_of_direct(m, product_match(m), how);
    case kernel_family::bilinear: return weights_of_convolution(m, product_match(m), how);
    case kernel_family::depthwise: return weights_of_depthwise(m, product_match(m), how);
    default: return weights_of_products(m, how);
  }
}

verdict jit::knows(const any_match& m, const configuration& how) {
  using namespace detail::jit;
  switch (family_of(m, how.text())) {
    case kernel_family::bytes: return knows_byte_depthwise(m, how);
    case kernel_family::attention: return knows_attention(how);
    case kernel_family::direct: return knows_direct(product_match(m), how);
    case kernel_family::bilinear: return knows_convolution(m, product_match(m), how);
    case kernel_family::depthwise: return knows_depthwise(how);
    default: return knows_products(how);
  }
}

void jit::layouts(const any_match& m, const configuration& how, value_forms& to) {
  using namespace detail::jit;
  switch (family_of(m, how.text())) {
    case kernel_family::bytes: return set_byte_depthwise_forms(m, to);
    case kernel_family::attention: return;
    case kernel_family::direct: return set_direct_layouts(m, product_match(m), to);
    case kernel_family::bilinear: return set_convolution_layouts(m, product_match(m), how, to);
    case kernel_family::depthwise: return set_depthwise_layouts(m, product_match(m), to);
    default: return set_product_layouts(m, product_match(m), to);
  }
}

probe_result jit::probe() {
  using namespace detail::jit;
  static const std::string version =
      "generator " + std::to_string(generator_version) + ", products " + std::to_string(product_version) +
      ", convolutions " + std::to_string(convolution_version) + ", direct " + std::to_string(direct_version) +
      ", depthwise " + std::to_string(depthwise_version) + ", attention " + std::to_string(attention_version) +
      ", bytes " + std::to_string(byte_depthwise_version);
  static const std::string details = [] {
    if (!refusal_here().empty()) return std::string("replica for ") + replica().target + ": " + refusal_here();
    return std::string(refusal_of(instruction_set::avx512).empty() ? "AVX-512" : "AVX2");
  }();
  return {.version = version.c_str(), .details = details.c_str()};
}

int jit::enter(int threads) { return detail::host::enter_team(threads); }
void jit::leave(int token) { detail::host::leave_team(token); }

}  // namespace collage::inline v0
