// The target collage::reference: what everything needs. Other families of operators have files of their own beside it.
#include <collage/backends/impl/reference_base.hpp>
