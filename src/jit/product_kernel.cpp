#include "product_kernel.hpp"

#include "configuration_reading.hpp"
#include "kernel_family.hpp"
#include "matches.hpp"
#include "product_point.hpp"
#include "replica.hpp"
#include "scheme_product.hpp"
#include "traced_epilogue.hpp"

#include <collage/backends/jit_with.hpp>
#include <collage/error.hpp>
#include <collage/run/layouts.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::jit {
namespace {

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

kernel build_with(const any_match& m, const product_point& point, build_context& context) {
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

/// The columns of all products of a match.
std::vector<std::int64_t> columns_of(const any_match& m) {
  std::vector<std::int64_t> columns;
  for (const product_match& p : products_in(m)) columns.push_back(p.n);
  return columns;
}

}  // namespace

void propose(const any_match& m, const scheme& s, configuration_list& to) {
  if (family_of(m, "") != kernel_family::products) return;
  const product_match shape(m);
  for (const product_point& p :
       points_with(listed_as(s), shape.m, columns_of(m), shape.k, needs_many_registers(m, shape)))
    to.add(p.text());
}

void propose_products(const any_match& m, const product_match& first, configuration_list& to) {
  for (const product_point& p : promising_points(first.m, columns_of(m), first.k, needs_many_registers(m, first)))
    to.add(p.text());
}

verdict knows_products(const collage::configuration& how) {
  const product_point::reading read = product_point::read(how.text());
  if (!read.point) return {false, read.fault};
  return runs_here(read.point->how.set);
}

kernel_algorithm algorithm_of_products(const any_match& m, const product_match& first,
                                       const collage::configuration& how) {
  const product_point::reading read = product_point::read(how.text());
  if (!read.point || read.point->algorithm->is_classical()) return {};
  // A scheme's products are sums over blocks of the inner extent.
  const scheme& s = *read.point->algorithm;
  const auto inner = (static_cast<std::size_t>(first.k) + s.inner - 1) / s.inner;
  const std::size_t last = m.type_of(first.left).dims.rank - 1;
  return {.name = s.name,
          .error_bound = s.error.bound(0x1p-24, inner),
          .direct_error = direct_error(first.k),
          .input = first.left,
          .channels = first.is_convolution ? 1 : last};
}

kept_constants weights_of_products(const any_match& m, const collage::configuration& how) {
  const product_point::reading read = product_point::read(how.text());
  if (!read.point) return {};
  kept_constants kept;
  for (const product_match& p : products_in(m)) kept.push_back(weights_of_product(p, *read.point));
  return kept;
}

void set_product_layouts(const any_match& m, const product_match& first, value_forms& to) {
  if (!first.is_convolution) return;
  to.set(first.left, channels_last);
  for (const std::uint32_t v : m.outputs()) to.set(v, channels_last);
  const shape& result = m.type_of(m.output()).dims;
  for (const std::uint32_t v : m.arguments())
    if (v != first.right && v != first.bias && m.type_of(v).dims == result) to.set(v, channels_last);
}

kernel build_products(const any_match& m, build_context& context) {
  const product_point::reading read = product_point::read(context.configuration().text());
  if (!read.point)
    throw error(error_kind::invalid_argument, read.fault, "jit's configuration " + context.configuration().text());
  return build_with(m, *read.point, context);
}

}  // namespace collage::inline v0::detail::jit
