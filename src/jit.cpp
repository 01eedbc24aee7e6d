// The target collage::jit: the backend of generated kernels.
#include <collage/backends/jit.hpp>

#include "jit/product_point.hpp"
#include "jit/replica.hpp"
#include "jit/scheme_product.hpp"

#include <collage/backends/impl/team.hpp>
#include <collage/error.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {
namespace detail::jit {
namespace {

/// The operators after the product, as an epilogue.
struct traced_epilogue {
  epilogue steps;
  std::vector<std::uint32_t> operands;  ///< the values that it reads, in its order
};

class epilogue_tracer {
 public:
  epilogue_tracer(const any_match& m, const product_match& product) : m_(m), product_(product) {}

  traced_epilogue trace() {
    value last = maker_.product();
    if (product_.bias != match_record::nothing)
      last = maker_(ops::add, {last, operand(product_.bias, operand_shape::per_column)});
    made_[m_.output_of(product_.anchor)] = last;
    for (const std::uint32_t node : m_.nodes()) {
      if (node == product_.anchor) continue;
      std::vector<value> in;
      for (const std::uint32_t v : m_.inputs_of(node)) in.push_back(value_of(v));
      const auto words = m_.graph().words_of(node);
      last = made_[m_.output_of(node)] = maker_.apply(m_.kind_of(node), {words.data(), words.size()}, in);
    }
    if (last == maker_.product()) return {};
    maker_.output(last);
    return {maker_.finish(), std::move(operands_)};
  }

 private:
  using value = epilogue_maker::value;

  value operand(std::uint32_t v, operand_shape shape) {
    operands_.push_back(v);
    return maker_.operand(shape);
  }
  value value_of(std::uint32_t v) {
    if (const auto found = made_.find(v); found != made_.end()) return found->second;
    const value_record& record = m_.at(v);
    if (record.has_scalar) return made_[v] = maker_.number(record.scalar);
    const shape& result = m_.type_of(m_.output_of(product_.anchor)).dims;
    switch (place_of(record.type.dims, result, product_.column)) {
      case operand_place::whole: return made_[v] = operand(v, operand_shape::whole);
      case operand_place::per_row: return made_[v] = operand(v, operand_shape::per_row);
      case operand_place::per_column: return made_[v] = operand(v, operand_shape::per_column);
      default: return made_[v] = operand(v, operand_shape::single);
    }
  }

  const any_match& m_;
  const product_match& product_;
  epilogue_maker maker_;
  std::map<std::uint32_t, value> made_;
  std::vector<std::uint32_t> operands_;
};

/// The kernel of a match.
struct run_product {
  std::shared_ptr<const scheme_product> product;
  std::shared_ptr<const std::byte> packed;
  kernel_input<float> left;
  std::vector<kernel_input<float>> operands;
  kernel_output<float> output;

  void operator()(const kernel_call& call) const {
    scheme_product::call c;
    c.a = left(call);
    c.packed = reinterpret_cast<const float*>(packed.get());
    for (std::size_t i = 0; i < operands.size(); ++i) c.operands[i] = operands[i](call);
    c.output = output(call);
    c.workspace = static_cast<float*>(call.workspace);
    product->run(c);
  }
};

std::string name_of(const product_point& p, const std::string& refusal) {
  std::string name =
      std::string(p.algorithm->name) + ", " + std::to_string(p.how.rows) + "x" + std::to_string(p.how.vectors);
  if (!refusal.empty()) name += std::string(", replica ") + replica().target;
  return name;
}

kernel finished(const any_match& m, const product_match& shape, const product_point& point, const traced_epilogue& then,
                std::shared_ptr<const scheme_product> product, std::shared_ptr<const std::byte> packed) {
  run_product run{product, std::move(packed), m.in<float>(shape.left), {}, m.out<float>()};
  std::vector<bool> is_read(m.arguments().size());
  is_read[m.index_of(shape.left)] = true;
  for (const std::uint32_t v : then.operands) {
    run.operands.push_back(m.in<float>(v));
    is_read[m.index_of(v)] = true;
  }
  kernel made(name_of(point, product->refusal()), std::move(run), product->workspace());
  for (std::size_t i = 0; i < is_read.size(); ++i)
    if (!is_read[i]) made.does_not_read(i);
  // Each tile reads its part of an operand before it writes there, and nothing reads it again.
  for (std::size_t i = 0; i < then.operands.size(); ++i)
    if (then.steps.operands[i] == operand_shape::whole && then.operands[i] != shape.left)
      made.may_write_over(m.index_of(then.operands[i]));
  return made;
}

bool needs_many_registers(const any_match& m) {
  for (const std::uint32_t node : m.nodes())
    if (!m.is(node, ops::matmul) && !m.is(node, ops::conv) && !m.is(node, ops::add) && !m.is(node, ops::relu))
      return true;
  return false;
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

}  // namespace
}  // namespace detail::jit

kernel jit::build(const any_match& m, build_context& context) {
  using namespace detail::jit;
  const product_match shape(m);
  const product_point::reading read = product_point::read(context.configuration().text());
  if (!read.point)
    throw error(error_kind::invalid_argument, read.fault, "jit's configuration " + context.configuration().text());
  traced_epilogue then = epilogue_tracer(m, shape).trace();
  auto product =
      std::make_shared<const scheme_product>(*read.point->algorithm, read.point->how,
                                             product_extents{shape.m, shape.n, shape.k}, then.steps, context.threads());
  auto packed = context.packed(shape.right, product->packing() + (shape.right_is_transposed ? " transposed" : ""),
                               product->packed_size() * sizeof(float), [&](std::byte* to) {
                                 product->pack(context.constant<float>(shape.right), shape.right_is_transposed,
                                               reinterpret_cast<float*>(to));
                               });
  return finished(m, shape, *read.point, then, std::move(product), std::move(packed));
}

void jit::configurations(const any_match& m, configuration_list& to) {
  using namespace detail::jit;
  const product_match shape(m);
  for (const product_point& p : promising_points(shape.m, shape.n, shape.k, needs_many_registers(m))) to.add(p.text());
}

verdict jit::knows(const any_match&, const configuration& how) {
  using namespace detail::jit;
  const product_point::reading read = product_point::read(how.text());
  if (!read.point) return {false, read.fault};
  return {read.point->how.set == instruction_set::avx2 || refusal_of(instruction_set::avx512).empty(),
          "it is for AVX-512, which this processor lacks"};
}

void jit::layouts(const any_match& m, const configuration&, value_forms& to) {
  const detail::jit::product_match shape(m);
  if (!shape.is_convolution) return;
  to.set(shape.left, channels_last);
  to.set(m.output(), channels_last);
  const collage::shape& result = m.type_of(m.output()).dims;
  for (const std::uint32_t v : m.arguments())
    if (v != shape.right && v != shape.bias && m.type_of(v).dims == result) to.set(v, channels_last);
}

probe_result jit::probe() {
  using namespace detail::jit;
  static const std::string version =
      "generator " + std::to_string(generator_version) + ", products " + std::to_string(product_version);
  static const std::string details = [] {
    if (!refusal_here().empty()) return std::string("replica for ") + replica().target + ": " + refusal_here();
    return std::string(refusal_of(instruction_set::avx512).empty() ? "AVX-512" : "AVX2");
  }();
  return {.version = version.c_str(), .details = details.c_str()};
}

int jit::enter(int threads) { return detail::host::enter_team(threads); }
void jit::leave(int token) { detail::host::leave_team(token); }

}  // namespace collage::inline v0
