#include "traced_epilogue.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::jit {
namespace {

class epilogue_tracer {
 public:
  epilogue_tracer(const any_match& m, const product_match& product) : m_(m), product_(product) {}

  traced_epilogue trace() {
    value last = maker_.product();
    if (product_.bias != match_record::nothing)
      last = maker_(ops::add, {last, operand(product_.bias, operand_shape::per_column)});
    made_[m_.output_of(product_.anchor)] = last;
    for (const std::uint32_t node : m_.nodes()) {
      if (!product_.is_later(m_, node)) continue;
      std::vector<value> in;
      for (const std::uint32_t v : m_.inputs_of(node)) in.push_back(value_of(v));
      const auto words = m_.graph().words_of(node);
      last = made_[m_.output_of(node)] = maker_.apply(m_.kind_of(node), {words.data(), words.size()}, in);
    }
    std::vector<std::size_t> outputs = outputs_of_product();
    if (outputs.size() == 1 && last == maker_.product()) return {{}, {}, std::move(outputs)};
    for (const std::size_t i : outputs) maker_.output(made_.at(m_.outputs()[i]));
    return {maker_.finish(), std::move(operands_), std::move(outputs)};
  }

 private:
  using value = epilogue_maker::value;

  /// Several products of a match have an output each.
  std::vector<std::size_t> outputs_of_product() const {
    std::vector<std::size_t> list;
    for (std::size_t i = 0; i < m_.outputs().size(); ++i)
      if (anchor_before(m_, static_cast<std::uint32_t>(m_.at(m_.outputs()[i]).producer)) == product_.anchor)
        list.push_back(i);
    return list;
  }
  value operand(std::uint32_t v, operand_shape shape) {
    operands_.push_back(v);
    return maker_.operand(shape);
  }
  value value_of(std::uint32_t v) {
    if (const auto found = made_.find(v); found != made_.end()) return found->second;
    const value_record& record = m_.at(v);
    if (record.has_scalar) return made_[v] = maker_.number(record.scalar);
    switch (product_.place(record.type.dims, m_.type_of(m_.output_of(product_.anchor)).dims)) {
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

}  // namespace

void set_access(kernel& made, const any_match& m, const product_match& product, std::span<const traced_epilogue> then) {
  const auto reads = [&](std::uint32_t v) {
    const bool is_bias_before =
        product.is_depthwise() && m.inputs_of(product.depthwise).size() > 2 && v == m.inputs_of(product.depthwise)[2];
    return v == product.left || is_bias_before || std::ranges::any_of(then, [&](const traced_epilogue& t) {
             return std::ranges::find(t.operands, v) != t.operands.end();
           });
  };
  for (std::size_t i = 0; i < m.arguments().size(); ++i)
    if (!reads(m.arguments()[i])) made.does_not_read(i);
  if (then.size() > 1) return;  // what several products read is constant
  for (const traced_epilogue& t : then)
    for (std::size_t i = 0; i < t.operands.size(); ++i)
      if (t.steps.operands[i] == operand_shape::whole && t.operands[i] != product.left)
        for (const std::size_t output : t.outputs) made.may_write_over(m.index_of(t.operands[i]), output);
}

traced_epilogue trace_epilogue(const any_match& m, const product_match& product) {
  return epilogue_tracer(m, product).trace();
}

}  // namespace collage::inline v0::detail::jit
