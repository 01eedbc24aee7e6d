// The target collage::portable: our own loops.
#include <collage/backends/impl/portable.hpp>
