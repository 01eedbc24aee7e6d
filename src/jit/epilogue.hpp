// Epilogues: chains, or other graphs, of elementwise operators that a kernel computes on its product before it writes.
//
// An epilogue is made of the traced bodies of operators (collage/op/body.hpp), as kernels of `stacked` are. Its steps
// are computed in float32, vector by vector, while the product is in registers.
#pragma once

#include <collage/list_view.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/body.hpp>
#include <collage/op/kind.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

namespace collage::inline v0::detail::jit {

/// How an operand broadcasts to the product.
enum class operand_shape : std::uint8_t {
  whole,       ///< one number for each element, as a residual tensor
  per_row,     ///< one for each row, side by side
  per_column,  ///< one for each column, side by side
  single       ///< one for all
};

struct epilogue_value {
  enum class source : std::uint8_t { product, operand, number, step };
  source from = source::product;
  std::uint32_t index = 0;
  friend bool operator==(const epilogue_value&, const epilogue_value&) = default;
};

struct epilogue_step {
  opcode code = opcode::constant;
  epilogue_value a, b, c;
  friend bool operator==(const epilogue_step&, const epilogue_step&) = default;
};

/// Steps in order. An epilogue without outputs writes the product itself.
struct epilogue {
  static constexpr std::size_t most_steps = 64, most_operands = 6, most_outputs = 4;

  std::vector<operand_shape> operands;
  std::vector<float> numbers;
  std::vector<epilogue_step> steps;
  std::vector<epilogue_value> outputs;

  bool empty() const { return outputs.empty(); }
  friend bool operator==(const epilogue&, const epilogue&) = default;
};

/// Whether epilogues compute an instruction. exp errs by at most 1e-7, tanh by 3e-7 and erf by 4e-7, relatively. All
/// others round once. Sigmoid and GELU are made of these. Logarithms, powers, angles and remainders are refused.
constexpr bool is_in_epilogues(opcode code) {
  switch (code) {
    case opcode::add:
    case opcode::subtract:
    case opcode::multiply:
    case opcode::divide:
    case opcode::minimum:
    case opcode::maximum:
    case opcode::negate:
    case opcode::absolute:
    case opcode::square_root:
    case opcode::exponential:
    case opcode::tangent_hyperbolic:
    case opcode::error_function:
    case opcode::floor:
    case opcode::ceiling:
    case opcode::round_to_even:
    case opcode::less:
    case opcode::equal:
    case opcode::select: return true;
    default: return false;
  }
}

/// Makes an epilogue. Equal expressions are computed once, and numbers are computed beforehand.
class epilogue_maker {
 public:
  using value = std::uint32_t;

  epilogue_maker();
  ~epilogue_maker();

  value product() const;
  /// The next operand. Error (unsupported): there are too many.
  value operand(operand_shape shape);
  value number(double number);
  /// Error (unsupported): an operator without a body, an instruction that epilogues do not compute, or too many steps.
  value apply(const kind_info& kind, list_view<const std::uint64_t> words, std::span<const value> operands);
  template <class Kind>
  value operator()(const Kind&, std::initializer_list<value> operands,
                   const typename Kind::attributes& attributes = {}) {
    const attribute_words words = to_words(attributes);
    return apply(kind_of<Kind>, {words.word, words.size}, {operands.begin(), operands.size()});
  }
  /// The next output. Error (unsupported): there are too many.
  void output(value computed);

  /// Only what some output needs is in it; operands keep their indices.
  epilogue finish() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace collage::inline v0::detail::jit
