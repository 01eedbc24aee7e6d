// Chains of elementwise operators as one program: the bodies of all their nodes, one after the other.
//
// A program is made once, when a kernel is built, and is evaluated block by block. Its result may overwrite one of its operands,
// such as the output of the convolution that it follows: element i depends only on elements i.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/backends/any_match.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/op/body.hpp>
#include <collage/op/cast.hpp>
#include <collage/run/kernel.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Strides for reading the dense tensor `from` while walking over `to`, to which it broadcasts. They are 0 where `from` repeats.
inline shape broadcast_steps(const shape& from, const shape& to) {
  shape steps = shape::filled(to.size(), 0);
  std::int64_t step = 1;
  for (std::size_t i = from.size(); i-- > 0; step *= from[i])
    if (from[i] != 1) steps[to.size() - from.size() + i] = step;
  return steps;
}

/// An operand of an instruction: an earlier step's result, a tensor, or a number.
struct program_operand {
  enum class source : std::uint8_t { slot, leaf, number };
  source from = source::number;
  std::uint32_t index = 0;
  double number = 0;
};

/// A tensor that a program reads.
struct program_leaf {
  static constexpr std::uint32_t target = 0xFFFFFFFF;
  std::uint32_t argument = target;  ///< of the kernel; `target` is the tensor that the program overwrites
  dtype type = dtype::f32;
  shape steps{};        ///< strides, one for each of the program's dimensions
  bool linear = false;  ///< its element i belongs to element i of the result
  bool single = false;  ///< it has one element, for all elements of the result
};

struct program_step {
  opcode code = opcode::constant;
  program_operand a, b, c;
  std::uint32_t slot = 0;
};

struct elementwise_program {
  static constexpr std::uint32_t result = 0xFFFFFFFF;  ///< the slot that stands for the result's memory
  static constexpr std::size_t max_slots = 8;
  static constexpr std::size_t max_leaves = 8;

  shape dims;  ///< of the result, with adjacent dimensions merged where every leaf has one stride for both
  std::vector<program_leaf> leaves;
  std::vector<program_step> steps;  ///< empty if there is nothing to do
  dtype type = dtype::f32;          ///< the type in which it is computed
  dtype result_type = dtype::f32;
  ops::cast_attributes cast;           ///< how results become numbers of a small floating-point type
  std::vector<std::size_t> constants;  ///< arguments that are not read, because the steps hold their number

  bool empty() const { return steps.empty(); }
  /// How results of the type of the computation become elements.
  ops::cast_attributes conversion() const {
    return {.to = result_type, .saturate = cast.saturate, .rounding = cast.rounding};
  }
};

/// Builds a program.
class program_maker {
 public:
  /// `dims` are the result's. `target` is a value of the same shape in the result's memory, or match_record::nothing.
  program_maker(const any_match& m, const shape& dims, std::uint32_t target) : match_(m), target_(target) {
    program_.dims = dims;
  }

  /// The operand for a value: the result of a node added before, or a tensor that the kernel reads.
  program_operand read(std::uint32_t value) {
    const auto found = computed_.find(value);
    if (found != computed_.end()) return found->second;
    const value_record& record = match_.at(value);
    program_operand operand;
    // A large int64 is not exact as a double.
    if (value != target_ && record.has_scalar && std::abs(record.scalar) < 0x1p52) {
      operand = {source::number, 0, record.scalar};
      program_.constants.push_back(match_.index_of(value));
    } else {
      operand = {source::leaf, static_cast<std::uint32_t>(program_.leaves.size()), 0};
      program_leaf leaf;
      if (value != target_) leaf.argument = static_cast<std::uint32_t>(match_.index_of(value));
      leaf.type = record.type.type;
      leaf.steps = broadcast_steps(record.type.dims, program_.dims);
      leaf.single = record.type.dims.elements() == 1;
      leaf.linear = record.type.dims.elements() == program_.dims.elements();
      program_.leaves.push_back(leaf);
      if (program_.leaves.size() > elementwise_program::max_leaves)
        throw error(error_kind::unsupported, "a chain of elementwise operators reads more than 8 tensors",
                    "elementwise program");
    }
    computed_[value] = operand;
    return operand;
  }

  program_operand step(opcode code, const program_operand& a, const program_operand& b = {},
                       const program_operand& c = {}) {
    program_.steps.push_back({code, a, b, c, 0});
    return {source::slot, static_cast<std::uint32_t>(program_.steps.size() - 1), 0};
  }

  /// Appends the body of an elementwise node. Its operands are tensors or results of nodes added before.
  program_operand add_node(std::uint32_t node) {
    const traced_body& body = *match_.kind_of(node).body;
    const std::span<const std::uint64_t> words = match_.graph().words_of(node);
    std::vector<program_operand> values;
    for (std::uint32_t i = 0; i < body.size; ++i) {
      const instruction& code = body.code[i];
      if (code.code == opcode::input) values.push_back(read(match_.inputs_of(node)[code.a]));
      else if (code.code == opcode::attribute)
        values.push_back({source::number, 0, __builtin_bit_cast(double, words[code.a])});
      else if (code.code == opcode::constant) values.push_back({source::number, 0, code.value});
      else
        values.push_back(step(code.code, values[code.a],
                              operands_of(code.code) > 1 ? values[code.b] : program_operand{},
                              operands_of(code.code) > 2 ? values[code.c] : program_operand{}));
    }
    return computed_[match_.output_of(node)] = values.back();
  }

  elementwise_program take(program_operand whole) {
    // A body may return its operand unchanged, or be a number: maximum(x, x) copies either.
    if (whole.from != source::slot || whole.index + 1 != program_.steps.size())
      whole = step(opcode::maximum, whole, whole);
    join_dimensions();
    choose_slots();
    return std::move(program_);
  }

 private:
  using source = program_operand::source;

  /// Assigns a slot to each step's result.
  void choose_slots() {
    std::vector<std::size_t> last_use(program_.steps.size(), 0);
    for (std::size_t i = 0; i < program_.steps.size(); ++i)
      for (const program_operand& o : {program_.steps[i].a, program_.steps[i].b, program_.steps[i].c})
        if (o.from == source::slot) last_use[o.index] = i;
    std::array<std::size_t, elementwise_program::max_slots> free_from{};  // the first step that may write to the slot
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      program_step& step = program_.steps[i];
      for (program_operand* o : {&step.a, &step.b, &step.c})
        if (o->from == source::slot) o->index = program_.steps[o->index].slot;
      step.slot = elementwise_program::result;
      if (i + 1 == program_.steps.size()) break;
      // The step that reads a slot last may write to it: each instruction reads element i before it writes it.
      for (std::uint32_t s = 0; s < free_from.size() && step.slot == elementwise_program::result; ++s)
        if (free_from[s] <= i) {
          step.slot = s;
          free_from[s] = last_use[i];
        }
      if (step.slot == elementwise_program::result)
        throw error(error_kind::unsupported, "a chain of elementwise operators needs more than 8 intermediate results",
                    "elementwise program");
    }
  }

  void join_dimensions() {
    shape dims;
    std::vector<shape> steps(program_.leaves.size());
    for (std::size_t i = 0; i < program_.dims.size(); ++i) {
      if (program_.dims[i] == 1) continue;
      bool joins = !dims.empty();
      for (std::size_t k = 0; joins && k < steps.size(); ++k)
        joins = steps[k][dims.size() - 1] == program_.leaves[k].steps[i] * program_.dims[i];
      if (joins) dims[dims.size() - 1] *= program_.dims[i];
      else dims.push_back(program_.dims[i]);
      for (std::size_t k = 0; k < steps.size(); ++k) {
        if (!joins) steps[k].push_back(0);
        steps[k][dims.size() - 1] = program_.leaves[k].steps[i];
      }
    }
    if (dims.empty()) {
      dims.push_back(program_.dims.elements());
      for (shape& s : steps) s.push_back(0);
    }
    program_.dims = dims;
    for (std::size_t k = 0; k < steps.size(); ++k) program_.leaves[k].steps = steps[k];
  }

  const any_match& match_;
  std::uint32_t target_;
  elementwise_program program_;
  std::map<std::uint32_t, program_operand> computed_;
};

/// The program of some nodes of a match, which are given in topological order. The last node's output is the result. The program
/// is empty if there are no nodes. All bodies are computed in the type of the first node's last operand.
inline elementwise_program make_program(const any_match& m, std::span<const std::uint32_t> nodes,
                                        std::uint32_t target = match_record::nothing) {
  if (nodes.empty()) return {};
  const tensor_type& result = m.type_of(m.output_of(nodes.back()));
  program_maker maker(m, result.dims, target);
  program_operand last;
  for (const std::uint32_t node : nodes) last = maker.add_node(node);
  elementwise_program program = maker.take(last);
  program.type = m.type_of(m.inputs_of(nodes.front()).back()).type;
  program.result_type = result.type;
  if (m.is(nodes.back(), ops::cast)) program.cast = m.attributes(nodes.back(), ops::cast);
  return program;
}

/// Lets a kernel that runs only a program write its result over operands that are walked like the result. Each block of such an
/// operand is read before the same block of the result is written, and is read with no other block.
inline void allow_in_place(kernel& k, const elementwise_program& program) {
  for (const program_leaf& leaf : program.leaves)
    if (leaf.argument != program_leaf::target && leaf.linear && size_of(leaf.type) == size_of(program.result_type))
      k.may_write_over(leaf.argument);
}

/// Declares the constants that a kernel does not read because its program holds their numbers. `read_elsewhere` lists arguments
/// that other parts of the kernel read.
inline void drop_constants(kernel& k, const elementwise_program& program,
                           std::span<const std::size_t> read_elsewhere = {}) {
  for (const std::size_t argument : program.constants)
    if (std::find(read_elsewhere.begin(), read_elsewhere.end(), argument) == read_elsewhere.end())
      k.does_not_read(argument);
}

}  // namespace
}  // namespace collage::inline v0::detail::host
