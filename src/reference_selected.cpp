// The reference for selected elements: part of the target collage::reference.
#include <collage/backends/impl/reference_selected.hpp>
