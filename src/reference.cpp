// The target collage::reference.
#include <collage/backends/impl/reference.hpp>
