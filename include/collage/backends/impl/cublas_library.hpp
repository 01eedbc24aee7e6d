// The two libraries of cuBLAS, opened at run time.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>

#include <collage/backends/impl/cuda_driver.hpp>
#include <collage/error.hpp>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// The functions that this adapter calls. Each is looked up by the versioned name that the headers give it, as in cublasCreate_v2.
struct cublas_library {
  // cuBLASLt
  decltype(&cublasLtCreate) create_lt = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) find_algorithms = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_operation = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_matrix = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_matrix = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_matrix = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtGetStatusName) status_name = nullptr;
  // cuBLAS
  decltype(&cublasCreate) create = nullptr;
  decltype(&cublasDestroy) destroy = nullptr;
  decltype(&cublasSetStream) set_stream = nullptr;
  decltype(&cublasSgemmStridedBatched) sgemm = nullptr;

  std::string version, details;
  std::string reason;  ///< why the library is not available; empty if it is
};

/// The folders that are searched for both libraries. An empty name stands for the loader's own search, and is last.
inline std::vector<std::string> cuda_folders() {
  std::vector<std::string> list;
  if (const char* asked = std::getenv("COLLAGE_CUDA_LIBRARIES"); asked != nullptr && *asked != '\0')
    return {std::string(asked) + "/"};
#ifdef COLLAGE_CUDA_FOLDER
  list.emplace_back(COLLAGE_CUDA_FOLDER "/");
#endif
  list.emplace_back();
  return list;
}

struct cublas_files {
  void *lt = nullptr, *classic = nullptr;
  std::string lt_file, file;
};

/// Opens both libraries in one version of CUDA, the newest first, but none that is newer than the driver's.
inline cublas_files open_cublas_files(int driver_cuda) {
  cublas_files found;
  for (const std::string& folder : cuda_folders())
    for (const int version : {13, 12}) {
      if (version > driver_cuda / 1000) continue;
      found.lt_file = folder + "libcublasLt.so." + std::to_string(version);
      found.file = folder + "libcublas.so." + std::to_string(version);
      found.lt = dlopen(found.lt_file.c_str(), RTLD_NOW | RTLD_LOCAL);
      found.classic = found.lt == nullptr ? nullptr : dlopen(found.file.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (found.classic != nullptr) return found;
    }
  return found;
}

inline cublas_library open_cublas() {
  cublas_library library;
  if (const cuda_driver& driver = the_cuda_driver(); !driver.reason.empty()) {
    library.reason = driver.reason;
    return library;
  }
  const auto [lt, classic, lt_file, file] = open_cublas_files(the_cuda_driver().cuda);
  if (classic == nullptr) {
    library.reason = std::string(the_cuda_driver().cuda < 13000 ? "libcublasLt and libcublas of CUDA 12"
                                                                : "libcublasLt and libcublas of CUDA 12 or 13") +
                     " could not be opened, and the driver is for " + the_cuda_driver().version +
                     ": install the CUDA toolkit, or set COLLAGE_CUDA_LIBRARIES to the folder that has both";
    return library;
  }
  const auto find = [&](void* handle, const std::string& in, const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr && library.reason.empty())
      library.reason = in + " has no " + name + ": set COLLAGE_CUDA_LIBRARIES to the folder of another version";
  };
  decltype(&cublasLtGetVersion) get_version = nullptr;
  find(lt, lt_file, "cublasLtCreate", library.create_lt);
  find(lt, lt_file, "cublasLtMatmul", library.matmul);
  find(lt, lt_file, "cublasLtMatmulAlgoGetHeuristic", library.find_algorithms);
  find(lt, lt_file, "cublasLtMatmulDescCreate", library.create_operation);
  find(lt, lt_file, "cublasLtMatmulDescDestroy", library.destroy_operation);
  find(lt, lt_file, "cublasLtMatmulDescSetAttribute", library.set_operation);
  find(lt, lt_file, "cublasLtMatrixLayoutCreate", library.create_matrix);
  find(lt, lt_file, "cublasLtMatrixLayoutDestroy", library.destroy_matrix);
  find(lt, lt_file, "cublasLtMatrixLayoutSetAttribute", library.set_matrix);
  find(lt, lt_file, "cublasLtMatmulPreferenceCreate", library.create_preference);
  find(lt, lt_file, "cublasLtMatmulPreferenceDestroy", library.destroy_preference);
  find(lt, lt_file, "cublasLtMatmulPreferenceSetAttribute", library.set_preference);
  find(lt, lt_file, "cublasLtGetStatusName", library.status_name);
  find(lt, lt_file, "cublasLtGetVersion", get_version);
  find(classic, file, "cublasCreate_v2", library.create);
  find(classic, file, "cublasDestroy_v2", library.destroy);
  find(classic, file, "cublasSetStream_v2", library.set_stream);
  find(classic, file, "cublasSgemmStridedBatched", library.sgemm);
  if (!library.reason.empty()) return library;
  const std::size_t number = get_version();  // 130002: 13.0.2
  library.version =
      std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." + std::to_string(number % 100);
  library.details = the_cuda_driver().details;
  constexpr int least = 75;  // Turing
  if (number >= 130000 && the_cuda_driver().capability < least)
    library.reason = "cuBLAS " + library.version +
                     " is for compute capability 7.5 and above, and this is an older device (" + library.details +
                     "): set COLLAGE_CUDA_LIBRARIES to the folder of CUDA 12";
  return library;
}

/// Opened at the first call and never closed, like the driver.
inline const cublas_library& the_cublas() {
  static const cublas_library& library = *new cublas_library(open_cublas());
  return library;
}

inline void check_cublas(cublasStatus_t code, const char* what) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  const cublas_library& library = the_cublas();
  throw error(code == CUBLAS_STATUS_NOT_SUPPORTED ? error_kind::unsupported : error_kind::failure,
              std::string(what) + " failed (" + library.status_name(code) + ")", "cublas");
}

/// One handle, which the library lets all threads share.
inline cublasLtHandle_t lt_handle() {
  static const cublasLtHandle_t handle = [] {
    const cuda_scope scope(use_cuda());
    cublasLtHandle_t made = nullptr;
    check_cublas(the_cublas().create_lt(&made), "starting cuBLASLt");
    return made;
  }();
  return handle;
}

/// The calling thread's handle of the classic library, which works on the thread's stream.
class cublas_handle {
 public:
  cublas_handle() {
    const cuda_scope scope(use_cuda());
    check_cublas(the_cublas().create(&handle_), "starting cuBLAS");
    check_cublas(the_cublas().set_stream(handle_, stream_of_this_thread()), "setting the stream of cuBLAS");
  }
  cublas_handle(const cublas_handle&) = delete;
  cublas_handle& operator=(const cublas_handle&) = delete;
  ~cublas_handle() {
    release_on_device(the_cuda_driver(), [this] { (void)the_cublas().destroy(handle_); });
  }
  cublasHandle_t get() const { return handle_; }

 private:
  cublasHandle_t handle_ = nullptr;
};

inline cublasHandle_t classic_handle() {
  thread_local const cublas_handle handle;
  return handle.get();
}

}  // namespace
}  // namespace collage::inline v0::detail::host
