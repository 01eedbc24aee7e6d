// Part of the target collage::reference: recurrent cells.
#include <collage/backends/impl/reference_recurrent.hpp>
