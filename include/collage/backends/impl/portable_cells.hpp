// The cells of recurrent networks: they compute a block of hidden units from the sums of their gates, in float32.
#pragma once

#include <algorithm>
#include <collage/backends/impl/portable_activations.hpp>
#include <collage/backends/impl/portable_panels.hpp>
#include <cstdint>

namespace collage::inline v0::detail::host {
namespace {

/// One step of one block of units in one row of the batch. `q` holds the sums of the gates, panel_width for each gate.
struct unit_block {
  float* q;
  const float* h;  ///< of the step before
  float* c;        ///< changed in place
  float* next;     ///< the new h
};

struct rnn_cell {
  static constexpr std::int64_t gates = 1;
  static constexpr bool has_cell = false, two_phases = false;
  activation_function f;
  void finish(const unit_block& u, const auto& clip, std::int64_t) const {
    clip(u.q);
    f(u.q, panel_width);
    std::copy_n(u.q, panel_width, u.next);
  }
};

struct lstm_cell {
  static constexpr std::int64_t gates = 4;
  static constexpr bool has_cell = true, two_phases = false;
  activation_function f, g, h;
  bool input_forget = false;
  const float* peepholes = nullptr;  ///< [3, padded]
  std::int64_t padded = 0;

  void finish(const unit_block& u, const auto& clip, std::int64_t unit) const {
    float* const input = u.q;
    float* const output = input + panel_width;
    float* const forget = output + panel_width;
    float* const next = forget + panel_width;
    if (peepholes != nullptr) look(input, 0, u.c, unit);
    if (peepholes != nullptr) look(forget, 2, u.c, unit);
    clip(input);
    clip(forget);
    clip(next);
    f(input, panel_width);
    if (!input_forget) f(forget, panel_width);
    else
      for (std::int64_t i = 0; i < panel_width; ++i) forget[i] = 1 - input[i];
    g(next, panel_width);
    for (std::int64_t i = 0; i < panel_width; ++i) u.c[i] = forget[i] * u.c[i] + input[i] * next[i];
    if (peepholes != nullptr) look(output, 1, u.c, unit);
    clip(output);
    f(output, panel_width);
    std::copy_n(u.c, panel_width, u.next);
    h(u.next, panel_width);
    for (std::int64_t i = 0; i < panel_width; ++i) u.next[i] *= output[i];
  }

 private:
  void look(float* gate, std::int64_t which, const float* c, std::int64_t unit) const {
    const float* const p = peepholes + which * padded + unit;
    for (std::int64_t i = 0; i < panel_width; ++i) gate[i] += p[i] * c[i];
  }
};

/// Without linear_before_reset a step has two phases: the reset hidden state must be complete before it is multiplied.
struct gru_cell {
  static constexpr std::int64_t gates = 3;
  static constexpr bool has_cell = false, two_phases = true;
  activation_function f, g;
  const float* bias = nullptr;  ///< [padded]: of the recurrent weights of n, if linear_before_reset

  void reset(float* gate, const auto& clip, const float* h, float* to) const {
    clip(gate);
    f(gate, panel_width);
    for (std::int64_t i = 0; i < panel_width; ++i) to[i] = gate[i] * h[i];
  }
  /// q holds the sums of z and r, and the input sums of n. `recurrent` holds the recurrent sums of n.
  void finish_linear(const unit_block& u, const float* recurrent, const auto& clip, std::int64_t unit) const {
    float* const r = u.q + panel_width;
    float* const n = r + panel_width;
    clip(r);
    f(r, panel_width);
    for (std::int64_t i = 0; i < panel_width; ++i) n[i] += r[i] * (recurrent[i] + bias[unit + i]);
    finish(u, clip, unit);
  }
  void finish(const unit_block& u, const auto& clip, std::int64_t) const {
    float* const z = u.q;
    float* const n = z + 2 * panel_width;
    clip(z);
    clip(n);
    f(z, panel_width);
    g(n, panel_width);
    for (std::int64_t i = 0; i < panel_width; ++i) u.next[i] = (1 - z[i]) * n[i] + z[i] * u.h[i];
  }
};

}  // namespace
}  // namespace collage::inline v0::detail::host
