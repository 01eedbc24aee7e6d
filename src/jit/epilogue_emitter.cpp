#include "epilogue_emitter.hpp"

#include <collage/backends/impl/elementwise_polynomials.hpp>
#include <collage/error.hpp>

#include <bit>
#include <cmath>
#include <string>

namespace collage::inline v0::detail::jit {
namespace {

namespace at = constant_at;
using mask = Xbyak::Opmask;

// Predicates of comparisons: quiet, and with NaN false, false, true, true.
constexpr std::uint8_t equal_ordered = 0, less_ordered = 17, not_equal = 4, not_at_least = 25;

}  // namespace

const std::array<Xbyak::Reg64, 14>& epilogue_emitter::pointer_registers() {
  using namespace Xbyak::util;
  static const std::array<Xbyak::Reg64, 14> list = {rax, rcx, rdx, rsi, r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15};
  return list;
}

epilogue_emitter::epilogue_emitter(vector_code& code, const std::vector<int>& accumulators, std::uint32_t spare)
    : code_(code),
      e_(code.plan.finish),
      accumulators_(accumulators),
      spare_(spare),
      last_use_(e_.steps.size(), -1),
      step_register_(e_.steps.size(), -1) {
  const auto use = [&](const epilogue_value& v, int when) {
    if (v.from == source::product) product_last_use_ = when;
    else if (v.from == source::step) last_use_[v.index] = when;
  };
  for (std::size_t i = 0; i < e_.steps.size(); ++i) {
    const epilogue_step& s = e_.steps[i];
    const int operands = operands_of(s.code);
    use(s.a, static_cast<int>(i));
    if (operands > 1) use(s.b, static_cast<int>(i));
    if (operands > 2) use(s.c, static_cast<int>(i));
  }
  for (const epilogue_value& v : e_.outputs) use(v, static_cast<int>(e_.steps.size()));

  std::size_t next = 0;
  const auto& registers = pointer_registers();
  constants_ = registers[next++];
  destination_ = registers[next++];
  for (std::size_t i = 0; i < e_.operands.size(); ++i) operands_.push_back(registers[next++]);
  for (std::size_t i = 0; i < e_.outputs.size(); ++i) outputs_.push_back(registers[next++]);
}

void epilogue_emitter::emit() {
  const bool combines = reads_destination(code_.plan.destinations[0]);
  code_.mov(constants_, code_.field(offsetof(tile_call, constants)));
  if (combines) code_.mov(destination_, code_.field(offsetof(tile_call, to)));
  for (std::size_t i = 0; i < operands_.size(); ++i)
    code_.mov(operands_[i], code_.field(offsetof(tile_call, operand) + 8 * i));
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    code_.mov(outputs_[i], code_.field(offsetof(tile_call, output) + 8 * i));
  const int vectors = code_.plan.vectors();
  for (int row = 0; row < code_.plan.rows; ++row) {
    for (int vector = 0; vector < vectors; ++vector) element(row, vector);
    if (row + 1 == code_.plan.rows) break;
    if (combines) code_.add(destination_, code_.field(offsetof(tile_call, to_step)));
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (e_.operands[i] == operand_shape::whole)
        code_.add(operands_[i], code_.field(offsetof(tile_call, operand_step) + 8 * i));
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      code_.add(outputs_[i], code_.field(offsetof(tile_call, output_step) + 8 * i));
  }
}

void epilogue_emitter::element(int row, int vector) {
  row_ = row;
  vector_ = vector;
  accumulator_ = accumulators_[static_cast<std::size_t>(row * code_.plan.vectors() + vector)];
  // Accumulators of elements that are done are free, too.
  free_ = spare_;
  for (int i = 0; i < row * code_.plan.vectors() + vector; ++i) give(accumulators_[static_cast<std::size_t>(i)]);
  combine(accumulator_);
  if (product_last_use_ < 0) give(accumulator_);
  for (std::size_t i = 0; i < e_.steps.size(); ++i) step(static_cast<int>(i));
  store_outputs();
}

/// Adds the first destination to the product, or as its mode says.
void epilogue_emitter::combine(int accumulator) {
  const store_mode mode = code_.plan.destinations[0];
  if (mode == store_mode::set) return;
  const int other = take();
  if (mode == store_mode::set_negative) code_.zero(other);
  else code_.load(other, destination_ + code_.bytes() * vector_, vector_);
  if (mode == store_mode::add) code_.vaddps(code_.vec(accumulator), code_.vec(other), code_.vec(accumulator));
  else code_.vsubps(code_.vec(accumulator), code_.vec(other), code_.vec(accumulator));
  give(other);
}

void epilogue_emitter::store_outputs() {
  for (std::size_t i = 0; i < e_.outputs.size(); ++i) {
    const int from = fetch(e_.outputs[i]);
    code_.store(outputs_[i] + code_.bytes() * vector_, from, vector_);
    for (const int r : loaded_) give(r);
    loaded_.clear();
  }
}

// Operands --------------------------------------------------------------------------------------------------------------

Xbyak::RegExp epilogue_emitter::place_of(const epilogue_value& v) const {
  if (v.from == source::number) return constant(at::numbers + static_cast<int>(v.index));
  const Xbyak::RegExp base = operands_[v.index];
  switch (e_.operands[v.index]) {
    case operand_shape::per_row: return base + 4 * row_;
    case operand_shape::single: return base;
    default: return base + code_.bytes() * vector_;
  }
}
bool epilogue_emitter::is_repeated(const epilogue_value& v) const {
  return v.from == source::number || e_.operands[v.index] == operand_shape::per_row ||
         e_.operands[v.index] == operand_shape::single;
}

int epilogue_emitter::take() {
  if (free_ == 0)
    throw error(error_kind::unsupported,
                "the epilogue needs more vector registers than the " + std::to_string(std::popcount(spare_)) +
                    " that a tile of " + std::to_string(code_.plan.rows) + "x" + std::to_string(code_.plan.vectors()) +
                    " vectors leaves free",
                "jit", "choose a smaller tile");
  const int found = std::countr_zero(free_);
  free_ &= free_ - 1;
  return found;
}
int& epilogue_emitter::register_of(const epilogue_value& v) {
  return v.from == source::product ? accumulator_ : step_register_[v.index];
}
bool epilogue_emitter::is_last_use(const epilogue_value& v, int step) const {
  return v.from == source::product ? product_last_use_ == step : v.from == source::step && last_use_[v.index] == step;
}
int epilogue_emitter::fetch(const epilogue_value& v) {
  if (v.from == source::product || v.from == source::step) return register_of(v);
  const int to = take();
  loaded_.push_back(to);
  load(to, v);
  return to;
}
void epilogue_emitter::load(int to, const epilogue_value& v) {
  if (is_repeated(v)) code_.repeat(to, place_of(v));
  else code_.load(to, place_of(v), vector_);
}
/// Frees what no later step reads.
void epilogue_emitter::release(const epilogue_step& s, int step) {
  const int operands = operands_of(s.code);
  const auto end = [&](const epilogue_value& v) {
    if (is_last_use(v, step)) give(register_of(v));
  };
  end(s.a);
  if (operands > 1) end(s.b);
  if (operands > 2) end(s.c);
  for (const int r : loaded_) give(r);
  loaded_.clear();
}

template <class F>
void epilogue_emitter::with_constant(int index, const F& f) {
  if (code_.is_wide) return f(code_.ptr_b[constant(index)]);
  const int to = take();
  code_.repeat(to, constant(index));
  f(code_.vec(to));
  give(to);
}
/// Calls f with a value as the last operand of an instruction. AVX-512 reads it from memory where it can.
template <class F>
void epilogue_emitter::with_operand(const epilogue_value& v, const F& f) {
  const bool is_in_memory = v.from == source::number || v.from == source::operand;
  if (is_in_memory && code_.is_wide && is_repeated(v)) return f(code_.ptr_b[place_of(v)]);
  if (is_in_memory && code_.is_wide && !code_.is_partial(vector_)) return f(code_.ptr[place_of(v)]);
  f(code_.vec(fetch(v)));
}

// Steps -----------------------------------------------------------------------------------------------------------------

void epilogue_emitter::step(int index) {
  const epilogue_step& s = e_.steps[static_cast<std::size_t>(index)];
  switch (s.code) {
    case opcode::add:
    case opcode::subtract:
    case opcode::multiply:
    case opcode::divide: return binary(s, index);
    case opcode::minimum:
    case opcode::maximum: return extreme(s, index);
    case opcode::less:
    case opcode::equal: return compare(s, index);
    case opcode::select: return select(s, index);
    default: return unary(s, index);
  }
}

void epilogue_emitter::binary(const epilogue_step& s, int index) {
  epilogue_value a = s.a, b = s.b;
  // The last operand may be in memory.
  const bool swaps = s.code == opcode::add || s.code == opcode::multiply;
  if (swaps && (a.from == source::number || a.from == source::operand)) std::swap(a, b);
  const int x = fetch(a);
  int to = -1;
  const auto finish = [&](const auto& y) {
    release(s, index);
    to = take();
    const Xbyak::Xmm result = code_.vec(to), first = code_.vec(x);
    if (s.code == opcode::add) code_.vaddps(result, first, y);
    else if (s.code == opcode::subtract) code_.vsubps(result, first, y);
    else if (s.code == opcode::multiply) code_.vmulps(result, first, y);
    else code_.vdivps(result, first, y);
  };
  with_operand(b, finish);
  step_register_[static_cast<std::size_t>(index)] = to;
}

/// The instructions return their last operand where either is NaN. With operands exchanged, they return the other one.
/// Both results together have the bits of a NaN; without one they are equal, but for the sign of 0.
void epilogue_emitter::extreme(const epilogue_step& s, int index) {
  const auto emit = [&](int to, int first, const auto& last) {
    if (s.code == opcode::minimum) code_.vminps(code_.vec(to), code_.vec(first), last);
    else code_.vmaxps(code_.vec(to), code_.vec(first), last);
  };
  const auto is_plain = [&](const epilogue_value& v) {
    return v.from == source::number && !std::isnan(e_.numbers[v.index]);
  };
  const int a = fetch(s.a), b = fetch(s.b);
  int to = -1;
  if (is_plain(s.a) || is_plain(s.b)) {
    release(s, index);
    to = take();
    if (is_plain(s.b)) emit(to, b, code_.vec(a));
    else emit(to, a, code_.vec(b));
  } else {
    to = take();
    const int other = take();
    emit(to, a, code_.vec(b));
    emit(other, b, code_.vec(a));
    if (code_.is_wide) code_.vpord(code_.vec(to), code_.vec(to), code_.vec(other));
    else code_.vorps(code_.vec(to), code_.vec(to), code_.vec(other));
    give(other);
    release(s, index);
  }
  step_register_[static_cast<std::size_t>(index)] = to;
}

void epilogue_emitter::compare(const epilogue_step& s, int index) {
  const std::uint8_t predicate = s.code == opcode::less ? less_ordered : equal_ordered;
  const int a = fetch(s.a), b = fetch(s.b);
  const int to = take();
  if (code_.is_wide) {
    code_.vcmpps(mask(vector_code::compare_mask), code_.vec(a), code_.vec(b), predicate);
    code_.repeat(to, constant(at::one));
    code_.vmovaps(code_.vec(to) | mask(vector_code::compare_mask) | code_.T_z, code_.vec(to));
  } else {
    code_.vcmpps(code_.vec(to), code_.vec(a), code_.vec(b), predicate);
    with_constant(at::one, [&](const auto& one) { code_.vandps(code_.vec(to), code_.vec(to), one); });
  }
  release(s, index);
  step_register_[static_cast<std::size_t>(index)] = to;
}

/// NaN is true: it is not 0.
void epilogue_emitter::select(const epilogue_step& s, int index) {
  const int a = fetch(s.a), b = fetch(s.b), c = fetch(s.c);
  const int to = take();
  code_.zero(to);
  if (code_.is_wide) {
    code_.vcmpps(mask(vector_code::compare_mask), code_.vec(a), code_.vec(to), not_equal);
    code_.vblendmps(code_.vec(to) | mask(vector_code::compare_mask), code_.vec(c), code_.vec(b));
  } else {
    code_.vcmpps(code_.vec(to), code_.vec(a), code_.vec(to), not_equal);
    code_.vblendvps(code_.vec(to), code_.vec(c), code_.vec(b), code_.vec(to));
  }
  release(s, index);
  step_register_[static_cast<std::size_t>(index)] = to;
}

void epilogue_emitter::unary(const epilogue_step& s, int index) {
  const int x = fetch(s.a), to = take();
  const Xbyak::Xmm result = code_.vec(to), from = code_.vec(x);
  const auto round = [&](std::uint8_t how) {
    constexpr std::uint8_t quiet = 8;  // raises no flag for what is inexact
    if (code_.is_wide) code_.vrndscaleps(result, from, how | quiet);
    else code_.vroundps(result, from, how | quiet);
  };
  switch (s.code) {
    case opcode::negate:
      with_constant(at::sign, [&](const auto& sign) {
        if (code_.is_wide) code_.vpxord(result, from, sign);
        else code_.vxorps(result, from, sign);
      });
      break;
    case opcode::absolute:
      with_constant(at::magnitude, [&](const auto& magnitude) {
        if (code_.is_wide) code_.vpandd(result, from, magnitude);
        else code_.vandps(result, from, magnitude);
      });
      break;
    case opcode::square_root: code_.vsqrtps(result, from); break;
    case opcode::round_to_even: round(0); break;
    case opcode::floor: round(1); break;
    case opcode::ceiling: round(2); break;
    case opcode::exponential: exponential(to, x); break;
    case opcode::tangent_hyperbolic:
      odd_ratio(to, x, at::hyperbolic, static_cast<int>(host::tangent_hyperbolic_numbers.terms));
      break;
    case opcode::error_function:
      odd_ratio(to, x, at::error, static_cast<int>(host::error_function_numbers.terms));
      break;
    default: throw error(error_kind::failure, "an epilogue has a step without code", "jit");
  }
  release(s, index);
  step_register_[static_cast<std::size_t>(index)] = to;
}

/// As `exponential` of stacked_math.hpp. The minimum and maximum return their last operand where it is NaN.
void epilogue_emitter::exponential(int to, int x) {
  const int whole = take(), y = take();
  const Xbyak::Xmm r = code_.vec(to), q = code_.vec(whole), p = code_.vec(y);
  code_.repeat(to, constant(at::least));
  code_.vmaxps(r, r, code_.vec(x));
  code_.repeat(whole, constant(at::most));
  code_.vminps(r, q, r);
  code_.repeat(whole, constant(at::inverse_logarithm));
  with_constant(at::shift, [&](const auto& shift) {
    code_.vfmadd213ps(q, r, shift);
    code_.vsubps(q, q, shift);
  });
  code_.repeat(y, constant(at::minus_logarithm));
  code_.vfmadd213ps(p, q, r);
  code_.repeat(to, constant(at::logarithm_rest));
  code_.vfmadd213ps(r, q, p);
  code_.repeat(y, constant(at::polynomial));
  for (int i = 1; i < static_cast<int>(host::exponential_numbers::terms); ++i)
    with_constant(at::polynomial + i, [&](const auto& term) { code_.vfmadd213ps(p, r, term); });
  if (code_.is_wide) {
    code_.vscalefps(r, p, q);
  } else {
    // In two halves: 2^q itself may be too small or too large for a number.
    code_.vcvtps2dq(q, q);
    code_.vpsrad(r, q, 1);
    code_.vpsubd(q, q, r);
    with_constant(at::bias, [&](const auto& bias) {
      code_.vpaddd(r, r, bias);
      code_.vpaddd(q, q, bias);
    });
    code_.vpslld(r, r, 23);
    code_.vpslld(q, q, 23);
    code_.vmulps(p, p, r);
    code_.vmulps(r, p, q);
  }
  give(whole);
  give(y);
}

/// As `odd_ratio` of stacked_math.hpp. The result is x P(x^2) / Q(x^2) where that and x are small enough, else 1 with
/// the sign of x. Comparisons are true for NaN, which stays.
void epilogue_emitter::odd_ratio(int to, int x, int table, int terms) {
  const int square = take(), below = take();
  const Xbyak::Xmm r = code_.vec(to), t = code_.vec(square), d = code_.vec(below), from = code_.vec(x);
  code_.vmulps(t, from, from);
  const auto polynomial = [&](const Xbyak::Xmm& sum, int first) {
    code_.repeat(sum.getIdx(), constant(first + terms - 1));
    for (int i = terms - 1; i-- > 0;)
      with_constant(first + i, [&](const auto& term) { code_.vfmadd213ps(sum, t, term); });
  };
  polynomial(r, table + 1);
  polynomial(d, table + 1 + terms);
  code_.vmulps(r, r, from);
  code_.vdivps(r, r, d);
  const auto bits_and = [&](const Xbyak::Xmm& result, const Xbyak::Xmm& of, int constant_index) {
    with_constant(constant_index, [&](const auto& with) {
      if (code_.is_wide) code_.vpandd(result, of, with);
      else code_.vandps(result, of, with);
    });
  };
  const mask small(vector_code::compare_mask);
  bits_and(t, from, at::magnitude);
  with_constant(table, [&](const auto& end) {
    if (code_.is_wide) code_.vcmpps(small, t, end, not_at_least);
    else code_.vcmpps(t, t, end, not_at_least);
  });
  bits_and(d, r, at::magnitude);
  with_constant(at::one, [&](const auto& one) {
    if (code_.is_wide) code_.vcmpps(small | small, d, one, not_at_least);
    else code_.vcmpps(d, d, one, not_at_least);
  });
  if (!code_.is_wide) code_.vandps(t, t, d);
  bits_and(d, from, at::sign);
  with_constant(at::one, [&](const auto& one) {
    if (code_.is_wide) code_.vpord(d, d, one);
    else code_.vorps(d, d, one);
  });
  if (code_.is_wide) code_.vblendmps(r | small, d, r);
  else code_.vblendvps(r, d, r, t);
  give(square);
  give(below);
}

}  // namespace collage::inline v0::detail::jit
