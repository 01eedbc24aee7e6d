// Attention: how the backend reads matches, and the kernels that it builds.
#pragma once

#include "attention.hpp"

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_attention_rules.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/kernel.hpp>
#include <collage/verdict.hpp>

namespace collage::inline v0::detail::jit {

/// The shape of an accepted match.
attention_shape attention_of(const any_match& m);

/// Adds the configurations that are worth measuring for a match.
void propose_attention(const any_match& m, configuration_list& to);

/// Whether a text is a configuration for the match, and why not.
verdict knows_attention(const collage::configuration& how);

/// Error (invalid_argument): `knows_attention` has a reason.
kernel build_attention(const any_match& m, build_context& context);

}  // namespace collage::inline v0::detail::jit
