// The reference of resize, grid_sample, roi_align, col2im and deform_conv: part of the target collage::reference.
#include <collage/backends/impl/reference_deform_conv.hpp>
#include <collage/backends/impl/reference_resize.hpp>
#include <collage/backends/impl/reference_sampling.hpp>
