// The definitions of collage/backends/openvino.hpp. Exactly one file of a program includes them and is linked with OpenVINO's
// runtime. It is src/openvino.cpp, which is the target collage::openvino, or a file of the user.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <collage/backends/impl/openvino_faults.hpp>
#include <collage/backends/impl/openvino_model.hpp>
#include <collage/backends/impl/openvino_region.hpp>
#include <collage/backends/openvino.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <openvino/openvino.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::openvino {
namespace {

/// The library's threads and the locks that they held do not survive a fork, so that calls in the child could wait without end.
inline std::atomic<bool> is_forked = false;

/// Throws in the child of a process that has used the library.
inline void check_not_forked() {
  if (is_forked.load(std::memory_order_relaxed))
    throw error(error_kind::environment,
                "the process was forked after OpenVINO was used, and OpenVINO cannot go on in a child", "openvino",
                "fork before the first network is loaded, or leave openvino out of the plan");
}

/// The library's entry point. It opens its plugin once for the process.
inline ov::Core& library() {
  check_not_forked();
  static const bool is_watched = pthread_atfork(nullptr, nullptr, [] { is_forked = true; }) == 0;
  static_cast<void>(is_watched);
  static ov::Core core;
  return core;
}

/// A compiled region. Each thread that calls it takes a request of its own. A request remembers the memory that was set last,
/// because setting memory takes longer than comparing pointers.
class region {
 public:
  struct port {
    std::size_t position = 0;  ///< in the list of the call
    ov::element::Type type;
    ov::Shape dims;
  };

  /// Errors: the compiled model has results of other shapes.
  region(ov::CompiledModel model, std::vector<port> in, std::vector<port> out)
      : model_(std::move(model)), in_(std::move(in)), out_(std::move(out)) {
    for (std::size_t i = 0; i < out_.size(); ++i)
      if (model_.output(i).get_partial_shape() != ov::PartialShape(out_[i].dims))
        throw error(error_kind::unsupported, "openvino makes a result of another shape", "openvino");
    free_.push_back(make());
  }

  void run(const kernel_call& call) {
    check_not_forked();
    std::unique_ptr<request> r = take();
    for (std::size_t i = 0; i < in_.size(); ++i) {
      void* const memory = const_cast<void*>(call.in[in_[i].position]);  // the library does not write to inputs
      if (std::exchange(r->in[i], memory) != memory)
        r->infer.set_input_tensor(i, ov::Tensor(in_[i].type, in_[i].dims, memory));
    }
    for (std::size_t i = 0; i < out_.size(); ++i) {
      void* const memory = call.out[out_[i].position];
      if (std::exchange(r->out[i], memory) != memory)
        r->infer.set_output_tensor(i, ov::Tensor(out_[i].type, out_[i].dims, memory));
    }
    r->infer.infer();
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(r));
  }

 private:
  struct request {
    ov::InferRequest infer;
    std::vector<void*> in, out;
  };
  std::unique_ptr<request> make() {
    return std::make_unique<request>(
        request{model_.create_infer_request(), std::vector<void*>(in_.size()), std::vector<void*>(out_.size())});
  }
  std::unique_ptr<request> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<request> r = std::move(free_.back());
        free_.pop_back();
        return r;
      }
    }
    return make();
  }

  ov::CompiledModel model_;
  std::vector<port> in_, out_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<request>> free_;
};

/// The library's error message, in one line.
inline std::string first_line(const std::exception& e) {
  std::string text = e.what();
  std::ranges::replace(text, '\n', ' ');
  constexpr std::size_t enough = 200;
  return text.size() > enough ? text.substr(0, enough) + "..." : text;
}

/// Compiles a region. `element`: the element type to which it rounds; nothing: none.
inline kernel build_region(const node_group& group, const build_context& context, std::optional<dtype> element) {
  const graph& network = context.network();
  const bool with_integers = element && is_8_bit_integer(*element);
  std::vector<region::port> in, out;
  for (std::size_t i = 0; i < group.arguments.size(); ++i) {
    const std::uint32_t v = group.arguments[i];
    if (network.at(v).role == value_role::constant) continue;
    in.push_back({i, type_of(network.type_of(v).type), shape_of(network.type_of(v).dims)});
  }
  for (std::size_t i = 0; i < group.outputs.size(); ++i)
    out.push_back(
        {i, type_of(network.type_of(group.outputs[i]).type), shape_of(network.type_of(group.outputs[i]).dims)});
  const ov::element::Type precision = element == dtype::bf16 ? ov::element::bf16 : ov::element::f32;
  std::shared_ptr<region> made;
  try {
    made = std::make_shared<region>(
        library().compile_model(region_model(group, context, with_integers).model(), "CPU",
                                ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY), ov::num_streams(1),
                                ov::inference_num_threads(context.threads()), ov::hint::inference_precision(precision),
                                ov::hint::enable_cpu_pinning(false)),
        std::move(in), std::move(out));
  } catch (const error&) { throw; } catch (const std::exception& e) {
    throw error(error_kind::unsupported, "openvino cannot compile it: " + first_line(e), "openvino");
  }
  const std::string in_what = !element ? "" : with_integers ? " in int8" : " in bf16";
  kernel k("region of " + std::to_string(group.nodes.size()) + in_what,
           [made](const kernel_call& call) { made->run(call); });
  for (std::size_t i = 0; i < group.arguments.size(); ++i)
    if (network.at(group.arguments[i]).role == value_role::constant) k.does_not_read(i);
  return k;
}

/// Whether the library says that it computes in an element type here. Errors: those of the library.
inline bool has_capability(const std::string& element) {
  const std::vector<std::string> list = library().get_property("CPU", ov::device::capabilities);
  return std::ranges::find(list, element) != list.end();
}
inline bool has_vnni() { return __builtin_cpu_supports("avx512vnni") != 0 || __builtin_cpu_supports("avxvnni") != 0; }
/// The result of a probe, if the processor is able to do what a variant needs.
template <class Able>
probe_result if_able(const probe_result& found, Able is_able, const char* reason) {
  if (!found.available || is_able()) return found;
  return {.available = false, .version = found.version, .details = "", .reason = reason};
}

}  // namespace
}  // namespace collage::inline v0::detail::openvino

namespace collage::inline v0 {

verdict openvino::takes(const graph& network, std::uint32_t node) {
  using namespace detail::openvino;
  const converter* known = converter_of(network.node(node).kind->id);
  if (known == nullptr) return {false, "openvino has no such operator here"};
  if (verdict v = accepts_types(network, node); !v) return v;
  return known->accepts == nullptr ? verdict() : known->accepts(network, node);
}

verdict openvino::joins(const graph& network, std::uint32_t node) {
  return detail::openvino::joins_what_it_reads(network, node);
}

kernel openvino::build(const node_group& group, build_context& context) {
  return detail::openvino::build_region(group, context, {});
}
kernel openvino_bf16::build(const node_group& group, build_context& context) {
  return detail::openvino::build_region(group, context, rounds_to);
}
kernel openvino_int8::build(const node_group& group, build_context& context) {
  return detail::openvino::build_region(group, context, rounds_to);
}

probe_result openvino::probe() {
  static const std::string version = ov::get_openvino_version().buildNumber;
  // OpenVINO learns the processors from this file. If it is missing, the plugin looks for its end and never returns.
  static const bool is_readable = std::ifstream("/proc/cpuinfo").is_open();
  if (!is_readable)
    return {.available = false,
            .version = version.c_str(),
            .details = "",
            .reason = "OpenVINO needs /proc/cpuinfo, which cannot be read here: mount /proc"};
  static const std::string trouble = [] {
    try {
      return detail::openvino::library().get_property("CPU", ov::device::full_name).empty() ? "it reports no CPU device"
                                                                                            : "";
    } catch (const std::exception& e) { return e.what(); }
  }();
  static const std::string reason =
      trouble.empty() ? "" : "OpenVINO has no plugin for processors (" + trouble + "): run tools/setup again";
  return {.available = trouble.empty(), .version = version.c_str(), .details = "", .reason = reason.c_str()};
}

probe_result openvino_bf16::probe() {
  const auto is_able = [] { return detail::openvino::has_capability(ov::device::capability::BF16); };
  return detail::openvino::if_able(openvino::probe(), is_able,
                                   "this processor has no instructions for bfloat16 that OpenVINO uses");
}

probe_result openvino_int8::probe() {
  return detail::openvino::if_able(openvino::probe(), detail::openvino::has_vnni,
                                   "this processor lacks VNNI, without which products of integers of 8 bits saturate");
}

}  // namespace collage::inline v0
