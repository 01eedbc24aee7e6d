// A module of OpenVINO as another version of collage would have it: on_demand.py.
#include <openvino_module.hpp>

namespace c = collage;

extern "C" __attribute__((visibility("default"))) const c::detail::openvino_module collage_openvino;

const c::detail::openvino_module collage_openvino = {
    "0.0.1", c::detail::module_compiler, c::detail::module_sizes, {}, {}, {}, {}, {}, {}, {}, {},
};
