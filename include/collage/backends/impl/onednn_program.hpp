// A kernel on oneDNN: primitives that run one after the other, and the memory that they read and write.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/onednn_library.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

/// The place of an operand's memory.
struct place {
  enum class source : std::uint8_t { argument, output, workspace, constant };
  source from = source::argument;
  std::size_t index = 0;  ///< index of the argument or output, or offset in the workspace
  std::size_t spare = 0;  ///< offset in the workspace of the memory that is written if the output is absent
  std::shared_ptr<const std::byte> contents{};  ///< contents of a constant, kept alive here
  desc layout{};
};

/// One primitive and its operands: indices into the list of places.
struct program_step {
  dnnl::primitive what;
  std::vector<std::pair<int, std::size_t>> operands;
};

/// The state of one call. The library's memory objects hold the pointers that a primitive reads, so calls that run at the same
/// time cannot share them.
struct call_frame {
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> operands;  ///< of all steps, one after the other
  dnnl::stream stream;
};

/// A finished program. A call sets the pointers of a frame, at 5 nanoseconds each; creating memory objects would take 200 each.
/// The library itself takes about 300 per primitive, and allocates a few small blocks for its list of arguments.
class program {
 public:
  /// `output_bytes` is the size of each output.
  program(std::vector<place> places, std::vector<program_step> steps, std::vector<std::size_t> output_bytes)
      : places_(std::move(places)), steps_(std::move(steps)), output_bytes_(std::move(output_bytes)) {
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i].from != place::source::constant) variable_.push_back(i);
    give(make_frame());
  }
  ~program() {
    for (std::atomic<call_frame*>& slot : idle_) delete slot.load();
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  void run(const kernel_call& call) const {
    call_frame* const frame = take();
    for (const std::size_t i : variable_)
      dnnl_memory_set_data_handle(frame->memories[i].get(), pointer(places_[i], call));
    // The only possible error is a lack of memory. Kernels do not throw, and a result of NaN is not overlooked.
    if (!execute(*frame))
      for (std::size_t i = 0; i < output_bytes_.size(); ++i)
        if (call.out[i] != nullptr) std::memset(call.out[i], 0xFF, output_bytes_[i]);
    give(frame);
  }

 private:
  bool execute(const call_frame& frame) const noexcept {
    const dnnl_exec_arg_t* operands = frame.operands.data();
    for (const program_step& step : steps_) {
      const auto count = static_cast<int>(step.operands.size());
      try {
        if (dnnl_primitive_execute(step.what.get(), frame.stream.get(), count, operands) != dnnl_success) return false;
      } catch (...) { return false; }
      operands += count;
    }
    return true;
  }

  static void* pointer(const place& p, const kernel_call& call) {
    switch (p.from) {
      case place::source::argument: return const_cast<void*>(call.in[p.index]);
      case place::source::output:
        if (call.out[p.index] != nullptr) return call.out[p.index];
        return static_cast<std::byte*>(call.workspace) + p.spare;
      default: return static_cast<std::byte*>(call.workspace) + p.index;
    }
  }

  call_frame* make_frame() const {
    auto frame = std::make_unique<call_frame>();
    for (const place& p : places_)
      frame->memories.emplace_back(p.layout, cpu(), const_cast<std::byte*>(p.contents.get()));
    for (const program_step& step : steps_)
      for (const auto& [argument, operand] : step.operands)
        frame->operands.push_back({argument, frame->memories[operand].get()});
    frame->stream = dnnl::stream(cpu());
    return frame.release();
  }

  /// Returns an idle frame, or a new one if more calls run at the same time than ever before.
  call_frame* take() const {
    for (;;) {
      for (std::atomic<call_frame*>& slot : idle_)
        if (slot.load(std::memory_order_relaxed) != nullptr)
          if (call_frame* const frame = slot.exchange(nullptr, std::memory_order_acquire); frame != nullptr)
            return frame;
      try {
        return make_frame();
      } catch (...) {
        std::this_thread::yield();  // no memory: wait for another call's frame
      }
    }
  }
  void give(call_frame* frame) const {
    for (std::atomic<call_frame*>& slot : idle_) {
      call_frame* nothing = nullptr;
      if (slot.compare_exchange_strong(nothing, frame, std::memory_order_release, std::memory_order_relaxed)) return;
    }
    delete frame;
  }

  std::vector<place> places_;
  std::vector<program_step> steps_;
  std::vector<std::size_t> variable_;
  std::vector<std::size_t> output_bytes_;
  mutable std::array<std::atomic<call_frame*>, 16> idle_{};
};

/// A program as a kernel that does nothing else.
struct run_program {
  std::shared_ptr<const program> steps;
  void operator()(const kernel_call& call) const { steps->run(call); }
};

/// Builds a program. Its functions return operands as numbers.
class program_builder {
 public:
  using operand = std::size_t;

  program_builder(const any_match& m, const build_context& context) : match_(&m), context_(&context) {}

  const any_match& match() const { return *match_; }
  const build_context& context() const { return *context_; }
  const desc& layout_of(operand o) const { return places_[o].layout; }

  /// A value of the graph, read in the given layout.
  operand read(std::uint32_t value, const desc& layout) {
    places_.push_back({.from = place::source::argument, .index = match_->index_of(value), .layout = layout});
    return places_.size() - 1;
  }
  /// The output of the kernel.
  operand output(const desc& layout) {
    places_.push_back({.from = place::source::output, .layout = layout});
    return places_.size() - 1;
  }
  /// One of several outputs of the operator. An output that is not wanted is written to scratch memory.
  operand output(std::size_t which, const desc& layout) {
    places_.push_back({.from = place::source::output, .index = which, .spare = workspace_, .layout = layout});
    workspace_ += aligned(layout.get_size());
    return places_.size() - 1;
  }
  /// A value that the function object around the program reads itself. Returns the index of the kernel's argument.
  std::size_t read_outside(std::uint32_t value) {
    read_outside_.push_back(match_->index_of(value));
    return read_outside_.back();
  }
  /// Where scratch memory begins in the workspace, in bytes.
  std::size_t offset_of(operand o) const { return places_[o].index; }
  /// Scratch memory between two steps.
  operand scratch(const desc& layout) {
    places_.push_back({.from = place::source::workspace, .index = workspace_, .layout = layout});
    workspace_ += aligned(layout.get_size());
    return places_.size() - 1;
  }

  /// Memory with these contents, which the program keeps.
  operand given(const desc& layout, std::shared_ptr<const std::byte> contents) {
    places_.push_back({.from = place::source::constant, .contents = std::move(contents), .layout = layout});
    return places_.size() - 1;
  }

  /// The same memory in another layout.
  operand seen_as(operand o, const desc& layout) {
    place copy = places_[o];
    copy.layout = layout;
    places_.push_back(std::move(copy));
    return places_.size() - 1;
  }

  /// A value in memory of layout `from`, read in layout `to`. A constant is packed now; another value is reordered in every call,
  /// unless the layouts are equal.
  operand read(std::uint32_t value, const desc& from, const desc& to) {
    if (from == to) return read(value, from);
    if (!match_->graph().is_constant(value)) {
      const operand made = scratch(to);
      reorder(read(value, from), made);
      return made;
    }
    const std::byte* const contents = context_->constant<std::byte>(value);
    return pack(value, "", from, to, [&](std::byte* bytes) { repack(from, contents, to, bytes); });
  }

  /// A constant that `fill` writes in layout `to`, from memory of layout `from`. It is made now, and shared with all kernels that
  /// request the same. `how` describes what else `fill` does.
  operand pack(std::uint32_t value, const std::string& how, const desc& from, const desc& to,
               const std::function<void(std::byte*)>& fill) {
    std::shared_ptr<const std::byte> packed;
    if (to.get_format_kind() == dnnl::memory::format_kind::blocked) {
      packed = context_->packed(value, "onednn " + how + text_of(from) + " to " + text_of(to), to.get_size(), fill);
    } else {  // an opaque layout: no readable property distinguishes it from others
      const std::shared_ptr<std::byte> own = allocate_bytes(to.get_size());
      fill(own.get());
      packed = own;
    }
    places_.push_back({.from = place::source::constant, .contents = std::move(packed), .layout = to});
    return places_.size() - 1;
  }
  /// Copies memory of layout `from` into memory of layout `to`.
  static void repack(const desc& from, const std::byte* contents, const desc& to, std::byte* bytes) {
    dnnl::memory source(from, cpu(), const_cast<std::byte*>(contents));
    dnnl::memory packed(to, cpu(), bytes);
    dnnl::stream stream(cpu());
    dnnl::reorder(source, packed).execute(stream, source, packed);
    stream.wait();
  }

  /// Appends a primitive made from its descriptor.
  template <class Descriptor>
  void run(const Descriptor& d, const dnnl::primitive& what, std::vector<std::pair<int, operand>> operands) {
    if (const desc needed = d.scratchpad_desc(); needed.get_size() > 0) {
      // All steps share one region for scratch memory. Its offset is known when all steps are there.
      scratchpads_.push_back(places_.size());
      scratchpad_size_ = std::max(scratchpad_size_, aligned(needed.get_size()));
      places_.push_back({.from = place::source::workspace, .layout = needed});
      operands.emplace_back(DNNL_ARG_SCRATCHPAD, places_.size() - 1);
    }
    steps_.push_back({what, std::move(operands)});
  }
  void reorder(operand from, operand to) {
    const dnnl::reorder::primitive_desc d =
        fast(dnnl::reorder::primitive_desc(cpu(), layout_of(from), cpu(), layout_of(to), attributes()));
    run(d, dnnl::reorder(d), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  /// The finished kernel. `wrap` makes the function object from the program.
  template <class Wrap>
  kernel finish(const std::string& name, const Wrap& wrap) {
    for (const operand o : scratchpads_) places_[o].index = workspace_;
    std::vector<bool> is_read(match_->arguments().size(), false);
    for (const place& p : places_)
      if (p.from == place::source::argument) is_read[p.index] = true;
    for (const std::size_t argument : read_outside_) is_read[argument] = true;
    std::vector<std::size_t> bytes(match_->graph().nodes[match_->nodes().back()].outputs);
    for (const place& p : places_)
      if (p.from == place::source::output) bytes[p.index] = std::max(bytes[p.index], p.layout.get_size());
    auto steps = std::make_shared<const program>(std::move(places_), std::move(steps_), std::move(bytes));
    kernel made(name, wrap(std::move(steps)), workspace_ + scratchpad_size_);
    for (std::size_t i = 0; i < is_read.size(); ++i)
      if (!is_read[i]) made.does_not_read(i);
    return made;
  }
  kernel finish(const std::string& name) {
    return finish(name, [](std::shared_ptr<const program> steps) { return run_program{std::move(steps)}; });
  }

 private:
  static std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  const any_match* match_;
  const build_context* context_;
  std::vector<place> places_;
  std::vector<program_step> steps_;
  std::vector<operand> scratchpads_;
  std::vector<std::size_t> read_outside_;  // arguments
  std::size_t workspace_ = 0;
  std::size_t scratchpad_size_ = 0;
};

/// float32 or int32 numbers as a constant of the program.
template <class T>
std::size_t given_list(program_builder& program, const std::vector<T>& list) {
  const std::shared_ptr<std::byte> bytes = allocate_bytes(list.size() * sizeof(T));
  std::memcpy(bytes.get(), list.data(), list.size() * sizeof(T));
  const auto type = std::is_same_v<T, float> ? f32 : dnnl::memory::data_type::s32;
  return program.given({{static_cast<std::int64_t>(list.size())}, type, tag::a}, bytes);
}

/// A kernel's name: the library's implementation, and the form at its border unless that is plain.
template <class Descriptor>
std::string named(const Descriptor& d, const form& stored) {
  return std::string(d.impl_info_str()) + (stored == plain ? "" : " " + to_text(stored));
}

/// The post-ops of a primitive and the tensors they read.
class epilogue {
 public:
  /// `layout` is the layout in which the post-op reads `value`; the library may choose it. `from` is its layout in memory.
  void combine(dnnl::algorithm how, std::uint32_t value, const desc& from, const desc& layout) {
    added_.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops_.len()) | DNNL_ARG_SRC_1, value, from});
    ops_.append_binary(how, layout);
  }
  void apply(dnnl::algorithm what, double alpha, double beta) {
    ops_.append_eltwise(what, static_cast<float>(alpha), static_cast<float>(beta));
  }
  /// A depthwise convolution with a square window. `bias` is the type of its bias, undefined if it has none.
  void convolve(dnnl::memory::data_type bias, std::int64_t window, std::int64_t stride, std::int64_t pad) {
    ops_.append_dw(f32, bias, f32, window, stride, pad);
  }
  const dnnl::post_ops& ops() const { return ops_; }

  /// Reads the tensors in the layouts that the primitive chose.
  template <class Descriptor>
  void read(program_builder& p, const Descriptor& d, std::vector<std::pair<int, std::size_t>>& operands) const {
    for (const tensor& t : added_)
      operands.emplace_back(t.argument, p.read(t.value, t.from, d.query_md(dnnl::query::exec_arg_md, t.argument)));
  }

 private:
  struct tensor {
    int argument;
    std::uint32_t value;
    desc from;
  };
  dnnl::post_ops ops_;
  std::vector<tensor> added_;
};

}  // namespace
}  // namespace collage::inline v0::detail::onednn
