// Generated kernels of one shape, built for any point of its space, on memory that all of them share.
#pragma once

#include "generated_spaces.hpp"

#include <collage/error.hpp>
#include <collage/tune/random.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jit/bilinear_convolution.hpp"
#include "jit/depthwise_product.hpp"
#include "jit/product.hpp"

namespace families {

/// Floats that begin at a cache line.
class floats {
 public:
  explicit floats(std::size_t count) : memory_(count + 16), count_(count) {
    data_ = memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) / 4;
  }
  explicit floats(std::int64_t count) : floats(static_cast<std::size_t>(count)) {}
  floats(const floats&) = delete;
  floats(floats&&) = default;
  floats& operator=(floats&&) = default;
  ~floats() = default;
  /// Random numbers from -1 to 1.
  static floats random(std::int64_t count, tune::random_source& from) {
    floats made(count);
    for (float& x : made.all()) x = static_cast<float>(from.below(1U << 20)) * 0x1p-19F - 1;
    return made;
  }
  float* data() const { return data_; }
  std::span<float> all() const { return {data_, count_}; }

 private:
  std::vector<float> memory_;
  std::size_t count_;
  float* data_;
};

/// All kernels of one task. One thread runs them.
class task_kernels {
 public:
  explicit task_kernels(floats output) : output_(std::move(output)), to_{output_.data()} {}
  task_kernels(const task_kernels&) = delete;
  task_kernels& operator=(const task_kernels&) = delete;
  virtual ~task_kernels() = default;

  /// The kernel of a point's text, as a function that runs it. Error (unsupported): this processor does not run it.
  virtual std::function<void()> build(const std::string& text) = 0;
  std::span<const float> output() const { return output_.all(); }
  void forget_output() const { std::ranges::fill(output_.all(), 0.0F); }

 protected:
  static void refuse_replica(const std::string& refusal) {
    if (!refusal.empty()) throw collage::error(collage::error_kind::unsupported, refusal, "measure");
  }
  /// Packed weights of one kind, which several configurations share. `pack` makes them.
  float* packed(std::pair<int, int> kind, std::size_t count, const std::function<void(float*)>& pack) {
    const auto found = packed_.find(kind);
    if (found != packed_.end()) return found->second.data();
    floats& made = packed_.emplace(kind, count).first->second;
    pack(made.data());
    return made.data();
  }
  /// Memory that kernels leave to the next ones.
  float* scratch(std::size_t bytes) {
    if (scratch_.all().size() * 4 < bytes) scratch_ = floats(bytes / 4);
    return scratch_.data();
  }

  floats output_;
  std::array<float*, 1> to_;

 private:
  std::map<std::pair<int, int>, floats> packed_;
  floats scratch_{std::size_t{0}};
};

class product_kernels final : public task_kernels {
 public:
  product_kernels(std::span<const std::int64_t> sizes, tune::random_source& random)
      : task_kernels(floats(sizes[0] * sizes[1])),
        shape_(products::shape_of(sizes)),
        a_(floats::random(shape_.m * shape_.k, random)),
        b_(floats::random(shape_.k * shape_.n, random)) {}

  std::function<void()> build(const std::string& text) override {
    static constexpr std::array modes = {jit::store_mode::set};
    const jit::configuration how = jit::parse_configuration(text);
    const auto made = std::make_shared<jit::product>(how, jit::product_extents{shape_.m, shape_.n, shape_.k}, modes,
                                                     jit::epilogue(), std::make_shared<jit::code_arena>());
    made->bind();
    refuse_replica(made->refusal());
    const float* weights =
        packed({0, how.vectors}, made->packed_size(), [&](float* to) { made->pack(b_.data(), shape_.n, to); });
    return [this, made, weights] {
      made->run({.a = a_.data(), .a_step = shape_.k, .packed = weights, .to = to_, .to_step = shape_.n});
    };
  }

 private:
  jit::product_task shape_;
  floats a_, b_;
};

class convolution_kernels final : public task_kernels {
 public:
  convolution_kernels(std::span<const std::int64_t> sizes, tune::random_source& random)
      : convolution_kernels(convolutions::shape_of(sizes), random) {}

  std::function<void()> build(const std::string& text) override {
    const jit::convolution_configuration how = jit::parse_convolution_configuration(text);
    const auto made =
        std::make_shared<jit::bilinear_convolution>(how, shape_, jit::epilogue(), std::make_shared<jit::code_arena>());
    made->bind();
    refuse_replica(made->refusal());
    const float* weights =
        packed({how.family, how.product.vectors}, static_cast<std::size_t>(jit::weight_bytes(how, shape_)) / 4,
               [&](float* to) { made->pack(weights_.data(), to); });
    const auto room = static_cast<std::size_t>(jit::scratch_bytes(how, shape_, 1));
    return [this, made, weights, room] {
      made->run({.from = image_.data(), .weights = weights, .to = to_, .scratch = scratch(room)});
    };
  }

 private:
  convolution_kernels(const jit::convolution_shape& s, tune::random_source& random)
      : task_kernels(floats(jit::image_floats(s.to, s.batch, s.outputs, s.output_height(), s.output_width()))),
        shape_(s),
        image_(floats::random(jit::image_floats(s.from, s.batch, s.channels, s.height, s.width), random)),
        weights_(floats::random(s.outputs * s.channels * s.window_height * s.window_width, random)) {}

  jit::convolution_shape shape_;
  floats image_, weights_;
};

/// With a clamp from 0 to 6 between both convolutions, and biases before it, as in MobileNet-V2.
class depthwise_kernels final : public task_kernels {
 public:
  depthwise_kernels(std::span<const std::int64_t> sizes, tune::random_source& random)
      : depthwise_kernels(depthwise_convolutions::shape_of(sizes), random) {}

  std::function<void()> build(const std::string& text) override {
    const jit::depthwise_configuration how = jit::parse_depthwise_configuration(text);
    const auto made = std::make_shared<jit::depthwise_product>(
        how, task_.shape, task_.outputs, jit::depthwise_product::bounds{0, 6}, jit::epilogue(), 1);
    refuse_replica(made->refusal());
    const float* weights =
        packed({0, how.product.vectors}, made->packed_size(), [&](float* to) { made->pack(weights_.data(), to); });
    return [this, made, weights] {
      jit::depthwise_product_call call;
      call.from = image_.data();
      call.window = window_.data();
      call.bias = bias_.data();
      call.packed = weights;
      call.to = to_[0];
      call.scratch = scratch(made->workspace());
      made->run(call);
    };
  }

 private:
  depthwise_kernels(const jit::depthwise_task& task, tune::random_source& random)
      : task_kernels(floats(task.outputs * task.shape.output_height() * task.shape.output_width())),
        task_(task),
        image_(floats::random(task.shape.channels * task.shape.height * task.shape.width, random)),
        window_(task.shape.weight_floats()),
        bias_(floats::random(task.shape.channels, random)),
        weights_(floats::random(task.outputs * task.shape.channels, random)) {
    const floats plain = floats::random(task.shape.channels * task.shape.window * task.shape.window, random);
    jit::pack_depthwise(task.shape, plain.data(), window_.data());
  }

  jit::depthwise_task task_;
  floats image_, window_, bias_, weights_;
};

}  // namespace families
