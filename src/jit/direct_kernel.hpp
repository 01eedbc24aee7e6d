// Convolutions by their definition: how the backend reads matches, and the kernels that it builds.
#pragma once

#include "direct_convolution.hpp"

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_rules.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/weights.hpp>
#include <collage/verdict.hpp>

#include <string_view>

namespace collage::inline v0::detail::jit {

/// Whether a text is meant for a direct convolution.
constexpr bool is_direct(std::string_view text) { return text.starts_with("direct"); }

/// The shape of an accepted match.
direct_shape direct_of(const any_match& m, const product_match& product);

/// Adds the configurations that are worth measuring for a match.
void propose_direct(const any_match& m, const product_match& product, configuration_list& to);

/// Whether a text is a configuration for the match, and why not.
verdict knows_direct(const product_match& product, const collage::configuration& how);

/// The packed weights that the kernel of a configuration keeps.
kept_constants weights_of_direct(const any_match& m, const product_match& product, const collage::configuration& how);

/// Images have channels last.
void set_direct_layouts(const any_match& m, const product_match& product, value_forms& to);

/// Error (invalid_argument): `knows_direct` has a reason.
kernel build_direct(const any_match& m, const product_match& product, build_context& context);

}  // namespace collage::inline v0::detail::jit
