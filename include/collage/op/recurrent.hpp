// Recurrent cells over whole sequences: RNN, GRU, LSTM.
#pragma once

#include <collage/op/kind.hpp>
#include <initializer_list>

namespace collage::inline v0 {

enum class recurrent_direction : std::uint8_t {
  forward,
  reverse,        ///< from each sequence's last step to its first
  bidirectional,  ///< both; the forward direction comes first
};

enum class recurrent_activation : std::uint8_t {
  sigmoid,
  tanh,
  relu,
  affine,            ///< alpha x + beta
  leaky_relu,        ///< x, or alpha x below 0
  thresholded_relu,  ///< x, or 0 below alpha
  scaled_tanh,       ///< alpha tanh(beta x)
  hard_sigmoid,      ///< alpha x + beta, clipped to 0 and 1
  elu,               ///< x, or alpha (exp(x) - 1) below 0
  softsign,          ///< x / (1 + |x|)
  softplus,          ///< log(1 + exp(x))
};

namespace ops {

/// The attributes that all cells share. Each list holds an entry for each activation of a cell, f first, then the
/// entries of the second direction. Empty lists are filled in when a node is added: sigmoid for f, tanh for the others,
/// and alphas and betas of 0. An RNN's only activation is tanh.
struct recurrent_attributes {
  recurrent_direction direction = recurrent_direction::forward;
  shape activations{};
  real_list alphas{};
  real_list betas{};
  double clip = 0;  ///< bounds the inputs of the gates' activations to [-clip, clip]; 0: unbounded
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("direction", self.direction);
    visitor("activations", self.activations);
    visitor("alphas", self.alphas);
    visitor("betas", self.betas);
    visitor("clip", self.clip);
  }
};

struct gru_attributes : recurrent_attributes {
  bool linear_before_reset = false;  ///< the reset gate scales the product of the hidden state, not the state itself
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    recurrent_attributes::visit(self, visitor);
    visitor("linear_before_reset", self.linear_before_reset);
  }
};

struct lstm_attributes : recurrent_attributes {
  bool input_forget = false;  ///< the forget gate is 1 - the input gate
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    recurrent_attributes::visit(self, visitor);
    visitor("input_forget", self.input_forget);
  }
};

/// The base of the three kinds. Its parameters: the number of gates and of activations, and whether the cell has a cell state.
///
/// Operands for T steps, batch B, I inputs, H hidden units, D directions, G gates:
///   x [T, B, I], w [D, G H, I], r [D, G H, H], bias [D, 2 G H] (w's, then r's), initial_h [D, B, H]
///   then, for an LSTM only, initial_c [D, B, H]
///   optional: lengths [B] of int32, the number of steps of each sequence (at most T; T if left out)
///   then, for an LSTM only, optional: peepholes [D, 3 H] of the input, output and forget gates.
/// Outputs: y [T, D, B, H], 0 after a sequence's end; the last h [D, B, H]. For an LSTM also the last c [D, B, H].
template <class Derived, class Attributes, std::uint32_t Gates, std::uint32_t Activations, bool HasCell>
struct recurrent_kind : kind<Derived> {
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr std::uint32_t gates = Gates;
  static constexpr std::uint32_t activations = Activations;
  static constexpr bool has_cell = HasCell;
  static constexpr arity inputs{HasCell ? 6U : 5U, HasCell ? 8U : 6U};
  static constexpr std::uint32_t outputs = HasCell ? 3 : 2;
  using attributes = Attributes;

  static constexpr std::int64_t directions(const attributes& a) {
    return a.direction == recurrent_direction::bidirectional ? 2 : 1;
  }
  static constexpr void normalise(attributes& a, list_view<const tensor_type>) {
    const auto count = static_cast<std::size_t>(directions(a)) * Activations;
    if (a.activations.empty())
      for (std::size_t i = 0; i < count; ++i)
        a.activations.push_back(static_cast<std::int64_t>(
            Activations > 1 && i % Activations == 0 ? recurrent_activation::sigmoid : recurrent_activation::tanh));
    for (real_list* list : {&a.alphas, &a.betas})
      if (list->empty())
        for (std::size_t i = 0; i < count; ++i) list->push_back(0);
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const std::int64_t d = directions(a);
    const auto count = static_cast<std::size_t>(d) * Activations;
    if (a.direction > recurrent_direction::bidirectional) return {false, "it has an unknown direction"};
    if (a.activations.size() != count || a.alphas.size() != count || a.betas.size() != count)
      return {false, "activations, alphas and betas must have one entry per activation of a cell and direction"};
    for (const std::int64_t f : a.activations)
      if (f < 0 || f > static_cast<std::int64_t>(recurrent_activation::softplus))
        return {false, "it has an unknown activation"};
    if (!(a.clip >= 0)) return {false, "clip must not be negative"};

    if (!is_floating(io.in[0].type)) return {false, "its input must have a floating-point type", 0};
    if (io.in[0].rank() != 3) return {false, "its input must have shape [steps, batch, inputs]", 0};
    if (io.in[2].rank() != 3) return {false, "its recurrent weights must have rank 3", 2};
    const auto& x = io.in[0].dims;
    const std::int64_t h = io.in[2].dims[2];
    if (h > (std::int64_t{1} << 40)) return {false, "it has too many hidden units", 2};
    const std::int64_t rows = h < 0 ? unknown : h * Gates;
    // In the order of the operands. Unknown extents fit.
    const shape wanted[] = {x, {d, rows, x[2]}, {d, rows, h}, {d, h < 0 ? unknown : 2 * rows}, {d, x[1], h}};
    constexpr const char* rules[] = {"",
                                     "its weights must have shape [directions, gates * hidden, inputs]",
                                     "its recurrent weights must have shape [directions, gates * hidden, hidden]",
                                     "its bias must have shape [directions, 2 * gates * hidden]",
                                     "an initial state must have shape [directions, batch, hidden]",
                                     "its lengths must be int32 of shape [batch]",
                                     "its peepholes must have shape [directions, 3 * hidden]"};
    for (std::size_t i = 1; i < io.in.size(); ++i) {
      const std::size_t role = HasCell && i >= 5 ? i - 1 : i;
      const shape fitting = role == 5 ? shape{x[1]} : role == 6 ? shape{d, h < 0 ? unknown : 3 * h} : wanted[role];
      const dtype type = role == 5 ? dtype::i32 : io.in[0].type;
      if (io.in[i].type != type || !fits(io.in[i].dims, fitting))
        return {false, rules[role], static_cast<std::int32_t>(i)};
    }
    io.out[0] = {io.in[0].type, {x[0], d, x[1], h}};
    for (std::size_t i = 1; i < io.out.size(); ++i) io.out[i] = {io.in[0].type, {d, x[1], h}};
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    const auto& y = io.out[0].dims;
    const double sums = static_cast<double>(io.in[0].dims[2]) + static_cast<double>(y[3]);
    return {static_cast<double>(y.elements()) * (2.0 * Gates * sums + 10.0 * Gates)};
  }

 private:
  static constexpr bool fits(const shape& given, const shape& wanted) {
    if (given.rank != wanted.rank) return false;
    for (std::size_t i = 0; i < given.size(); ++i)
      if (given[i] >= 0 && wanted[i] >= 0 && given[i] != wanted[i]) return false;
    return true;
  }
};

/// rnn: h = f(W x + R h + bias), with W and R for the operands w and r.
inline constexpr struct rnn : recurrent_kind<rnn, recurrent_attributes, 1, 1, false> {
  static constexpr char name[] = "rnn";
  static void reference(const attributes& a, const reference_call& call);
} rnn{};

/// gru, gates in the order z, r, n: z and r = f(W x + R h + bias); n = g(W x + R (r . h) + bias);
/// h = (1 - z) . n + z . h. With linear_before_reset, n = g(W x + W's bias + r . (R h + R's bias)).
inline constexpr struct gru : recurrent_kind<gru, gru_attributes, 3, 2, false> {
  static constexpr char name[] = "gru";
  static void reference(const attributes& a, const reference_call& call);
} gru{};

/// lstm, gates in the order i, o, f, n: i, f, o = f(W x + R h + bias + peephole . c), n = g(W x + R h + bias);
/// c = f . c + i . n; h = o . h(c) with the activation h. The output gate's peephole reads the new c, the others the old c.
inline constexpr struct lstm : recurrent_kind<lstm, lstm_attributes, 4, 3, true> {
  static constexpr char name[] = "lstm";
  static void reference(const attributes& a, const reference_call& call);
} lstm{};

}  // namespace ops
}  // namespace collage::inline v0
