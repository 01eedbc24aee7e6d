// Linear programs that an author writes as functions, traced once with symbolic values.
#pragma once

#include <collage/bilinear/detail/eliminate.hpp>
#include <collage/bilinear/linear_program.hpp>
#include <collage/bilinear/rational.hpp>
#include <collage/detail/named_member.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0::bilinear::detail {

/// The instructions of a program that is being traced.
struct recorder {
  instruction* code = nullptr;
  std::size_t room = 0;
  std::size_t inputs = 0;
  std::size_t size = 0;

  constexpr std::uint16_t emit(const instruction& step) {
    // Beyond the room, values still get numbers; `trace` returns no program then.
    if (size < room) code[size] = step;
    return static_cast<std::uint16_t>(inputs + size++);
  }
};

/// A value times a factor, as a function of an author sees it. It exists in constant evaluation only.
class traced {
 public:
  constexpr traced() = default;
  constexpr traced(recorder* into, std::uint16_t value, const rational& factor)
      : into_(into), value_(value), factor_(factor) {}

  friend constexpr traced operator+(const traced& a, const traced& b) {
    recorder* const into = a.into_ != nullptr ? a.into_ : b.into_;
    return {into, into->emit({a.value_, b.value_, a.factor_, b.factor_}), 1};
  }
  friend constexpr traced operator-(const traced& a, const traced& b) { return a + -b; }
  constexpr traced operator-() const { return {into_, value_, -factor_}; }
  friend constexpr traced operator*(const rational& factor, const traced& a) {
    return {a.into_, a.value_, factor * a.factor_};
  }
  friend constexpr traced operator*(const traced& a, const rational& factor) { return factor * a; }

  constexpr bool is_set() const { return into_ != nullptr; }
  /// The number of the value, with its factor applied.
  constexpr std::uint16_t finish() const {
    return factor_ == rational(1) ? value_ : into_->emit({value_, value_, factor_, 0});
  }

 private:
  recorder* into_ = nullptr;
  std::uint16_t value_ = 0;
  rational factor_;
};

/// The program of a function `void write(const auto& in, auto& out)`.
template <std::size_t Inputs, std::size_t Outputs>
struct trace_result {
  program_draft<Inputs, Outputs> draft;
  std::size_t unset = Outputs;  ///< the first output that is not set
  bool is_too_long = false;
};
template <std::size_t Inputs, std::size_t Outputs, class Write>
constexpr trace_result<Inputs, Outputs> trace(Write write) {
  trace_result<Inputs, Outputs> result;
  recorder into{result.draft.code, result.draft.room, Inputs};
  traced in[Inputs], out[Outputs];
  for (std::size_t i = 0; i < Inputs; ++i) in[i] = traced(&into, static_cast<std::uint16_t>(i), 1);
  for (traced& o : out) o = traced();
  write(static_cast<const traced*>(in), static_cast<traced*>(out));
  for (std::size_t o = 0; o < Outputs; ++o) {
    if (out[o].is_set()) result.draft.output[o] = out[o].finish();
    else if (result.unset == Outputs) result.unset = o;
  }
  result.is_too_long = into.size > result.draft.room;
  result.draft.size = result.is_too_long ? 0 : into.size;
  return result;
}

template <class Declaration>
concept writes_left = requires(const traced* in, traced* out) { Declaration::left(in, out); };
template <class Declaration>
concept writes_right = requires(const traced* in, traced* out) { Declaration::right(in, out); };
template <class Declaration>
concept writes_output = requires(const traced* in, traced* out) { Declaration::output(in, out); };

// Whether a declaration has a member of that name, in whatever form.
struct with_left {
  int left;
};
struct with_right {
  int right;
};
struct with_output {
  int output;
};
template <class Declaration>
consteval bool names_left() {
  if constexpr (std::is_final_v<Declaration>) return requires { &Declaration::left; };
  else return !requires { &collage::detail::beside<Declaration, with_left>::left; };
}
template <class Declaration>
consteval bool names_right() {
  if constexpr (std::is_final_v<Declaration>) return requires { &Declaration::right; };
  else return !requires { &collage::detail::beside<Declaration, with_right>::right; };
}
template <class Declaration>
consteval bool names_output() {
  if constexpr (std::is_final_v<Declaration>) return requires { &Declaration::output; };
  else return !requires { &collage::detail::beside<Declaration, with_output>::output; };
}

}  // namespace collage::inline v0::bilinear::detail
