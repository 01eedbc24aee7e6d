// The target collage::eigen: the one file that knows Eigen.
#include <collage/backends/impl/eigen.hpp>
