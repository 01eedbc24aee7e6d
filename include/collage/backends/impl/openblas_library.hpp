// The OpenBLAS library, opened at run time.
//
// There are two reasons not to link it. It chooses its kernels while it loads, and version 0.3.21 takes Haswell's on processors of
// other makers than Intel that it does not know. And its builds for plain threads and for OpenMP have the same soname, of which
// the loader would take the first that it finds.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <collage/backends/impl/team.hpp>
#include <collage/run/limits.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// The functions that this adapter calls, and the library's description of itself. Enumerators of CBLAS are plain ints, because
/// the header that is installed may be of another version, or none.
struct openblas_library {
  static constexpr int row_major = 101;
  static constexpr int as_is = 111;
  static constexpr int transposed = 112;

  void (*cblas_sgemm)(int order, int a_form, int b_form, int m, int n, int k, float alpha, const float* a, int a_step,
                      const float* b, int b_step, float beta, float* c, int c_step) = nullptr;
  void (*cblas_sgemv)(int order, int a_form, int m, int n, float alpha, const float* a, int a_step, const float* x,
                      int x_step, float beta, float* y, int y_step) = nullptr;
  int most_threads = 64;  ///< that may call it at the same time
  std::string version, details;
  std::string reason;  ///< why the library is not available; empty if it is

  /// Products run only on the calling thread: the adapter divides them among our threads. Outside of a parallel region the library
  /// would take as many threads as OpenMP's setting says. If that number differs from the last time, it gives away buffers that
  /// other threads of the process use, and their results are wrong.
  template <class... Arguments>
  void sgemm(Arguments... arguments) const {
    const team_scope alone(1);
    cblas_sgemm(arguments...);
  }
  template <class... Arguments>
  void sgemv(Arguments... arguments) const {
    const team_scope alone(1);
    cblas_sgemv(arguments...);
  }
};

/// Sets the environment variable that selects kernels, while the library loads.
class chosen_core_type {
 public:
  chosen_core_type() {
#if defined(__x86_64__)
    // The library knows Intel's processors by name. For others AVX-512 has to be requested.
    if (std::getenv(variable) != nullptr || __builtin_cpu_is("intel")) return;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
      set_ = setenv(variable, "SkylakeX", 0) == 0;
#endif
  }
  ~chosen_core_type() {
    if (set_) unsetenv(variable);
  }
  chosen_core_type(const chosen_core_type&) = delete;
  chosen_core_type& operator=(const chosen_core_type&) = delete;

 private:
  static constexpr const char* variable = "OPENBLAS_CORETYPE";
  bool set_ = false;
};

inline std::vector<std::string> openblas_files() {
  if (const char* file = std::getenv("COLLAGE_OPENBLAS"); file != nullptr && *file != '\0') return {file};
  return {
#ifdef COLLAGE_OPENBLAS_FILE
      COLLAGE_OPENBLAS_FILE,
#endif
      "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0",
      "/usr/lib/aarch64-linux-gnu/openblas-openmp/libopenblas.so.0",
      "libopenblaso.so.0",
      "libopenblas.so.0",
  };
}

/// How to open a library so that it takes the functions of OpenMP that this code has. The program may have made those of another
/// OpenMP library global since this code was loaded, and they would go first. The library would then not see that
/// it is called within a parallel region, and start threads of its own.
inline int opening_mode() {
#if !defined(__SANITIZE_ADDRESS__)  // which allows no such opening
  if (dlsym(RTLD_DEFAULT, "omp_in_parallel") != reinterpret_cast<void*>(&omp_in_parallel))
    return RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
  return RTLD_NOW | RTLD_LOCAL;
}

/// Opens one file. On success `reason` is empty, and the library stays open until the program ends.
inline openblas_library open_openblas(const std::string& file) {
  openblas_library library;
  void* const handle = dlopen(file.c_str(), opening_mode());
  if (handle == nullptr) {
    library.reason = "OpenBLAS could not be opened as " + file +
                     ": install libopenblas-openmp-dev or set COLLAGE_OPENBLAS to "
                     "the file of its OpenMP build";
    return library;
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr && library.reason.empty())
      library.reason = file + " has no " + name + ": set COLLAGE_OPENBLAS to the file of OpenBLAS's OpenMP build";
  };
  int (*get_parallel)() = nullptr;
  char* (*get_config)() = nullptr;
  char* (*get_core_name)() = nullptr;
  find("cblas_sgemm", library.cblas_sgemm);
  find("cblas_sgemv", library.cblas_sgemv);
  find("openblas_get_parallel", get_parallel);
  find("openblas_get_config", get_config);
  find("openblas_get_corename", get_core_name);
  if (!library.reason.empty()) return library;

  const std::string config = get_config();
  library.details = std::string("kernels ") + get_core_name() + "; " + config;
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  const std::size_t begin = config.find_first_of("0123456789");
  if (begin != std::string::npos) library.version = config.substr(begin, config.find(' ', begin) - begin);
  if (const std::size_t at = config.find("MAX_THREADS="); at != std::string::npos)
    library.most_threads = std::max(std::atoi(config.c_str() + at + 12), 1);
  if (get_parallel() != 2)
    library.reason = file +
                     " is not OpenBLAS's OpenMP build, and a second pool of threads would be in the way of the "
                     "first: install libopenblas-openmp-dev or set COLLAGE_OPENBLAS";
  else if (config.find("USE64BITINT") != std::string::npos)
    library.reason =
        file + " was built for 64-bit indices: set COLLAGE_OPENBLAS to the file of a build for 32-bit ones";
  return library;
}

/// Why the address space has no room for that many of the library's buffers; empty if it has, or is not limited. Without room, the
/// library requests a buffer again and again, and never returns.
inline std::string no_room_for_buffers(int count) {
  constexpr std::uint64_t mb = std::uint64_t{1} << 20U,
                          buffer = 128 * mb;  // in its builds for x86-64; others have less
  const std::uint64_t needed = static_cast<std::uint64_t>(std::max(count, 0)) * buffer;
  const std::optional<memory_limit> limit = process_limits().address_space_without_room_for(needed);
  if (!limit) return {};
  return "OpenBLAS needs " + std::to_string(needed / mb) + " MiB of address space for its buffers, but " +
         limit->set_by + " leaves " + std::to_string(limit->left() / mb) + " MiB";
}

inline openblas_library load_openblas() {
  // It allocates some while it loads, one for each thread that it might start.
  openblas_library without_room;
  without_room.reason = no_room_for_buffers(std::max(omp_get_num_procs(), omp_get_max_threads()));
  if (!without_room.reason.empty()) return without_room;
  const chosen_core_type core_type;
  openblas_library first_failure;
  for (const std::string& file : openblas_files()) {
    openblas_library library = open_openblas(file);
    if (library.reason.empty()) return library;
    if (first_failure.reason.empty()) first_failure = std::move(library);
  }
  return first_failure;
}

/// Loaded at the first call.
inline const openblas_library& openblas() {
  static const openblas_library library = load_openblas();
  return library;
}

}  // namespace
}  // namespace collage::inline v0::detail::host
