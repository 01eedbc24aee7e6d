// Makes linear programs from matrices: pairs that occur in several rows are computed once.
#pragma once

#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/linear_program.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::bilinear::detail {

/// A program before its size is known.
template <std::size_t Inputs, std::size_t Outputs>
struct program_draft {
  static constexpr std::size_t room = Inputs * Outputs + Outputs;  // a term of the matrix makes an instruction at most

  constexpr program_draft() : code(), output() {}

  instruction code[room];
  std::size_t size = 0;
  std::uint16_t output[Outputs];
};

/// Greedy elimination of common subexpressions. In each round, the pair of terms that saves most operations becomes a value of
/// its own; with it the rows get shorter. Finding the least program is NP-hard, and this finds Winograd's 15 additions. The
/// effort is bounded, so that large schemes stay within the compilers' limits; what is not shared then is computed twice.
template <std::size_t Inputs, std::size_t Outputs>
class eliminator {
 public:
  constexpr explicit eliminator(const table<Outputs, Inputs>& matrix) {
    for (std::size_t r = 0; r < Outputs; ++r) {  // each by itself, as in `table`
      terms_[r] = 0;
      for (term& t : term_[r]) t = term();
      for (std::uint16_t& at : position_[r]) at = 0;
    }
    for (std::size_t r = 0; r < Outputs; ++r)
      for (std::size_t c = 0; c < Inputs; ++c)
        if (!matrix[r][c].is_zero()) append(r, c, matrix[r][c]);
  }

  constexpr program_draft<Inputs, Outputs> run() {
    for (std::size_t round = 0; round < most_rounds && comparisons_ < most_comparisons; ++round) {
      const pair best = find_best();
      if (best.saved <= 0) break;
      extract(best);
    }
    for (std::size_t r = 0; r < Outputs; ++r) finish(r);
    return draft_;
  }

 private:
  struct term {
    std::uint16_t value = 0;
    rational factor;
  };
  /// The terms x and y of a row, how often they occur, and how many operations it saves to compute their sum once.
  struct pair {
    std::size_t row = 0, x = 0, y = 0;
    int rows = 0;
    int saved = 0;
    bool is_divided = false;  ///< the sum is made with factor 1 of its first term
  };

  constexpr void append(std::size_t row, std::size_t value, const rational& factor) {
    position_[row][value] = static_cast<std::uint16_t>(terms_[row] + 1);
    term_[row][terms_[row]++] = {static_cast<std::uint16_t>(value), factor};
  }
  constexpr void remove(std::size_t row, std::size_t value) {
    std::size_t at = position_[row][value] - std::size_t{1};
    position_[row][value] = 0;
    for (--terms_[row]; at < terms_[row]; ++at) {
      term_[row][at] = term_[row][at + 1];
      position_[row][term_[row][at].value] = static_cast<std::uint16_t>(at + 1);
    }
  }
  constexpr const rational* factor_of(std::size_t row, std::size_t value) const {
    const std::size_t at = position_[row][value];
    return at == 0 ? nullptr : &term_[row][at - 1].factor;
  }
  static constexpr int cost(const rational& factor) { return factor.is_trivial() ? 0 : 1; }

  constexpr pair find_best() {
    pair best;
    for (std::size_t r = 0; r < Outputs && comparisons_ < most_comparisons; ++r)
      for (std::size_t x = 0; x + 1 < terms_[r]; ++x)
        for (std::size_t y = x + 1; y < terms_[r]; ++y) {
          const pair found = rate(r, x, y);
          if (found.saved > best.saved || (found.saved == best.saved && found.rows > best.rows)) best = found;
        }
    return best;
  }
  /// Rows before `row` are not counted: if they have the pair, it was rated there.
  constexpr pair rate(std::size_t row, std::size_t x, std::size_t y) {
    comparisons_ += Outputs - row;
    const term& a = term_[row][x];
    const term& b = term_[row][y];
    int rows = 1;
    int before = cost(a.factor) + cost(b.factor), after = before;
    int divided = cost(a.factor) + cost(b.factor / a.factor);
    for (std::size_t r = row + 1; r < Outputs; ++r) {
      const rational* const other_a = factor_of(r, a.value);
      if (other_a == nullptr) continue;
      const rational* const other_b = factor_of(r, b.value);
      if (other_b == nullptr || !(*other_a * b.factor == *other_b * a.factor)) continue;
      ++rows;
      before += cost(*other_a) + cost(*other_b);
      after += cost(*other_a / a.factor);
      divided += cost(*other_a);
    }
    const bool is_divided = divided < after;
    return {row, x, y, rows, rows - 1 + before - (is_divided ? divided : after), is_divided};
  }

  constexpr std::uint16_t emit(const instruction& step) {
    draft_.code[draft_.size] = step;
    return static_cast<std::uint16_t>(Inputs + draft_.size++);
  }
  constexpr void extract(const pair& found) {
    const term a = term_[found.row][found.x], b = term_[found.row][found.y];
    const rational unit = found.is_divided ? rational(1) : a.factor;
    const std::uint16_t sum = emit({a.value, b.value, unit, found.is_divided ? b.factor / a.factor : b.factor});
    for (std::size_t r = found.row; r < Outputs; ++r) {
      const rational* const other_a = factor_of(r, a.value);
      const rational* const other_b = other_a == nullptr ? nullptr : factor_of(r, b.value);
      if (other_b == nullptr || !(*other_a * b.factor == *other_b * a.factor)) continue;
      const rational factor = *other_a / unit;
      remove(r, a.value);
      remove(r, b.value);
      append(r, sum, factor);
    }
  }
  /// Adds what is left of a row, one term after the other.
  constexpr void finish(std::size_t row) {
    if (terms_[row] == 0) {
      draft_.output[row] = emit({0, 0, 0, 0});
      return;
    }
    term sum = term_[row][0];
    for (std::size_t i = 1; i < terms_[row]; ++i)
      sum = {emit({sum.value, term_[row][i].value, sum.factor, term_[row][i].factor}), 1};
    draft_.output[row] = sum.factor == rational(1) ? sum.value : emit({sum.value, sum.value, sum.factor, 0});
  }

  static constexpr std::size_t most_rounds = Inputs * Outputs < 128 ? Inputs * Outputs : 128;
  static constexpr std::size_t most_comparisons = 60'000;  // each takes clang some five steps of a million
  static constexpr std::size_t most_values = Inputs + most_rounds;

  term term_[Outputs][Inputs];
  std::size_t terms_[Outputs];
  std::uint16_t position_[Outputs][most_values];  // one more than the place among the row's terms; 0: none
  std::size_t comparisons_ = 0;
  program_draft<Inputs, Outputs> draft_;
};

template <std::size_t Outputs, std::size_t Inputs>
constexpr program_draft<Inputs, Outputs> draft_of(const table<Outputs, Inputs>& matrix) {
  return eliminator<Inputs, Outputs>(matrix).run();
}

/// The draft with as much room as it needs.
template <std::size_t Size, std::size_t Inputs, std::size_t Outputs>
constexpr linear_program<Inputs, Outputs, Size> cut(const program_draft<Inputs, Outputs>& draft) {
  linear_program<Inputs, Outputs, Size> program;
  for (std::size_t k = 0; k < Size; ++k) program.code[k] = draft.code[k];
  for (std::size_t o = 0; o < Outputs; ++o) program.output[o] = draft.output[o];
  return program;
}

/// Whether a program computes a matrix: applied to each unit vector it must give that column. `Values` is the number of its
/// values at least.
template <std::size_t Values, std::size_t Outputs, std::size_t Inputs>
constexpr bool computes(const program_view& program, const table<Outputs, Inputs>& matrix) {
  for (std::size_t i = 0; i < Inputs; ++i) {
    rational unit[Inputs] = {}, column[Outputs] = {}, values[Values] = {};
    unit[i] = 1;
    run(program, unit, column, values);
    for (std::size_t o = 0; o < Outputs; ++o)
      if (!(column[o] == matrix[o][i])) return false;
  }
  return true;
}

}  // namespace collage::inline v0::bilinear::detail
