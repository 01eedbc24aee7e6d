// The target collage::jit: the backend of generated kernels.
#include <collage/backends/jit.hpp>
#include <collage/backends/jit_with.hpp>

#include "jit/byte_depthwise_kernel.hpp"
#include "jit/convolution_kernel.hpp"
#include "jit/depthwise_kernel.hpp"
#include "jit/direct_kernel.hpp"
#include "jit/matches.hpp"
#include "jit/product_point.hpp"
#include "jit/replica.hpp"
#include "jit/scheme_product.hpp"
#include "jit/traced_epilogue.hpp"

#include <collage/backends/impl/team.hpp>
#include <collage/error.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/weights.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

/// The kernel of products.
struct run_products {
  struct one {
    std::shared_ptr<const std::byte> packed;
    std::vector<kernel_input<float>> operands;
    std::vector<kernel_output<float>> outputs;
  };
  std::shared_ptr<const scheme_product> product;
  kernel_input<float> left;
  std::vector<one> right;

  void operator()(const kernel_call& call) const {
    scheme_product::call c;
    c.a = left(call);
    for (std::size_t i = 0; i < right.size(); ++i) {
      c.right[i].packed = reinterpret_cast<const float*>(right[i].packed.get());
      for (std::size_t o = 0; o < right[i].operands.size(); ++o) c.right[i].operands[o] = right[i].operands[o](call);
      for (std::size_t o = 0; o < right[i].outputs.size(); ++o) c.right[i].outputs[o] = right[i].outputs[o](call);
    }
    c.workspace = static_cast<float*>(call.workspace);
    product->run(c);
  }
};

kept_constant weights_of_product(const product_match& shape, const product_point& p) {
  return {shape.right, packing_of(*p.algorithm, p.how) + (shape.right_is_transposed ? " transposed" : ""),
          packed_floats(*p.algorithm, p.how, {shape.m, shape.n, shape.k}) * sizeof(float)};
}

std::string name_of(const product_point& p, std::size_t products, const std::string& refusal) {
  std::string name =
      std::string(p.algorithm->name) + ", " + std::to_string(p.how.rows) + "x" + std::to_string(p.how.vectors);
  if (products > 1) name += ", " + std::to_string(products) + " products";
  if (!refusal.empty()) name += std::string(", replica ") + replica().target;
  return name;
}

kernel build_products(const any_match& m, const product_point& point, build_context& context) {
  const std::vector<product_match> products = products_in(m);
  std::vector<traced_epilogue> then;
  std::vector<scheme_product::right_operand> rights;
  for (const product_match& p : products) {
    then.push_back(trace_epilogue(m, p));
    rights.push_back({p.n, then.back().steps});
  }
  const product_match& first = products.front();
  auto made =
      std::make_shared<const scheme_product>(*point.algorithm, point.how, first.m, first.k, rights, context.threads());
  run_products run{made, m.in<float>(first.left), {}};
  for (std::size_t i = 0; i < products.size(); ++i) {
    const product_match& p = products[i];
    const kept_constant kept = weights_of_product(p, point);
    auto packed = context.packed(kept.value, kept.packing, kept.bytes, [&](std::byte* to) {
      made->pack(context.constant<float>(p.right), p.right_is_transposed, reinterpret_cast<float*>(to), i);
    });
    run.right.push_back({std::move(packed), {}, {}});
    for (const std::size_t o : then[i].outputs) run.right.back().outputs.push_back(m.out<float>(o));
    for (const std::uint32_t v : then[i].operands) run.right.back().operands.push_back(m.in<float>(v));
  }
  kernel built(name_of(point, products.size(), made->refusal()), std::move(run), made->workspace());
  set_access(built, m, first, then);
  return built;
}

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

/// The columns of all products of a match.
std::vector<std::int64_t> columns_of(const any_match& m) {
  std::vector<std::int64_t> columns;
  for (const product_match& p : products_in(m)) columns.push_back(p.n);
  return columns;
}

}  // namespace

void propose(const any_match& m, const scheme& s, configuration_list& to) {
  if (is_on_bytes(m)) return;
  const product_match shape(m);
  if (shape.is_windowed || shape.is_depthwise()) return;
  for (const product_point& p :
       points_with(listed_as(s), shape.m, columns_of(m), shape.k, needs_many_registers(m, shape)))
    to.add(p.text());
}

}  // namespace detail::jit

kernel jit::build(const any_match& m, build_context& context) {
  using namespace detail::jit;
  if (is_on_bytes(m)) return build_byte_depthwise(m, context);
  const product_match shape(m);
  if (shape.is_windowed && is_direct(context.configuration().text())) return build_direct(m, shape, context);
  if (shape.is_windowed) return build_convolution(m, shape, context);
  if (shape.is_depthwise()) return build_depthwise(m, shape, context);
  const product_point::reading read = product_point::read(context.configuration().text());
  if (!read.point)
    throw error(error_kind::invalid_argument, read.fault, "jit's configuration " + context.configuration().text());
  return build_products(m, *read.point, context);
}

void jit::configurations(const any_match& m, configuration_list& to) {
  using namespace detail::jit;
  if (is_on_bytes(m)) {
    for (const byte_depthwise_configuration& c : promising_configurations(byte_depthwise_of(m))) to.add(to_text(c));
    return;
  }
  const product_match shape(m);
  if (shape.is_windowed && !shape.suits_bilinear) return propose_direct(m, shape, to);
  if (shape.is_windowed) {
    for (const convolution_point& p : promising_points(convolution_of(m, shape), this_machine())) to.add(p.text());
    return;
  }
  const bool is_long = needs_many_registers(m, shape);
  if (shape.is_depthwise()) {
    for (const depthwise_configuration& c :
         promising_configurations(depthwise_of(m, shape), shape.n, is_long, this_machine().threads))
      to.add(to_text(c));
    return;
  }
  for (const product_point& p : promising_points(shape.m, columns_of(m), shape.k, is_long)) to.add(p.text());
}

kernel_algorithm jit::algorithm(const any_match& m, const configuration& how) {
  using namespace detail::jit;
  if (is_on_bytes(m)) return {};
  const product_match shape(m);
  if (shape.is_windowed && is_direct(how.text())) return {};
  if (shape.is_windowed) return algorithm_of_convolution(m, shape, how);
  const product_point::reading read = product_point::read(how.text());
  if (!read.point || read.point->algorithm->is_classical()) return {};
  // A scheme's products are sums over blocks of the inner extent.
  const scheme& s = *read.point->algorithm;
  const auto inner = (static_cast<std::size_t>(shape.k) + s.inner - 1) / s.inner;
  const std::size_t last = m.type_of(shape.left).dims.rank - 1;
  return {.name = s.name,
          .error_bound = s.error.bound(0x1p-24, inner),
          .direct_error = direct_error(shape.k),
          .input = shape.left,
          .channels = shape.is_convolution ? 1 : last};
}

kept_constants jit::weights(const any_match& m, const configuration& how) {
  using namespace detail::jit;
  if (is_on_bytes(m)) return weights_of_byte_depthwise(m, how);
  const product_match shape(m);
  if (shape.is_windowed && is_direct(how.text())) return weights_of_direct(m, shape, how);
  if (shape.is_windowed) return weights_of_convolution(m, shape, how);
  if (shape.is_depthwise()) return weights_of_depthwise(m, shape, how);
  const product_point::reading read = product_point::read(how.text());
  if (!read.point) return {};
  kept_constants kept;
  for (const product_match& p : products_in(m)) kept.push_back(weights_of_product(p, *read.point));
  return kept;
}

verdict jit::knows(const any_match& m, const configuration& how) {
  using namespace detail::jit;
  if (is_on_bytes(m)) return knows_byte_depthwise(m, how);
  const product_match shape(m);
  if (shape.is_windowed && is_direct(how.text())) return knows_direct(shape, how);
  if (shape.is_windowed) return knows_convolution(m, shape, how);
  if (shape.is_depthwise()) return knows_depthwise(how);
  const product_point::reading read = product_point::read(how.text());
  if (!read.point) return {false, read.fault};
  return {read.point->how.set == instruction_set::avx2 || refusal_of(instruction_set::avx512).empty(),
          "it is for AVX-512, which this processor lacks"};
}

void jit::layouts(const any_match& m, const configuration& how, value_forms& to) {
  if (detail::jit::is_on_bytes(m)) {
    const detail::jit::quantised_depthwise_match q(m);
    const form stored = q.is_of_file() ? form(channels_last) : form(channels_last).of(dtype::u8);
    to.set(q.image, stored);
    to.set(m.output(), stored);
    return;
  }
  const detail::jit::product_match shape(m);
  if (shape.is_windowed && detail::jit::is_direct(how.text())) return detail::jit::set_direct_layouts(m, shape, to);
  if (shape.is_windowed) return detail::jit::set_convolution_layouts(m, shape, how, to);
  if (!shape.is_convolution) return;
  to.set(shape.left, channels_last);
  for (const std::uint32_t v : m.outputs()) to.set(v, channels_last);
  const collage::shape& result = m.type_of(m.output()).dims;
  const std::uint32_t window = shape.is_depthwise() ? m.inputs_of(shape.depthwise)[1] : match_record::nothing;
  for (const std::uint32_t v : m.arguments())
    if (v != shape.right && v != shape.bias && v != window && m.type_of(v).dims == result) to.set(v, channels_last);
}

probe_result jit::probe() {
  using namespace detail::jit;
  static const std::string version =
      "generator " + std::to_string(generator_version) + ", products " + std::to_string(product_version) +
      ", convolutions " + std::to_string(convolution_version) + ", direct " + std::to_string(direct_version) +
      ", depthwise " + std::to_string(depthwise_version) + ", bytes " + std::to_string(byte_depthwise_version);
  static const std::string details = [] {
    if (!refusal_here().empty()) return std::string("replica for ") + replica().target + ": " + refusal_here();
    return std::string(refusal_of(instruction_set::avx512).empty() ? "AVX-512" : "AVX2");
  }();
  return {.version = version.c_str(), .details = details.c_str()};
}

int jit::enter(int threads) { return detail::host::enter_team(threads); }
void jit::leave(int token) { detail::host::leave_team(token); }

}  // namespace collage::inline v0
