// What the measuring programs of this folder share: the driver opened while they run, memory, and times inside graphs.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace gpu {

/// A library opened with the loader. Errors: std::runtime_error that names the file.
class library {
 public:
  explicit library(const std::vector<std::string>& files,
                   const char* advice = "install the CUDA toolkit, or name its folder") {
    for (const std::string& f : files)
      if (handle_ = dlopen(f.c_str(), RTLD_NOW | RTLD_GLOBAL); handle_ != nullptr) {
        file_ = f;
        return;
      }
    throw std::runtime_error(files.front() + " could not be opened: " + advice);
  }
  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr) throw std::runtime_error(file_ + " has no " + name + ": it is of another version");
  }
  const std::string& file() const { return file_; }

 private:
  void* handle_ = nullptr;
  std::string file_;
};

/// The calls of the driver that these programs use. The names are those of the versions that cuda.h means.
struct driver {
  decltype(&cuInit) init = nullptr;
  decltype(&cuDriverGetVersion) version = nullptr;
  decltype(&cuDeviceGet) device = nullptr;
  decltype(&cuDeviceGetName) name = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&cuCtxSetCurrent) set_current = nullptr;
  decltype(&cuCtxSynchronize) finish_all = nullptr;
  decltype(&cuGetErrorName) error_name = nullptr;
  decltype(&cuMemAlloc) allocate = nullptr;
  decltype(&cuMemFree) release = nullptr;
  decltype(&cuMemAllocHost) allocate_host = nullptr;
  decltype(&cuMemFreeHost) release_host = nullptr;
  decltype(&cuMemGetInfo) memory_info = nullptr;
  decltype(&cuMemcpyHtoDAsync) to_device = nullptr;
  decltype(&cuMemcpyDtoHAsync) to_host = nullptr;
  decltype(&cuMemcpyDtoDAsync) in_device = nullptr;
  decltype(&cuMemsetD8Async) fill = nullptr;
  decltype(&cuStreamCreate) make_stream = nullptr;
  decltype(&cuStreamSynchronize) finish = nullptr;
  decltype(&cuStreamBeginCapture) begin_capture = nullptr;
  decltype(&cuStreamEndCapture) end_capture = nullptr;
  decltype(&cuStreamWaitEvent) wait_event = nullptr;
  decltype(&cuGraphInstantiateWithFlags) instantiate = nullptr;
  decltype(&cuGraphLaunch) launch_graph = nullptr;
  decltype(&cuGraphUpload) upload_graph = nullptr;
  decltype(&cuGraphDestroy) destroy_graph = nullptr;
  decltype(&cuGraphExecDestroy) destroy_exec = nullptr;
  decltype(&cuEventCreate) make_event = nullptr;
  decltype(&cuEventRecord) record = nullptr;
  decltype(&cuEventElapsedTime) elapsed = nullptr;
  decltype(&cuModuleLoadData) load_module = nullptr;
  decltype(&cuModuleGetFunction) get_function = nullptr;
  decltype(&cuLaunchKernel) launch = nullptr;
  decltype(&cuLaunchKernelEx) launch_ex = nullptr;

  driver() : file_({"libcuda.so.1"}, "this machine has no driver of NVIDIA") {
    file_.find("cuInit", init);
    file_.find("cuDriverGetVersion", version);
    file_.find("cuDeviceGet", device);
    file_.find("cuDeviceGetName", name);
    file_.find("cuDeviceGetAttribute", attribute);
    file_.find("cuDevicePrimaryCtxRetain", retain);
    file_.find("cuCtxSetCurrent", set_current);
    file_.find("cuCtxSynchronize", finish_all);
    file_.find("cuGetErrorName", error_name);
    file_.find("cuMemAlloc_v2", allocate);
    file_.find("cuMemFree_v2", release);
    file_.find("cuMemAllocHost_v2", allocate_host);
    file_.find("cuMemFreeHost", release_host);
    file_.find("cuMemGetInfo_v2", memory_info);
    file_.find("cuMemcpyHtoDAsync_v2", to_device);
    file_.find("cuMemcpyDtoHAsync_v2", to_host);
    file_.find("cuMemcpyDtoDAsync_v2", in_device);
    file_.find("cuMemsetD8Async", fill);
    file_.find("cuStreamCreate", make_stream);
    file_.find("cuStreamSynchronize", finish);
    file_.find("cuStreamBeginCapture_v2", begin_capture);
    file_.find("cuStreamEndCapture", end_capture);
    file_.find("cuStreamWaitEvent", wait_event);
    file_.find("cuGraphInstantiateWithFlags", instantiate);
    file_.find("cuGraphLaunch", launch_graph);
    file_.find("cuGraphUpload", upload_graph);
    file_.find("cuGraphDestroy", destroy_graph);
    file_.find("cuGraphExecDestroy", destroy_exec);
    file_.find("cuEventCreate", make_event);
    file_.find("cuEventRecord", record);
    // The header of CUDA 13 means the second version of it, which counts through the same arguments.
    file_.find(CUDA_VERSION >= 13000 ? "cuEventElapsedTime_v2" : "cuEventElapsedTime", elapsed);
    file_.find("cuModuleLoadData", load_module);
    file_.find("cuModuleGetFunction", get_function);
    file_.find("cuLaunchKernel", launch);
    file_.find("cuLaunchKernelEx", launch_ex);
  }

  void check(CUresult code, const char* what) const {
    if (code == CUDA_SUCCESS) return;
    const char* text = nullptr;
    if (error_name(code, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown";
    throw std::runtime_error(std::string(what) + " failed (" + text + ")");
  }

 private:
  library file_;
};

inline double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> list) {
  if (list.empty()) return 0;
  std::ranges::sort(list);
  return list[list.size() / 2];
}

/// The first device, with one stream and two events, and what is asked of it.
class session {
 public:
  driver cu;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;

  session() {
    cu.check(cu.init(0), "starting the driver");
    cu.check(cu.device(&device, 0), "opening the first device");
    cu.check(cu.retain(&context, device), "making a context");
    cu.check(cu.set_current(context), "using the context");
    stream = new_stream();
    begin = new_event();
    end = new_event();
  }

  CUstream new_stream() const {
    CUstream made = nullptr;
    cu.check(cu.make_stream(&made, CU_STREAM_NON_BLOCKING), "making a stream");
    return made;
  }
  CUevent new_event() const {
    CUevent made = nullptr;
    cu.check(cu.make_event(&made, CU_EVENT_DEFAULT), "making an event");
    return made;
  }
  int attribute(CUdevice_attribute which) const {
    int value = 0;
    cu.check(cu.attribute(&value, which, device), "reading an attribute");
    return value;
  }
  void finish() const { cu.check(cu.finish(stream), "waiting for the device"); }

  /// Microseconds that the device takes for what `ask` puts into the stream, by events.
  double time_us(const std::function<void()>& ask) const {
    cu.check(cu.record(begin, stream), "recording an event");
    ask();
    cu.check(cu.record(end, stream), "recording an event");
    finish();
    float ms = 0;
    cu.check(cu.elapsed(&ms, begin, end), "reading a time");
    return 1000.0 * static_cast<double>(ms);
  }

  /// What `ask` puts into the stream, as a graph.
  CUgraphExec capture(const std::function<void()>& ask) const {
    CUgraph graph = nullptr;
    CUgraphExec made = nullptr;
    cu.check(cu.begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "beginning a capture");
    try {
      ask();
    } catch (...) {
      if (cu.end_capture(stream, &graph) == CUDA_SUCCESS && graph != nullptr) (void)cu.destroy_graph(graph);
      throw;
    }
    cu.check(cu.end_capture(stream, &graph), "ending a capture");
    cu.check(cu.instantiate(&made, graph, 0), "making a graph ready");
    (void)cu.destroy_graph(graph);
    cu.check(cu.upload_graph(made, stream), "uploading a graph");
    finish();
    return made;
  }

  struct times {
    double median_us = 0, least_us = 0;
  };
  /// What one of `count` calls of `ask` takes inside a graph of all of them: over `replays` replays, after two more.
  times time_in_graph(const std::function<void()>& ask, int count = 20, int replays = 9) const {
    CUgraphExec graph = capture([&] {
      for (int i = 0; i < count; ++i) ask();
    });
    std::vector<double> list;
    for (int i = -2; i < replays; ++i) {
      const double us = time_us([&] { cu.check(cu.launch_graph(graph, stream), "starting a graph"); });
      if (i >= 0) list.push_back(us / count);
    }
    (void)cu.destroy_exec(graph);
    return {median(list), *std::ranges::min_element(list)};
  }
};

/// Memory of the device for as long as it lives, filled with the bytes of small random floats if wanted.
class memory {
 public:
  memory(const session& s, std::size_t bytes, bool filled = true) : s_(s), bytes_(bytes) {
    s.cu.check(s.cu.allocate(&at_, std::max<std::size_t>(bytes, 256)), "allocating memory");
    if (!filled) return;
    // 1 MB of numbers, repeated: of two bytes each a bfloat16 of the same size, so that they serve both types.
    std::vector<std::uint16_t> block(std::min<std::size_t>(bytes, 1U << 20) / 2);
    std::uint32_t state = 12345;
    for (std::uint16_t& x : block) {
      state = state * 1664525U + 1013904223U;
      x = static_cast<std::uint16_t>(0x3E00U + (state >> 23) % 0x180U + ((state >> 16) & 1U) * 0x8000U);
    }
    for (std::size_t done = 0; done < bytes; done += block.size() * 2)
      s.cu.check(s.cu.to_device(at_ + done, block.data(), std::min(block.size() * 2, bytes - done), s.stream),
                 "a copy");
    s.finish();
  }
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() { (void)s_.cu.release(at_); }
  CUdeviceptr at() const { return at_; }
  void* pointer() const { return reinterpret_cast<void*>(at_); }
  std::size_t bytes() const { return bytes_; }

 private:
  const session& s_;
  CUdeviceptr at_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace gpu
