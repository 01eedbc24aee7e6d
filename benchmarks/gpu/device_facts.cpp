// What a CUDA device and its driver cost:  device_facts [--section NAME]... [--libraries FOLDER]
//
// Measures copies, launches, graphs, compiling at run time, the device's own memory, and products of cuBLASLt. Each result is a
// line of words and numbers separated by tabs, so that it can be read without the device. Times are microseconds, medians.
// Sections: device, copies, launches, graphs, compiler, bandwidth, products; all of them without --section. What fails is a line
// that begins with "failed", and the rest goes on. Exit status 2 for a wrong argument, 1 where there is no device.
#include "device.hpp"
#include "device_products.hpp"

#include <nvrtc.h>

#include <array>
#include <cstring>
#include <iostream>
#include <memory>

namespace gpu {
namespace {

/// A kernel that does nothing, one that waits for `ticks` of the clock, and one that adds.
constexpr const char* source = R"(
extern "C" __global__ void nothing() {}
extern "C" __global__ void wait(long long ticks) {
  const long long from = clock64();
  while (clock64() - from < ticks) {}
}
extern "C" __global__ void add_relu(const float4* a, const float4* b, float4* c, unsigned count) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const float4 x = a[i], y = b[i];
    c[i] = make_float4(fmaxf(x.x + y.x, 0.f), fmaxf(x.y + y.y, 0.f), fmaxf(x.z + y.z, 0.f), fmaxf(x.w + y.w, 0.f));
  }
}
extern "C" __global__ void add_relu_early(const float4* a, const float4* b, float4* c, unsigned count) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const float4 x = a[i], y = b[i];
    c[i] = make_float4(fmaxf(x.x + y.x, 0.f), fmaxf(x.y + y.y, 0.f), fmaxf(x.z + y.z, 0.f), fmaxf(x.w + y.w, 0.f));
  }
}
)";

struct compiler {
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetCUBINSize) size = nullptr;
  decltype(&nvrtcGetCUBIN) binary = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcVersion) version = nullptr;

  explicit compiler(const std::string& folder)
      : file_({folder + "libnvrtc.so.13", folder + "libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so.12"}) {
    file_.find("nvrtcCreateProgram", create);
    file_.find("nvrtcCompileProgram", compile);
    file_.find("nvrtcGetCUBINSize", size);
    file_.find("nvrtcGetCUBIN", binary);
    file_.find("nvrtcDestroyProgram", destroy);
    file_.find("nvrtcVersion", version);
  }

  /// The text as code for compute capability `capability`, such as 90. Errors: what nvrtc says, as a number.
  std::vector<char> code_of(const std::string& text, int capability) const {
    nvrtcProgram program = nullptr;
    const std::string architecture = "--gpu-architecture=sm_" + std::to_string(capability);
    const std::array<const char*, 2> options{architecture.c_str(), "--std=c++17"};
    if (create(&program, text.c_str(), "facts.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS)
      throw std::runtime_error("nvrtc makes no program");
    const nvrtcResult result = compile(program, static_cast<int>(options.size()), options.data());
    std::size_t bytes = 0;
    std::vector<char> made;
    if (result == NVRTC_SUCCESS && size(program, &bytes) == NVRTC_SUCCESS) {
      made.resize(bytes);
      if (binary(program, made.data()) != NVRTC_SUCCESS) made.clear();
    }
    (void)destroy(&program);
    if (made.empty()) throw std::runtime_error("nvrtc fails with " + std::to_string(static_cast<int>(result)));
    return made;
  }

 private:
  library file_;
};

struct kernels {
  CUfunction nothing = nullptr, wait = nullptr, add_relu = nullptr, add_relu_early = nullptr;

  kernels(const session& s, const compiler& c) {
    const int capability = 10 * s.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                           s.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    const std::vector<char> code = c.code_of(source, capability);
    CUmodule module = nullptr;
    s.cu.check(s.cu.load_module(&module, code.data()), "loading a module");
    for (const auto& [name, function] :
         {std::pair{"nothing", &nothing}, std::pair{"wait", &wait}, std::pair{"add_relu", &add_relu},
          std::pair{"add_relu_early", &add_relu_early}})
      s.cu.check(s.cu.get_function(function, module, name), "finding a kernel");
  }
};

struct setup {
  session s;
  std::string folder;
  std::unique_ptr<compiler> nvrtc;
  std::unique_ptr<kernels> code;

  const kernels& with_kernels() {
    if (nvrtc == nullptr) nvrtc = std::make_unique<compiler>(folder);
    if (code == nullptr) code = std::make_unique<kernels>(s, *nvrtc);
    return *code;
  }
  void run_nothing(CUstream stream) const {
    s.cu.check(s.cu.launch(code->nothing, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr), "starting a kernel");
  }
  /// Adds `count` groups of four floats; `early` lets it begin before the kernel in front of it has ended.
  void run_add(CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, unsigned count, bool early = false) const {
    const unsigned blocks = std::min(1056U, (count + 255) / 256);
    std::array<void*, 4> arguments{&a, &b, &c, &count};
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig how{};
    how.gridDimX = blocks;
    how.gridDimY = how.gridDimZ = how.blockDimY = how.blockDimZ = 1;
    how.blockDimX = 256;
    how.hStream = s.stream;
    how.attrs = &attribute;
    how.numAttrs = early ? 1 : 0;
    s.cu.check(s.cu.launch_ex(&how, early ? code->add_relu_early : code->add_relu, arguments.data(), nullptr),
               "starting a kernel");
  }
};

void say(const std::string& line) { std::cout << line << std::endl; }

/// Microseconds of the host for each of `count` calls, the median of `rounds`; `after` is not counted.
template <class Call, class After>
double host_us(int count, int rounds, Call call, After after) {
  std::vector<double> list;
  for (int r = -1; r < rounds; ++r) {
    const double from = now_us();
    for (int i = 0; i < count; ++i) call();
    const double us = (now_us() - from) / count;
    after();
    if (r >= 0) list.push_back(us);
  }
  return median(list);
}

std::string number(double x) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", x);
  return text.data();
}

void measure_device(setup& u) {
  std::array<char, 256> name{};
  int version = 0;
  std::size_t free = 0, all = 0;
  u.s.cu.check(u.s.cu.name(name.data(), name.size(), u.s.device), "naming the device");
  u.s.cu.check(u.s.cu.version(&version), "asking the driver");
  u.s.cu.check(u.s.cu.memory_info(&free, &all), "asking for memory");
  say(std::string("device\tname\t") + name.data());
  say("device\tdriver is for CUDA\t" + std::to_string(version));
  say("device\tmemory, MB: free, all\t" + std::to_string(free >> 20) + "\t" + std::to_string(all >> 20));
  for (const auto& [what, which] :
       {std::pair{"capability, major", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        std::pair{"capability, minor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        std::pair{"multiprocessors", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        std::pair{"clock, kHz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
        std::pair{"second-level cache, bytes", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
        std::pair{"shared memory of a block, bytes", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
        std::pair{"registers of a multiprocessor", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
        std::pair{"copy engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
        std::pair{"reads pageable memory of the host", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS}})
    say(std::string("device\t") + what + "\t" + std::to_string(u.s.attribute(which)));
}

void measure_copies(setup& u) {
  const driver& cu = u.s.cu;
  for (const std::size_t bytes : {4UL, 4096UL, 65536UL, 602112UL, 4UL << 20, 64UL << 20}) {
    const memory there(u.s, bytes), other(u.s, bytes);
    std::vector<char> pageable(bytes, 1);
    void* pinned = nullptr;
    cu.check(cu.allocate_host(&pinned, bytes), "allocating pinned memory");
    std::memset(pinned, 1, bytes);
    const int count = bytes > (1UL << 20) ? 5 : 50;
    for (const auto& [kind, host] :
         {std::pair{"pageable", static_cast<void*>(pageable.data())}, std::pair{"pinned", pinned}}) {
      const double in = host_us(
          count, 5,
          [&, h = host] {
            cu.check(cu.to_device(there.at(), h, bytes, u.s.stream), "a copy");
            u.s.finish();
          },
          [] {});
      const double out = host_us(
          count, 5,
          [&, h = host] {
            cu.check(cu.to_host(h, there.at(), bytes, u.s.stream), "a copy");
            u.s.finish();
          },
          [] {});
      const double asked = host_us(
          count, 5, [&, h = host] { cu.check(cu.to_device(there.at(), h, bytes, u.s.stream), "a copy"); },
          [&] { u.s.finish(); });
      say("copies\t" + std::string(kind) + ", bytes, there, back, asked for alone\t" + std::to_string(bytes) + "\t" +
          number(in) + "\t" + number(out) + "\t" + number(asked));
    }
    const auto in_device =
        u.s.time_in_graph([&] { cu.check(cu.in_device(other.at(), there.at(), bytes, u.s.stream), "a copy"); });
    say("copies\tin the device within a graph, bytes\t" + std::to_string(bytes) + "\t" + number(in_device.median_us));
    (void)cu.release_host(pinned);
  }
}

void measure_launches(setup& u) {
  (void)u.with_kernels();
  const driver& cu = u.s.cu;
  say("launches\tasked for, host\t" +
      number(host_us(500, 9, [&] { u.run_nothing(u.s.stream); }, [&] { u.s.finish(); })));
  say("launches\tstarted and waited for, host\t" + number(host_us(
                                                       200, 9,
                                                       [&] {
                                                         u.run_nothing(u.s.stream);
                                                         u.s.finish();
                                                       },
                                                       [] {})));
  say("launches\twaiting for an empty stream, host\t" + number(host_us(1000, 9, [&] { u.s.finish(); }, [] {})));
  say("launches\trecording an event, host\t" +
      number(host_us(
          500, 9, [&] { cu.check(cu.record(u.s.begin, u.s.stream), "recording an event"); }, [&] { u.s.finish(); })));
  for (const int count : {0, 1, 10, 100, 1000}) {
    std::vector<double> list;
    for (int r = 0; r < 15; ++r)
      list.push_back(u.s.time_us([&] {
        for (int i = 0; i < count; ++i) u.run_nothing(u.s.stream);
      }));
    say("launches\tempty kernels in a row between two events, device\t" + std::to_string(count) + "\t" +
        number(median(list)));
  }
}

/// Chains of `count` kernels in `lines` streams that begin and end together, as one graph.
CUgraphExec side_by_side(setup& u, int lines, const std::function<void(CUstream)>& ask, int count) {
  const driver& cu = u.s.cu;
  std::vector<CUstream> streams;
  for (int i = 1; i < lines; ++i) streams.push_back(u.s.new_stream());
  const CUevent fork = u.s.new_event();
  return u.s.capture([&] {
    cu.check(cu.record(fork, u.s.stream), "recording an event");
    for (const CUstream other : streams) cu.check(cu.wait_event(other, fork, 0), "waiting for an event");
    for (int i = 0; i < count; ++i) {
      ask(u.s.stream);
      for (const CUstream other : streams) ask(other);
    }
    for (const CUstream other : streams) {
      const CUevent join = u.s.new_event();
      cu.check(cu.record(join, other), "recording an event");
      cu.check(cu.wait_event(u.s.stream, join, 0), "waiting for an event");
    }
  });
}

void measure_graphs(setup& u) {
  (void)u.with_kernels();
  const driver& cu = u.s.cu;
  const auto replayed = [&](CUgraphExec graph) {
    std::vector<double> device;
    for (int r = -2; r < 15; ++r) {
      const double us = u.s.time_us([&] { cu.check(cu.launch_graph(graph, u.s.stream), "starting a graph"); });
      if (r >= 0) device.push_back(us);
    }
    return median(device);
  };
  for (const int count : {1, 2, 10, 100, 1000}) {
    const double from = now_us();
    CUgraphExec graph = u.s.capture([&] {
      for (int i = 0; i < count; ++i) u.run_nothing(u.s.stream);
    });
    const double made = now_us() - from;
    const double device = replayed(graph);
    const double host = host_us(
        20, 9, [&] { cu.check(cu.launch_graph(graph, u.s.stream), "starting a graph"); }, [&] { u.s.finish(); });
    const double both = host_us(
        20, 9,
        [&] {
          cu.check(cu.launch_graph(graph, u.s.stream), "starting a graph");
          u.s.finish();
        },
        [] {});
    say("graphs\tempty kernels in a row: count, making, replay by events, asked for, started and waited for\t" +
        std::to_string(count) + "\t" + number(made) + "\t" + number(device) + "\t" + number(host) + "\t" +
        number(both));
    (void)cu.destroy_exec(graph);
  }
  long long ticks = 10000;
  std::array<void*, 1> arguments{&ticks};
  const auto wait = [&](CUstream stream) {
    cu.check(cu.launch(u.code->wait, 8, 1, 1, 32, 1, 1, 0, stream, arguments.data(), nullptr), "starting a kernel");
  };
  for (const int lines : {1, 2, 4, 8}) {
    say("graphs\tchains of 32 empty kernels side by side: chains, replay\t" + std::to_string(lines) + "\t" +
        number(replayed(side_by_side(u, lines, [&](CUstream stream) { u.run_nothing(stream); }, 32))));
    say("graphs\tchains of 32 kernels of 10,000 ticks side by side: chains, replay\t" + std::to_string(lines) + "\t" +
        number(replayed(side_by_side(u, lines, wait, 32))));
  }
  for (const unsigned elements : {1024U, 65536U, 262144U, 1048576U, 4194304U}) {
    const memory a(u.s, elements * 4), b(u.s, elements * 4), c(u.s, elements * 4);
    for (const bool early : {false, true})
      say(std::string("graphs\tadd and relu, each reads what the one before wrote") +
          (early ? ", begun before that has ended" : "") + ": floats, each\t" + std::to_string(elements) + "\t" +
          number(u.s.time_in_graph(
                        [&] {
                          u.run_add(a.at(), b.at(), c.at(), elements / 4, early);
                          u.run_add(c.at(), b.at(), a.at(), elements / 4, early);
                        },
                        20)
                     .median_us /
                 2));
  }
}

void measure_compiler(setup& u) {
  (void)u.with_kernels();
  int major = 0, minor = 0;
  (void)u.nvrtc->version(&major, &minor);
  say("compiler\tnvrtc\t" + std::to_string(major) + "." + std::to_string(minor));
  const int capability = 10 * u.s.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                         u.s.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  std::string chain =
      "extern \"C\" __global__ void chain(const float* a, float* b, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float x = a[i];\n";
  for (int i = 0; i < 40; ++i) chain += "  x = erff(x) * tanhf(x) + expf(x * 0.5f);\n";
  chain += "  b[i] = x;\n}\n";
  for (const auto& [name, text] : {std::pair{"four small kernels", std::string(source)},
                                   std::pair{"one kernel of 120 special functions", chain}}) {
    std::vector<char> code;
    const double compiled = host_us(1, 5, [&, t = text] { code = u.nvrtc->code_of(t, capability); }, [] {});
    const double loaded = host_us(
        1, 5,
        [&] {
          CUmodule module = nullptr;
          u.s.cu.check(u.s.cu.load_module(&module, code.data()), "loading a module");
        },
        [] {});
    say("compiler\t" + std::string(name) + ": compiling, loading, bytes\t" + number(compiled) + "\t" + number(loaded) +
        "\t" + std::to_string(code.size()));
  }
}

void measure_bandwidth(setup& u) {
  (void)u.with_kernels();
  for (const std::size_t elements : {16384UL, 262144UL, 1048576UL, 4194304UL, 16777216UL, 134217728UL}) {
    const memory a(u.s, elements * 4), b(u.s, elements * 4), c(u.s, elements * 4);
    const auto t = u.s.time_in_graph([&] { u.run_add(a.at(), b.at(), c.at(), static_cast<unsigned>(elements / 4)); });
    say("bandwidth\tadd and relu: floats, each, GB/s\t" + std::to_string(elements) + "\t" + number(t.median_us) + "\t" +
        number(12.0 * static_cast<double>(elements) / t.median_us / 1000));
  }
}

}  // namespace
}  // namespace gpu

int main(int argc, char** argv) {
  using namespace gpu;
  const std::vector<std::pair<std::string, std::function<void(setup&)>>> sections{
      {"device", measure_device},
      {"copies", measure_copies},
      {"launches", measure_launches},
      {"graphs", measure_graphs},
      {"compiler", measure_compiler},
      {"bandwidth", measure_bandwidth},
      {"products", [](setup& u) { measure_products(u.s, u.folder); }}};
  std::vector<std::string> asked;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool is_section = argument == "--section";
    const auto is_known = [&](const std::string& name) {
      return std::ranges::any_of(sections, [&](const auto& s) { return s.first == name; });
    };
    if (i + 1 == argc || (!is_section && argument != "--libraries") || (is_section && !is_known(argv[i + 1]))) {
      std::cerr
          << "device_facts: '" << argument << "' is not understood: device_facts [--section NAME]... "
          << "[--libraries FOLDER]; a NAME is one of device, copies, launches, graphs, compiler, bandwidth, products\n";
      return 2;
    }
    if (is_section) asked.emplace_back(argv[++i]);
    else folder = std::string(argv[++i]) + "/";
  }
  try {
    setup u;
    u.folder = folder;
    bool failed = false;
    for (const auto& [name, measure] : sections) {
      if (!asked.empty() && std::ranges::find(asked, name) == asked.end()) continue;
      const double from = now_us();
      try {
        measure(u);
      } catch (const std::exception& e) {
        say("failed\t" + name + "\t" + e.what());
        failed = true;
      }
      say("section\t" + name + ", seconds\t" + number((now_us() - from) / 1e6));
    }
    return failed ? 1 : 0;
  } catch (const std::exception& e) {
    std::cerr << "device_facts: " << e.what() << "\n";
    return 1;
  }
}
