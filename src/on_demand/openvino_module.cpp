// libcollage_openvino_module.so: the backend openvino and all that it needs, opened by src/on_demand/openvino.cpp.
#include <collage/backends/openvino.hpp>

#include "openvino_module.hpp"

namespace c = collage;

extern "C" __attribute__((visibility("default"))) const c::detail::openvino_module collage_openvino;

const c::detail::openvino_module collage_openvino = {
    c::detail::module_version, c::detail::module_compiler, c::detail::module_sizes, c::openvino::takes,
    c::openvino::joins,        c::openvino::build,         c::openvino_bf16::build, c::openvino_int8::build,
    c::openvino::probe,        c::openvino_bf16::probe,    c::openvino_int8::probe,
};
