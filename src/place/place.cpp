// The target collage::place: candidates, costs and the search composed, compiled once.
#include "placer.hpp"
