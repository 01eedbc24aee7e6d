// The reference of operators that move elements by index: part of the target collage::reference.
#include <collage/backends/impl/reference_indexing.hpp>
