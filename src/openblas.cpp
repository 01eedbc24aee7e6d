// The target collage::openblas: the one file that knows OpenBLAS.
#include <collage/backends/impl/openblas.hpp>
