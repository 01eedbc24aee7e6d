// Recurrent cells: rnn, gru and lstm.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/backends/reference.hpp>
#include <collage/op/recurrent.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail {

inline double activate(recurrent_activation f, double alpha, double beta, double x) {
  switch (f) {
    case recurrent_activation::sigmoid: return 1 / (1 + std::exp(-x));
    case recurrent_activation::tanh: return std::tanh(x);
    case recurrent_activation::relu: return x < 0 ? 0 : x;
    case recurrent_activation::affine: return alpha * x + beta;
    case recurrent_activation::leaky_relu: return x < 0 ? alpha * x : x;
    case recurrent_activation::thresholded_relu: return x < alpha ? 0 : x;
    case recurrent_activation::scaled_tanh: return alpha * std::tanh(beta * x);
    case recurrent_activation::hard_sigmoid: return x != x ? x : std::clamp(alpha * x + beta, 0.0, 1.0);
    case recurrent_activation::elu: return x < 0 ? alpha * std::expm1(x) : x;
    case recurrent_activation::softsign: return x / (1 + std::abs(x));
    case recurrent_activation::softplus: return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0);
  }
  return x;
}

/// One direction of a recurrence: sizes, states, and the input products of all steps.
class recurrent_run {
 public:
  /// `recurrent_bias` is the number of gates for which the bias of the recurrent weights is added in advance.
  template <class Attributes>
  recurrent_run(const Attributes& a, const reference_call& call, std::int64_t direction, std::int64_t gates,
                std::size_t activations, bool has_cell, std::int64_t recurrent_bias)
      : call_(&call), direction_(direction), gates_(gates), first_(static_cast<std::size_t>(direction) * activations) {
    const shape& x = call.in[0].type.dims;
    steps = x[0];
    batch = x[1];
    hidden = call.in[2].type.dims[2];
    attributes_ = a;
    reverse_ = direction == 1 || a.direction == recurrent_direction::reverse;
    const std::size_t optional = has_cell ? 6 : 5;
    const std::int64_t rows = gates * hidden;
    const std::int64_t inputs = x[2];
    for (std::int64_t b = 0; b < batch; ++b)
      lengths_.push_back(
          call.in.size() > optional
              ? std::clamp<std::int64_t>(call.in[optional].integer[static_cast<std::size_t>(b)], 0, steps)
              : steps);
    bias = call.in[3].real.data() + direction * 2 * rows;
    inputs_.resize(static_cast<std::size_t>(steps * batch * rows));
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) % rows;
      inputs_[i] = bias[row] + (row < recurrent_bias * hidden ? bias[rows + row] : 0.0);
    }
    gemm(steps * batch, rows, inputs, {call.in[0].real.data(), inputs, 1},
         {call.in[1].real.data() + direction * rows * inputs, 1, inputs}, inputs_.data(), rows);
    const std::int64_t states = batch * hidden;
    h.assign(call.in[4].real.data() + direction * states, call.in[4].real.data() + (direction + 1) * states);
    if (has_cell)
      c.assign(call.in[5].real.data() + direction * states, call.in[5].real.data() + (direction + 1) * states);
    if (has_cell && call.in.size() > 7) peepholes = call.in[7].real.data() + direction * 3 * hidden;
  }

  std::int64_t steps = 0, batch = 0, hidden = 0;
  const double* bias = nullptr;
  const double* peepholes = nullptr;  ///< null if the operator has none
  std::vector<double> h, c;           ///< states, [batch, hidden]

  bool active(std::int64_t step, std::int64_t b) const { return step < lengths_[static_cast<std::size_t>(b)]; }
  /// The input products of a step of sequence b.
  const double* inputs_of(std::int64_t step, std::int64_t b) const {
    return inputs_.data() + (time(step, b) * batch + b) * gates_ * hidden;
  }
  /// Applies activation `which` to a number; `gate` clips the number first.
  double activation(std::size_t which, double x) const {
    const std::size_t i = first_ + which;
    return activate(static_cast<recurrent_activation>(attributes_.activations[i]), attributes_.alphas[i],
                    attributes_.betas[i], x);
  }
  double gate(std::size_t which, double x) const {
    const double limit = attributes_.clip;
    return activation(which, limit > 0 && x == x ? std::clamp(x, -limit, limit) : x);
  }
  /// Products of states with the recurrent weights of some gates, [batch, count, hidden].
  std::vector<double> recur(const std::vector<double>& states, std::int64_t first, std::int64_t count) const {
    std::vector<double> products(static_cast<std::size_t>(batch * count * hidden), 0.0);
    gemm(batch, count * hidden, hidden, {states.data(), hidden, 1},
         {call_->in[2].real.data() + (direction_ * gates_ + first) * hidden * hidden, 1, hidden}, products.data(),
         count * hidden);
    return products;
  }

  /// Calls step(number) for each step, and writes the outputs.
  template <class Step>
  void run(const Step& step) {
    const std::int64_t directions = call_->out[0].type.dims[1];
    double* const y = call_->out[0].real.data();
    for (std::int64_t t = 0; t < steps; ++t)
      std::fill_n(y + (t * directions + direction_) * batch * hidden, batch * hidden, 0.0);
    for (std::int64_t s = 0; s < steps; ++s) {
      step(s);
      for (std::int64_t b = 0; b < batch; ++b)
        if (active(s, b))
          std::copy_n(h.data() + b * hidden, hidden, y + ((time(s, b) * directions + direction_) * batch + b) * hidden);
    }
    finish(h, 1);
    if (!c.empty()) finish(c, 2);
  }

 private:
  std::int64_t time(std::int64_t step, std::int64_t b) const {
    return reverse_ ? lengths_[static_cast<std::size_t>(b)] - 1 - step : step;
  }
  /// Writes the last states. States of a sequence without steps are 0, as in other libraries.
  void finish(const std::vector<double>& states, std::size_t output) const {
    double* const to = call_->out[output].real.data() + direction_ * batch * hidden;
    for (std::int64_t b = 0; b < batch; ++b)
      if (active(0, b)) std::copy_n(states.data() + b * hidden, hidden, to + b * hidden);
      else std::fill_n(to + b * hidden, hidden, 0.0);
  }

  const reference_call* call_;
  std::int64_t direction_, gates_;
  std::size_t first_;  ///< of this direction's activations
  bool reverse_ = false;
  ops::recurrent_attributes attributes_;
  std::vector<std::int64_t> lengths_;
  std::vector<double> inputs_;  ///< [steps, batch, gates, hidden]
};

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::rnn::reference(const attributes& a, const reference_call& call) {
  for (std::int64_t d = 0; d < directions(a); ++d) {
    detail::recurrent_run r(a, call, d, gates, activations, has_cell, gates);
    r.run([&](std::int64_t s) {
      const std::vector<double> q = r.recur(r.h, 0, 1);
      for (std::int64_t b = 0; b < r.batch; ++b)
        for (std::int64_t i = 0; r.active(s, b) && i < r.hidden; ++i) {
          const auto at = static_cast<std::size_t>(b * r.hidden + i);
          r.h[at] = r.gate(0, r.inputs_of(s, b)[i] + q[at]);
        }
    });
  }
}

void ops::gru::reference(const attributes& a, const reference_call& call) {
  for (std::int64_t d = 0; d < directions(a); ++d) {
    detail::recurrent_run r(a, call, d, gates, activations, has_cell, a.linear_before_reset ? 2 : 3);
    r.run([&](std::int64_t s) {
      const std::vector<double> q = r.recur(r.h, 0, 2);
      const auto gate = [&](std::int64_t which, std::int64_t b, std::int64_t i) {
        return r.gate(
            0, r.inputs_of(s, b)[which * r.hidden + i] + q[static_cast<std::size_t>((b * 2 + which) * r.hidden + i)]);
      };
      std::vector<double> scaled = r.h;
      if (!a.linear_before_reset)
        for (std::int64_t b = 0; b < r.batch; ++b)
          for (std::int64_t i = 0; r.active(s, b) && i < r.hidden; ++i)
            scaled[static_cast<std::size_t>(b * r.hidden + i)] *= gate(1, b, i);
      const std::vector<double> n = r.recur(scaled, 2, 1);
      for (std::int64_t b = 0; b < r.batch; ++b)
        for (std::int64_t i = 0; r.active(s, b) && i < r.hidden; ++i) {
          const auto at = static_cast<std::size_t>(b * r.hidden + i);
          const double recurrent = a.linear_before_reset ? gate(1, b, i) * (n[at] + r.bias[5 * r.hidden + i]) : n[at];
          const double next = r.gate(1, r.inputs_of(s, b)[2 * r.hidden + i] + recurrent);
          const double z = gate(0, b, i);
          r.h[at] = (1 - z) * next + z * r.h[at];
        }
    });
  }
}

void ops::lstm::reference(const attributes& a, const reference_call& call) {
  for (std::int64_t d = 0; d < directions(a); ++d) {
    detail::recurrent_run r(a, call, d, gates, activations, has_cell, gates);
    r.run([&](std::int64_t s) {
      const std::vector<double> q = r.recur(r.h, 0, 4);
      for (std::int64_t b = 0; b < r.batch; ++b)
        for (std::int64_t i = 0; r.active(s, b) && i < r.hidden; ++i) {
          const auto at = static_cast<std::size_t>(b * r.hidden + i);
          const auto sum = [&](std::int64_t which) {
            return r.inputs_of(s, b)[which * r.hidden + i] +
                   q[static_cast<std::size_t>((b * 4 + which) * r.hidden + i)];
          };
          const auto peephole = [&](std::int64_t which, double c) {
            return r.peepholes == nullptr ? 0.0 : r.peepholes[which * r.hidden + i] * c;
          };
          const double update = r.gate(0, sum(0) + peephole(0, r.c[at]));
          const double forget = a.input_forget ? 1 - update : r.gate(0, sum(2) + peephole(2, r.c[at]));
          const double c = forget * r.c[at] + update * r.gate(1, sum(3));
          const double output = r.gate(0, sum(1) + peephole(1, c));
          r.c[at] = c;
          r.h[at] = output * r.activation(2, c);
        }
    });
  }
}

}  // namespace collage::inline v0
