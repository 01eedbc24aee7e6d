// The target collage::openvino: the one file that knows OpenVINO.
#include <collage/backends/impl/openvino.hpp>
