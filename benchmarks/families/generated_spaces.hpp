// The search spaces of generated kernels for the shapes that tables have. Shapes are lists of numbers, as in lines of tables.
#pragma once

#include "hidden_space.hpp"

#include <collage/tune/any_space.hpp>
#include <collage/tune/machine.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "jit/convolution_space.hpp"
#include "jit/depthwise_spaces.hpp"
#include "jit/product_space.hpp"

namespace families {

namespace jit = collage::detail::jit;
namespace tune = collage::tune;

/// Registers beside the accumulators, as the backend wants them for short epilogues.
inline constexpr int spare_registers = 2;

struct products {
  using space = jit::product_space;
  static constexpr const char* core = "matmul";
  static constexpr std::array sizes = {"m", "n", "k"};

  static jit::product_task shape_of(std::span<const std::int64_t> s) {
    return {.m = s[0], .n = s[1], .k = s[2], .spare = spare_registers, .has_one_broadcast = true};
  }
  static std::optional<tune::any_space> make(std::span<const std::int64_t> s, const tune::machine& on,
                                             std::string& why) {
    const jit::product_space made(shape_of(s), on);
    return hidden(made, made.task_fault(), why);
  }
};

/// Bilinear algorithms, with stride 1 and an output as large as the input. Both images have channels last.
struct convolutions {
  using space = jit::convolution_space;
  static constexpr const char* core = "conv";
  static constexpr std::array sizes = {"channels", "outputs", "size", "window"};

  static jit::convolution_shape shape_of(std::span<const std::int64_t> s) {
    const std::int64_t pad = s[3] / 2, end = s[3] - 1 - pad;
    return {.channels = s[0],
            .outputs = s[1],
            .height = s[2],
            .width = s[2],
            .window_height = s[3],
            .window_width = s[3],
            .pad_top = pad,
            .pad_left = pad,
            .pad_bottom = end,
            .pad_right = end,
            .from = jit::image_layout::channels_last,
            .to = jit::image_layout::channels_last};
  }
  static std::optional<tune::any_space> make(std::span<const std::int64_t> s, const tune::machine& on,
                                             std::string& why) {
    const jit::convolution_space made(shape_of(s), on);
    return hidden(made, made.task_fault(), why);
  }
};

/// A depthwise convolution, whose output is as large as its input with stride 1, and the pointwise one after it.
struct depthwise_convolutions {
  using space = jit::depthwise_space;
  static constexpr const char* core = "conv";
  static constexpr std::array sizes = {"channels", "outputs", "size", "window", "stride"};

  static jit::depthwise_task shape_of(std::span<const std::int64_t> s) {
    const std::int64_t pad = s[3] / 2;
    return {.shape = {.channels = s[0],
                      .height = s[2],
                      .width = s[2],
                      .window = s[3],
                      .stride = s[4],
                      .pad_top = pad,
                      .pad_left = pad,
                      .pad_bottom = pad,
                      .pad_right = pad},
            .outputs = s[1],
            .spare = spare_registers};
  }
  static std::optional<tune::any_space> make(std::span<const std::int64_t> s, const tune::machine& on,
                                             std::string& why) {
    const jit::depthwise_task task = shape_of(s);
    return hidden(jit::depthwise_space(task, on), jit::fault_of(task.shape), why);
  }
};

}  // namespace families
