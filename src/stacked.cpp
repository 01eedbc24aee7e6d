// The target collage::stacked: the one file that knows Highway.
#include <collage/backends/impl/stacked.hpp>
