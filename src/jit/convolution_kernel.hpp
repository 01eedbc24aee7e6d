// Convolutions with a window: how the backend reads matches, and the kernels that it builds.
#pragma once

#include "convolution_point.hpp"

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_rules.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/weights.hpp>
#include <collage/verdict.hpp>

namespace collage::inline v0::detail::jit {

/// The shape of an accepted match, with plain images.
convolution_shape convolution_of(const any_match& m, const product_match& product);

/// Adds the configurations that are worth measuring for a match.
void propose_convolution(const any_match& m, const product_match& product, configuration_list& to);

/// Whether a text is a configuration for the match, and why not.
verdict knows_convolution(const any_match& m, const product_match& product, const collage::configuration& how);

/// How the kernel of a configuration computes.
kernel_algorithm algorithm_of_convolution(const any_match& m, const product_match& product,
                                          const collage::configuration& how);

/// The packed weights that the kernel of a configuration keeps.
kept_constants weights_of_convolution(const any_match& m, const product_match& product,
                                      const collage::configuration& how);

/// Says the layouts of the images that the kernel reads and writes.
void set_convolution_layouts(const any_match& m, const product_match& product, const collage::configuration& how,
                             value_forms& to);

/// Error (invalid_argument): `knows_convolution` has a reason.
kernel build_convolution(const any_match& m, const product_match& product, build_context& context);

}  // namespace collage::inline v0::detail::jit
