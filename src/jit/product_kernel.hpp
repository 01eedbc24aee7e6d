// Products of matrices: how the backend reads matches, and the kernels that it builds.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_rules.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/weights.hpp>
#include <collage/verdict.hpp>

namespace collage::inline v0::detail::jit {

/// Adds the configurations that are worth measuring for a match.
void propose_products(const any_match& m, const product_match& first, configuration_list& to);

/// Whether a text is a configuration for products, and why not.
verdict knows_products(const collage::configuration& how);

/// How the kernel of a configuration computes.
kernel_algorithm algorithm_of_products(const any_match& m, const product_match& first,
                                       const collage::configuration& how);

/// The packed weights that the kernel of a configuration keeps.
kept_constants weights_of_products(const any_match& m, const collage::configuration& how);

/// Convolutions of 1x1 have channels last.
void set_product_layouts(const any_match& m, const product_match& first, value_forms& to);

/// Error (invalid_argument): `knows_products` has a reason.
kernel build_products(const any_match& m, build_context& context);

}  // namespace collage::inline v0::detail::jit
