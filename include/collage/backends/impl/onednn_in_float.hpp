// Bytes that are computed in float32 by a program of oneDNN: what comes before it and after it.
#pragma once

#include <collage/backends/impl/onednn_library.hpp>
#include <collage/backends/impl/onednn_program.hpp>
#include <collage/backends/impl/quantised_loops.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/dtype.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace collage::inline v0::detail::onednn {
namespace {

/// A scale or zero point: known, or read in each run.
struct quantisation_number {
  float known = 0;
  std::size_t argument = match_record::nothing;
  dtype type = dtype::f32;

  float in(const kernel_call& call) const {
    if (argument == match_record::nothing) return known;
    if (type == dtype::f32) return *static_cast<const float*>(call.in[argument]);
    return static_cast<float>(widened(type, call.in[argument]));
  }
};

/// Makes float32 of an operand of bytes, runs the program, and makes integers of its result if it is to be quantised.
struct run_in_float {
  std::size_t argument = 0, x_at = 0, y_at = 0;  ///< places of both copies in the workspace
  std::int64_t inputs = 0, outputs = 0;
  dtype from = dtype::u8, to = dtype::f32;
  quantisation_number x_scale = {}, x_factor = {.known = 1}, x_zero = {}, y_scale = {}, y_zero = {};
  int threads = 1;
  std::shared_ptr<const program> steps = {};

  void operator()(const kernel_call& call) const {
    auto* const workspace = static_cast<std::byte*>(call.workspace);
    const float scale = x_scale.in(call)*x_factor.in(call);
    const float zero_point = x_zero.in(call);
    const auto dequantise = [&]<class X>(X) {
      host::parallel_parts(threads, inputs, 1024, 1, [&](std::int64_t first, std::int64_t last) {
        host::dequantise(static_cast<const X*>(call.in[argument]), reinterpret_cast<float*>(workspace + x_at), first,
                         last, scale, zero_point);
      });
    };
    const auto quantise = [&]<class Y>(Y) {
      const host::byte_scale y{y_scale.in(call), y_zero.in(call)};
      host::parallel_parts(threads, outputs, 1024, 1, [&](std::int64_t first, std::int64_t last) {
        host::quantise(reinterpret_cast<const float*>(workspace + y_at), static_cast<Y*>(call.out[0]), first, last, y);
      });
    };
    if (from == dtype::i8) dequantise(std::int8_t{});
    else dequantise(std::uint8_t{});
    steps->run(call);
    if (to == dtype::i8) quantise(std::int8_t{});
    if (to == dtype::u8) quantise(std::uint8_t{});
  }
};

}  // namespace
}  // namespace collage::inline v0::detail::onednn
