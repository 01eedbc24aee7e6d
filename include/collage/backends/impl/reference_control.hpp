// Control flow in the reference: the evaluation that owns a node runs the node's subgraphs.
#pragma once

#include <algorithm>
#include <collage/op/control.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace collage::inline v0::ops {

void branch::reference(const attributes&, const reference_call& call) {
  (*call.bodies)(call.in[0].integer[0] != 0 ? 0 : 1, call.in.subspan(1), call.out);
}

void loop::reference(const attributes& a, const reference_call& call) {
  const auto carried = static_cast<std::size_t>(a.carried);
  const body_signature& body = call.signatures[0];
  // Arguments and results swap places after each iteration. Stacked values are copied to their final place at once.
  std::vector<oracle_value> in, out;
  for (std::size_t i = 0; i < 2 + carried; ++i) {
    in.emplace_back(body.in[i]);
    if (i == 0) continue;
    std::copy(call.in[i].real.begin(), call.in[i].real.end(), in[i].real.begin());
    std::copy(call.in[i].integer.begin(), call.in[i].integer.end(), in[i].integer.begin());
  }
  for (const tensor_type& type : body.out) out.emplace_back(type);

  const std::int64_t most = call.in[0].integer[0];
  for (std::int64_t round = 0; round < most && in[1].integer[0] != 0; ++round) {
    in[0].integer[0] = round;
    std::vector<reference_tensor> given, made;
    for (oracle_value& v : in) given.push_back(v.view());
    given.insert(given.end(), call.in.begin() + static_cast<std::ptrdiff_t>(2 + carried), call.in.end());
    for (oracle_value& v : out) made.push_back(v.view());
    (*call.bodies)(0, given, made);
    if (!a.stops) out[0].integer[0] = 1;
    for (std::size_t i = 0; i <= carried; ++i) std::swap(in[i + 1], out[i]);
    for (std::size_t i = carried + 1; i < out.size(); ++i) {
      const reference_tensor& stack = call.out[i - 1];
      const auto at = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(round) * out[i].size());
      if (!stack.real.empty()) std::copy(out[i].real.begin(), out[i].real.end(), stack.real.begin() + at);
      if (!stack.integer.empty()) std::copy(out[i].integer.begin(), out[i].integer.end(), stack.integer.begin() + at);
    }
  }
  for (std::size_t i = 0; i < carried; ++i) {
    std::copy(in[i + 2].real.begin(), in[i + 2].real.end(), call.out[i].real.begin());
    std::copy(in[i + 2].integer.begin(), in[i + 2].integer.end(), call.out[i].integer.begin());
  }
}

}  // namespace collage::inline v0::ops
