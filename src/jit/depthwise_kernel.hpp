// Depthwise convolutions with the pointwise one after them: how the backend reads matches, and the kernels that it builds.
#pragma once

#include "depthwise_product.hpp"

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_rules.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/weights.hpp>
#include <collage/verdict.hpp>

namespace collage::inline v0::detail::jit {

/// The shape of the depthwise convolution of an accepted match.
depthwise_shape depthwise_of(const any_match& m, const product_match& product);

/// Adds the configurations that are worth measuring for a match.
void propose_depthwise(const any_match& m, const product_match& product, configuration_list& to);

/// Whether a text is a configuration for the match, and why not.
verdict knows_depthwise(const collage::configuration& how);

/// The packed weights that the kernel of a configuration keeps: of both convolutions.
kept_constants weights_of_depthwise(const any_match& m, const product_match& product,
                                    const collage::configuration& how);

/// Images have channels last.
void set_depthwise_layouts(const any_match& m, const product_match& product, value_forms& to);

/// Error (invalid_argument): `knows_depthwise` has a reason. Error (unsupported): the epilogue has no room in the registers, or a
/// weight of the depthwise convolution is not finite.
kernel build_depthwise(const any_match& m, const product_match& product, build_context& context);

}  // namespace collage::inline v0::detail::jit
