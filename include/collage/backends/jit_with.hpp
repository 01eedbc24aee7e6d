// The backend `jit` with schemes of the program's own.
//
//   using mine = collage::bilinear::scheme<my_products>;
//   using backends = collage::backend_set<collage::jit_with<mine>, collage::portable>;
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit.hpp>
#include <collage/backends/jit_scheme.hpp>
#include <collage/bilinear/algorithm.hpp>
#include <collage/run/configuration.hpp>

namespace collage::inline v0 {

namespace detail::jit {

/// Proposes kernels of a scheme for products that have the blocks. Defined in src/jit/product_kernel.cpp.
void propose(const any_match& m, const scheme& s, configuration_list& to);

}  // namespace detail::jit

/// `jit`, and algorithms for matrix products that a program declares (docs/bilinear.md). For each product that has all blocks
/// of a scheme, it proposes at most 2 configurations more, whatever time they may take. A scheme that `jit` has keeps jit's name for
/// it, and is not measured twice.
///
/// In plans and stores, it has the name of `jit`. A configuration names a scheme with a fingerprint of its coefficients, as in
/// "product1 mine-06b24d8a91c3e75f avx512 tile 14x2 unroll 4 prefetch 0". A program without this scheme refuses such a plan.
template <bilinear::algorithm... S>
struct jit_with : jit {
  static_assert((detail::jit::multiplies_matrices<S>() && ...),
                "jit_with takes schemes for matrix products; of the algorithms for convolutions, jit has only its own");
  static_assert((detail::jit::has_whole_coefficients<S>() && ...),
                "jit adds and subtracts blocks, and does not scale them by fractions");
  static_assert((detail::jit::only_adds_products<S>() && ...),
                "jit adds products to a block or subtracts them, so that coefficients w must be -1, 0 or 1");
  static_assert((detail::jit::has_few_blocks<S>() && ...),
                "jit has room for 256 blocks and sums of blocks of the left operand: nest fewer schemes");

  static void configurations(const any_match& m, configuration_list& to) {
    jit::configurations(m, to);
    (detail::jit::propose(m, detail::jit::known_before_main<S>.value(), to), ...);
  }
};

}  // namespace collage::inline v0
