// Operator kinds with unusual operands and outputs, for the tests of patterns.
#pragma once

#include <collage/collage.hpp>
#include <cstdint>

namespace collage_test {

namespace c = collage;

/// Any number of operands of one shape.
inline constexpr struct sum : c::kind<sum> {
  static constexpr char name[] = "sum";
  static constexpr c::arity inputs{1, c::any_number};
  static constexpr c::verdict infer(const attributes&, c::inference& io) { return io.out[0] = io.in[0], c::verdict(); }
} sum{};
/// An optional second operand.
inline constexpr struct biased : c::kind<biased> {
  static constexpr char name[] = "biased";
  static constexpr c::arity inputs{1, 2};
  static constexpr c::verdict infer(const attributes&, c::inference& io) { return io.out[0] = io.in[0], c::verdict(); }
} biased{};
/// Two outputs.
inline constexpr struct split : c::kind<split> {
  static constexpr char name[] = "split";
  static constexpr std::uint32_t outputs = 2;
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    return io.out[0] = io.out[1] = io.in[0], c::verdict();
  }
} split{};
/// Two operands that may be swapped, and an optional third.
inline constexpr struct mingle : c::kind<mingle> {
  static constexpr char name[] = "mingle";
  static constexpr c::arity inputs{2, 3};
  static constexpr bool commutative = true;
  static constexpr c::verdict infer(const attributes&, c::inference& io) { return io.out[0] = io.in[0], c::verdict(); }
} mingle{};
/// More outputs than a match record lists.
inline constexpr struct fan : c::kind<fan> {
  static constexpr char name[] = "fan";
  static constexpr std::uint32_t outputs = 20;
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    for (std::uint32_t i = 0; i < outputs; ++i) io.out[i] = io.in[0];
    return {};
  }
} fan{};

}  // namespace collage_test
