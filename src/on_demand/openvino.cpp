// The backend openvino for programs that contain every backend. Most of their runs need no OpenVINO, so its module is opened at
// the first use, and with it the library. If they were linked, they would cost each process some 5 MB.
#include <collage/backends/openvino.hpp>
#include <collage/error.hpp>

#include "openvino_module.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace collage::inline v0 {
namespace detail {
namespace {

struct opened_module {
  const openvino_module* functions = nullptr;
  std::string reason;  ///< why there are no functions
};

/// Opens the library in the folder that the environment names, so that the loader searches it nowhere else. Returns why that failed.
std::string open_chosen_library() {
  const char* const folder = secure_getenv("COLLAGE_OPENVINO");
  if (folder == nullptr || *folder == '\0') return {};
  const std::string file = std::string(folder) + "/" COLLAGE_OPENVINO_FILE;
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr ? std::string() : dlerror();
}

/// The module stays open until the process ends: kernels that it made may be called at any time.
opened_module open_openvino_module() {
  if (const std::string why = open_chosen_library(); !why.empty())
    return {nullptr, "OpenVINO could not be opened in the folder that COLLAGE_OPENVINO names (" + why +
                         "): name the folder of OpenVINO " COLLAGE_OPENVINO_VERSION
                         "'s libraries, or unset the variable"};
  // Only by its name, so that the loader searches the folders in which it also finds this program's linked libraries.
  void* const handle = dlopen(openvino_module_file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return {nullptr, std::string("OpenVINO could not be opened (") + (why != nullptr ? why : openvino_module_file) +
                         "): install " + openvino_module_file +
                         " beside the library, and OpenVINO " COLLAGE_OPENVINO_VERSION
                         ", with which collage was built (for Python: pip install openvino==" COLLAGE_OPENVINO_VERSION
                         "); COLLAGE_OPENVINO may name the folder of its libraries"};
  }
  const auto* const found = static_cast<const openvino_module*>(dlsym(handle, openvino_module_symbol));
  if (found == nullptr || found->version != std::string(module_version) ||
      found->compiler != std::string(module_compiler) || found->sizes != module_sizes)
    return {nullptr, std::string(openvino_module_file) + " is from another build of collage than this program (" +
                         module_version + "): install both from one build"};
  return {found, ""};
}

const opened_module& the_openvino_module() {
  static const opened_module opened = open_openvino_module();
  return opened;
}

using builder = kernel (*)(const node_group&, build_context&);
kernel build_with(builder openvino_module::* which, const node_group& group, build_context& context) {
  const opened_module& opened = the_openvino_module();
  if (opened.functions == nullptr) throw error(error_kind::environment, opened.reason, "backend openvino");
  return (opened.functions->*which)(group, context);
}

using prober = probe_result (*)();
probe_result probe_with(prober openvino_module::* which) {
  const opened_module& opened = the_openvino_module();
  if (opened.functions == nullptr) return {.available = false, .reason = opened.reason.c_str()};
  return (opened.functions->*which)();
}

}  // namespace
}  // namespace detail

verdict openvino::takes(const graph& network, std::uint32_t node) {
  const detail::openvino_module* const opened = detail::the_openvino_module().functions;
  return opened != nullptr ? opened->takes(network, node) : verdict(false, "its library could not be opened");
}

verdict openvino::joins(const graph& network, std::uint32_t node) {
  const detail::openvino_module* const opened = detail::the_openvino_module().functions;
  return opened != nullptr ? opened->joins(network, node) : verdict();
}

using detail::openvino_module;

kernel openvino::build(const node_group& group, build_context& context) {
  return detail::build_with(&openvino_module::build, group, context);
}
kernel openvino_bf16::build(const node_group& group, build_context& context) {
  return detail::build_with(&openvino_module::build_bf16, group, context);
}
kernel openvino_int8::build(const node_group& group, build_context& context) {
  return detail::build_with(&openvino_module::build_int8, group, context);
}

probe_result openvino::probe() { return detail::probe_with(&openvino_module::probe); }
probe_result openvino_bf16::probe() { return detail::probe_with(&openvino_module::probe_bf16); }
probe_result openvino_int8::probe() { return detail::probe_with(&openvino_module::probe_int8); }

}  // namespace collage::inline v0
