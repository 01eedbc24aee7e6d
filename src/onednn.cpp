// The target collage::onednn: the one file that knows oneDNN.
#include <collage/backends/impl/onednn.hpp>
