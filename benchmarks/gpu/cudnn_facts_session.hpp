// For cudnn_facts: what is asked for, the device and cuDNN's handle, and the lines that are printed.
#pragma once

#include "cudnn_facts_api.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace facts {

using clock_type = std::chrono::steady_clock;

inline double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

struct options {
  std::string cudnn;
  std::string only;
  double seconds = 60;
  std::size_t engines = 8;
  bool dry = false;
};

// The device of a dry run: the properties of an H100 that cuDNN asks for.
constexpr std::string_view h100_properties =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
    R"("multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
    R"("maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
    R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
    R"("supportCoopLaunch":1,"smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,)"
    R"("deviceName":"NVIDIA H100 80GB HBM3","deviceVer":900,"driverVer":13000,"totalGlobalMem":85520809984,)"
    R"("cudaDeviceId":0})";

/// One process's device, handle and stream, and how far it is in its section.
struct session {
  options asked;
  clock_type::time_point deadline;
  volatile int* begun = nullptr;  ///< cases begun in this section, shared with the parent
  int seen = 0;
  std::optional<gpu::session> device;    ///< none in a dry run
  std::optional<descriptor> properties;  ///< in a dry run, in place of the handle
  cudnnHandle_t handle = nullptr;
  std::unique_ptr<gpu::memory> workspace;

  /// Opens cuDNN, and the device or what stands for it. Errors: std::runtime_error.
  void open() {
    dnn.open(asked.cudnn);
    if (asked.dry) {
      properties.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
      std::vector<char> text(h100_properties.begin(), h100_properties.end());
      text.push_back('\0');
      properties->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, text).finalize("finalize the device's properties");
      return;
    }
    device.emplace();
    dnn.check(dnn.make_handle(&handle), "make a handle");
    dnn.check(dnn.set_stream(handle, device->stream), "set the stream");
  }
  bool in_time() const { return clock_type::now() < deadline; }
  /// Whether the next case is to be measured: not those that a process which died had begun.
  bool next_case() {
    if (!in_time() || seen++ < *begun) return false;
    *begun = seen;
    return true;
  }
  /// Throws where an error before has made the context useless.
  void expect_context() const {
    if (device) device->cu.check(device->cu.finish_all(), "the context is lost: waiting");
  }
  /// Memory of at least `bytes` for a plan.
  void* workspace_of(std::int64_t bytes) {
    const auto needed = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
    if (needed == 0) return workspace ? workspace->pointer() : nullptr;
    if (workspace && needed <= workspace->bytes()) return workspace->pointer();
    workspace.reset();
    workspace = std::make_unique<gpu::memory>(*device, needed, false);
    return workspace->pointer();
  }
};

struct row {
  std::string kind, name, layout, precision, fusion;
};

struct timing {
  double median = 0, least = 0;
  std::string note;
};

inline void print(const row& r, std::int64_t engine, std::int64_t workspace, const timing* t, std::string note) {
  for (char& c : note)
    if (c == ',' || c == '\n' || c == '\r') c = ';';
  std::string times = "-,-";
  if (t != nullptr) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.2f,%.2f", t->median, t->least);
    times = text.data();
  }
  std::printf("%s,%s,%s,%s,%s,%lld,%lld,%s,%s\n", r.kind.c_str(), r.name.c_str(), r.layout.c_str(), r.precision.c_str(),
              r.fusion.c_str(), static_cast<long long>(engine), static_cast<long long>(workspace), times.c_str(),
              note.c_str());
  std::fflush(stdout);
}

inline std::string fixed(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

/// Runs one case. A failure of it is printed; a lost context ends the process, and the parent starts the next.
template <typename F>
void guarded(session& s, const row& r, F&& act) {
  if (!s.next_case()) return;
  try {
    act();
  } catch (const std::runtime_error& e) {
    print(r, -1, -1, nullptr, std::string("FAILED: ") + e.what());
    if (s.device && s.device->cu.finish_all() != CUDA_SUCCESS) _exit(3);
  }
}

inline void print_versions(session& s) {
  std::printf("# cuDNN %zu, headers %d.%d.%d\n", dnn.version(), CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL);
  if (!s.device) return;
  const gpu::session& on = *s.device;
  std::array<char, 128> name{};
  int driver = 0;
  on.cu.check(on.cu.name(name.data(), static_cast<int>(name.size()), on.device), "naming the device");
  on.cu.check(on.cu.version(&driver), "asking the driver");
  std::printf("# device %s, capability %d.%d, driver %d\n", name.data(),
              on.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
              on.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), driver);
  descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, std::int32_t{0}).finalize("finalize the device's properties");
  const std::int64_t size = properties.count(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR);
  const auto text = properties.get<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, static_cast<std::size_t>(size));
  std::printf("# properties %.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace facts
