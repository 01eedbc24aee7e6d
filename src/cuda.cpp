// The target collage::cuda: copies between the host and a CUDA device.
#include <collage/backends/impl/cuda.hpp>
