// LSTM, GRU, RNN.
#include "rules.hpp"

#include <collage/op/movement.hpp>
#include <collage/op/recurrent.hpp>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

/// A parameter of an activation, with what it is where it is left out.
struct parameter {
  bool exists = false, has_default = false;
  double otherwise = 0;
};
constexpr parameter needed{true};
constexpr parameter optional(double otherwise) { return {true, true, otherwise}; }

/// One of ONNX's activations. Those without a current operator of their own have no defaults: runtimes disagree.
struct known_activation {
  const char* name;  // in lower case: writers spell them in both ways
  recurrent_activation kind;
  parameter alpha, beta;
};
constexpr known_activation known_activations[] = {
    {"affine", recurrent_activation::affine, needed, needed},
    {"elu", recurrent_activation::elu, optional(1), {}},
    {"hardsigmoid", recurrent_activation::hard_sigmoid, optional(0.2), optional(0.5)},
    {"leakyrelu", recurrent_activation::leaky_relu, optional(0.01), {}},
    {"relu", recurrent_activation::relu, {}, {}},
    {"scaledtanh", recurrent_activation::scaled_tanh, needed, needed},
    {"sigmoid", recurrent_activation::sigmoid, {}, {}},
    {"softplus", recurrent_activation::softplus, {}, {}},
    {"softsign", recurrent_activation::softsign, {}, {}},
    {"tanh", recurrent_activation::tanh, {}, {}},
    {"thresholdedrelu", recurrent_activation::thresholded_relu, optional(1), {}},
};

const known_activation& activation_named(const lowering& n, std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const known_activation& known : known_activations)
    if (name == known.name) return known;
  n.unsupported("the activation \"" + name + "\"");
}

recurrent_direction direction_of(const lowering& n) {
  const std::string text = n.text("direction", "forward");
  if (text == "forward") return recurrent_direction::forward;
  if (text == "reverse") return recurrent_direction::reverse;
  if (text == "bidirectional") return recurrent_direction::bidirectional;
  n.invalid("its direction is \"" + text + "\", and must be forward, reverse or bidirectional");
}

/// Direction, activations and clip. Alphas and betas are used up in order by the activations that have any.
template <class Kind>
typename Kind::attributes attributes_of(const lowering& n, const Kind&) {
  typename Kind::attributes a;
  a.direction = direction_of(n);
  a.clip = n.real("clip", 0);
  const auto count = static_cast<std::size_t>(Kind::directions(a)) * Kind::activations;
  const std::vector<std::string> names = n.texts("activations");
  if (names.empty()) return a;
  if (names.size() != count)
    n.invalid("it has " + std::to_string(names.size()) + " activations, not " + std::to_string(count));
  const auto next_of = [&n](const char* attribute) {
    return [&n, attribute, list = n.reals(attribute), at = std::size_t{0}](const parameter& p,
                                                                           const std::string& name) mutable {
      if (p.exists && at < list.size()) return list[at++];
      if (p.exists && !p.has_default) n.invalid("the activation \"" + name + "\" needs an entry of " + attribute);
      return p.otherwise;
    };
  };
  auto next_alpha = next_of("activation_alpha");
  auto next_beta = next_of("activation_beta");
  for (const std::string& name : names) {
    const known_activation& known = activation_named(n, name);
    a.activations.push_back(static_cast<std::int64_t>(known.kind));
    a.alphas.push_back(next_alpha(known.alpha, name));
    a.betas.push_back(next_beta(known.beta, name));
  }
  return a;
}

/// Batch and steps (or directions) exchanged: layout 1 has the batch first.
value with_batch_first(lowering& n, value v, const shape& permutation) {
  return n.integer("layout", 0) == 0 ? v : n(ops::transpose, v, {.permutation = permutation});
}

/// Lowers onto the kind; `a` is complete. ONNX's operands are x, w, r, bias, lengths, initial_h, initial_c, peepholes.
template <class Kind>
void lower_cell(lowering& n, const Kind& kind, const typename Kind::attributes& a) {
  const value given = n.operand(0);
  if (n.rank_of(given) != 3) n.invalid("its input has rank " + std::to_string(n.rank_of(given)) + ", not 3");
  const value x = with_batch_first(n, given, {1, 0, 2});
  const dtype type = n.element_type_of(x);
  const std::int64_t steps = n.dims_of(x)[0];
  const std::int64_t batch = n.dims_of(x)[1];
  const std::int64_t directions = Kind::directions(a);
  const value r = n.operand(2);
  if (n.rank_of(r) != 3) n.invalid("its recurrent weights have rank " + std::to_string(n.rank_of(r)) + ", not 3");
  const std::int64_t hidden = n.dims_of(r)[2];
  if (n.integer("hidden_size", hidden) != hidden) n.invalid("its hidden_size is not that of its recurrent weights");
  if (n.dims_of(r)[1] != hidden * Kind::gates)
    n.invalid("its recurrent weights must have shape [directions, gates * hidden, hidden]");

  std::vector<value> operands{x, n.operand(1), r};
  operands.push_back(n.has(3) ? n.operand(3) : n.filled({type, {directions, 2 * Kind::gates * hidden}}, 0));
  for (const std::size_t i : {std::size_t{5}, std::size_t{6}})
    if (i == 5 || Kind::has_cell)
      operands.push_back(n.has(i) ? with_batch_first(n, n.operand(i), {1, 0, 2})
                                  : n.filled({type, {directions, batch, hidden}}, 0));
  const bool has_peepholes = Kind::has_cell && n.has(7);
  if (n.has(4)) operands.push_back(n.operand(4));
  else if (has_peepholes) operands.push_back(n.filled({dtype::i32, {batch}}, static_cast<double>(steps)));
  if (has_peepholes) operands.push_back(n.operand(7));

  const value y = n(kind, operands, a);
  for (std::uint32_t i = 0; i < Kind::outputs; ++i)
    if (n.wants(i)) n.result(i, with_batch_first(n, {y.index + i}, i == 0 ? shape{2, 0, 1, 3} : shape{1, 0, 2}));
}

void lower_rnn(lowering& n) { lower_cell(n, ops::rnn, attributes_of(n, ops::rnn)); }

void lower_gru(lowering& n) {
  ops::gru_attributes a = attributes_of(n, ops::gru);
  a.linear_before_reset = n.integer("linear_before_reset", 0) != 0;
  lower_cell(n, ops::gru, a);
}

void lower_lstm(lowering& n) {
  ops::lstm_attributes a = attributes_of(n, ops::lstm);
  a.input_forget = n.integer("input_forget", 0) != 0;
  lower_cell(n, ops::lstm, a);
}

constexpr lowering_rule recurrent_lowerings[] = {
    {"", "GRU", lower_gru},
    {"", "LSTM", lower_lstm},
    {"", "RNN", lower_rnn},
};

}  // namespace

std::span<const lowering_rule> recurrent_rules() { return recurrent_lowerings; }

}  // namespace collage::inline v0::onnx
