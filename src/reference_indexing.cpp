// Of the target collage::reference: operators that move elements by index.
#include <collage/backends/impl/reference_indexing.hpp>
