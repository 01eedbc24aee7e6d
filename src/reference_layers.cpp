// Part of the target collage::reference: layers.
#include <collage/backends/impl/reference_layers.hpp>
