// The OpenBLAS library, opened while the program runs.
//
// It is not linked, for two reasons: it chooses its kernels while it loads, and 0.3.21 takes those of Haswell on
// processors of other makers that it does not know; and its builds on plain threads and on OpenMP have the same soname,
// of which the loader would take the first it finds.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <collage/backends/impl/team.hpp>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// What this adapter calls, and what it says of itself. Enumerators of CBLAS are plain ints: the header of another
/// version, or none, may be installed.
struct openblas_library {
  static constexpr int row_major = 101;
  static constexpr int as_is = 111;
  static constexpr int transposed = 112;

  void (*cblas_sgemm)(int order, int a_form, int b_form, int m, int n, int k, float alpha, const float* a, int a_step,
                      const float* b, int b_step, float beta, float* c, int c_step) = nullptr;
  void (*cblas_sgemv)(int order, int a_form, int m, int n, float alpha, const float* a, int a_step, const float* x,
                      int x_step, float beta, float* y, int y_step) = nullptr;
  int most_threads = 64;  ///< that may be in it at one time
  std::string version, details;
  std::string reason;  ///< empty where it is available

  /// Products on the calling thread alone: they are divided among our threads, by us. Outside of a parallel region the library
  /// would take as many as OpenMP's setting says; where these are not as many as the last time, it gives away buffers that
  /// are in use in other threads of the process, and their results are wrong.
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

/// The environment variable that says which kernels to take, set while the library loads.
class chosen_core_type {
 public:
  chosen_core_type() {
#if defined(__x86_64__)
    // Intel's processors it knows by name; for the others AVX-512 has to be asked for.
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

/// Opens one file; answers an empty reason on success. The library then stays open until the program ends.
inline openblas_library open_openblas(const std::string& file) {
  openblas_library library;
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
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

inline openblas_library load_openblas() {
  const chosen_core_type core_type;
  openblas_library first_failure;
  for (const std::string& file : openblas_files()) {
    openblas_library library = open_openblas(file);
    if (library.reason.empty()) return library;
    if (first_failure.reason.empty()) first_failure = std::move(library);
  }
  return first_failure;
}

/// Loaded when first asked for.
inline const openblas_library& openblas() {
  static const openblas_library library = load_openblas();
  return library;
}

}  // namespace
}  // namespace collage::inline v0::detail::host
