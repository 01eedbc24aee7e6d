// The target collage::cublas: the one file that knows cuBLAS.
#include <collage/backends/impl/cublas.hpp>
