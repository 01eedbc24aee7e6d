// The reference of determinants and quantisation: part of the target collage::reference.
#include <collage/backends/impl/reference_algebra.hpp>
