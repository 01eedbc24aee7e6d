#include "epilogue.hpp"

#include <collage/backends/impl/stacked_expression.hpp>
#include <collage/error.hpp>

#include <string>
#include <vector>

namespace collage::inline v0::detail::jit {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw error(error_kind::unsupported, why, "jit"); }

using host::expression_node;

/// Whether epilogues compute an expression.
bool is_computed(const expression_node& e) {
  switch (e.is) {
    case expression_node::what::leaf:
    case expression_node::what::number: return true;
    case expression_node::what::code: return is_in_epilogues(e.code);
    default: return false;
  }
}

/// Lowers the expressions that outputs need.
class lowering {
 public:
  lowering(const std::vector<expression_node>& nodes, const std::vector<std::uint32_t>& outputs, epilogue& to)
      : nodes_(nodes), to_(to), is_needed_(nodes.size()), made_(nodes.size()) {
    for (const std::uint32_t o : outputs) is_needed_[o] = true;
    for (std::size_t i = nodes.size(); i-- > 0;)
      for (std::uint32_t k = 0; is_needed_[i] && k < nodes[i].operands; ++k) is_needed_[nodes[i].operand[k]] = true;
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
      if (is_needed_[i]) made_[i] = lower(nodes[i]);
    for (const std::uint32_t o : outputs) to_.outputs.push_back(made_[o]);
  }

 private:
  using source = epilogue_value::source;

  epilogue_value lower(const expression_node& e) {
    if (e.is == expression_node::what::leaf)
      return e.leaf == 0 ? epilogue_value{} : epilogue_value{source::operand, e.leaf - 1};
    if (e.is == expression_node::what::number) {
      to_.numbers.push_back(e.number);
      return {source::number, static_cast<std::uint32_t>(to_.numbers.size() - 1)};
    }
    if (!is_computed(e)) refuse("an epilogue does not compute one of its operators");
    epilogue_step step;
    step.code = e.code;
    step.a = made_[e.operand[0]];
    if (e.operands > 1) step.b = made_[e.operand[1]];
    if (e.operands > 2) step.c = made_[e.operand[2]];
    to_.steps.push_back(step);
    return {source::step, static_cast<std::uint32_t>(to_.steps.size() - 1)};
  }

  const std::vector<expression_node>& nodes_;
  epilogue& to_;
  std::vector<bool> is_needed_;
  std::vector<epilogue_value> made_;
};

}  // namespace

struct epilogue_maker::state {
  host::expression_list list;
  std::vector<operand_shape> operands;
  std::vector<value> outputs;
  state() { list.leaf(0); }
};

epilogue_maker::epilogue_maker() : state_(std::make_unique<state>()) {}
epilogue_maker::~epilogue_maker() = default;

epilogue_maker::value epilogue_maker::product() const { return 0; }

epilogue_maker::value epilogue_maker::operand(operand_shape shape) {
  if (state_->operands.size() == epilogue::most_operands)
    refuse("an epilogue reads more than " + std::to_string(epilogue::most_operands) + " tensors beside the product");
  state_->operands.push_back(shape);
  return state_->list.leaf(static_cast<std::uint32_t>(state_->operands.size()));
}

epilogue_maker::value epilogue_maker::number(double number) { return state_->list.number(number); }

epilogue_maker::value epilogue_maker::apply(const kind_info& kind, list_view<const std::uint64_t> words,
                                            std::span<const value> operands) {
  if (!kind.has_body) refuse(std::string("an epilogue computes elementwise operators only, and not ") + kind.name);
  if (operands.size() != kind.body->inputs)
    throw error(error_kind::invalid_argument,
                std::string(kind.name) + " has " + std::to_string(kind.body->inputs) + " operands, and not " +
                    std::to_string(operands.size()),
                "jit");
  const std::size_t before = state_->list.nodes().size();
  const value made = state_->list.body(*kind.body, words, [&](std::size_t i) { return operands[i]; });
  const std::vector<expression_node>& nodes = state_->list.nodes();
  std::size_t steps = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i >= before && !is_computed(nodes[i]))
      refuse(std::string("an epilogue does not compute the operator ") + kind.name);
    if (nodes[i].is == expression_node::what::code) ++steps;
  }
  if (steps > epilogue::most_steps)
    refuse("an epilogue has more than " + std::to_string(epilogue::most_steps) + " steps");
  return made;
}

void epilogue_maker::output(value computed) {
  if (state_->outputs.size() == epilogue::most_outputs)
    refuse("an epilogue has more than " + std::to_string(epilogue::most_outputs) + " outputs");
  state_->outputs.push_back(computed);
}

epilogue epilogue_maker::finish() const {
  epilogue made;
  made.operands = state_->operands;
  lowering(state_->list.nodes(), state_->outputs, made);
  return made;
}

}  // namespace collage::inline v0::detail::jit
