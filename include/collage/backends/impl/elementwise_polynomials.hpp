// The numbers of the approximations of exp, tanh and erf, which all code of ours for vectors of floats shares.
#pragma once

#include <cstddef>

namespace collage::inline v0::detail::host {

/// exp(x) = 2^q e^r with x = q ln 2 + r, and the polynomial of Cephes for e^r. Evaluated in float, it errs by at most 1e-7.
struct exponential_numbers {
  static constexpr float least = -104.0F, most = 89.0F;  ///< beyond them the result is 0 or infinite
  static constexpr float shift = 0x1.8p23F;              ///< adding it leaves the nearest integer in the last bits
  static constexpr float inverse_logarithm = 1.44269504088896341F;
  static constexpr float logarithm_rest = 2.12194440e-4F, minus_logarithm = -0.693359375F;
  static constexpr std::size_t terms = 8;
  /// From the highest power.
  static constexpr float polynomial[terms] = {1.9875691500e-4F,
                                              1.3981999507e-3F,
                                              8.3334519073e-3F,
                                              4.1665795894e-2F,
                                              1.6666665459e-1F,
                                              5.0000001201e-1F,
                                              1.0F,
                                              1.0F};
};

/// x P(x^2) / Q(x^2), minimax fits with a relative error of 2e-8, and of 4e-7 evaluated in float. From `end` on
/// the result is 1.
template <std::size_t Terms>
struct odd_ratio_numbers {
  static constexpr std::size_t terms = Terms;
  float end;
  float above[Terms], below[Terms];  ///< from the lowest power
};
inline constexpr odd_ratio_numbers<6> error_function_numbers = {
    3.95F,
    {1.1283791448774545F, 0.19144625158944034F, 0.05286036418207781F, 0.0038033479972684444F, 0.0002845210287430449F,
     2.025937238069292e-06F},
    {1.0F, 0.5029975251437252F, 0.11451541574201543F, 0.015045483985038662F, 0.0011694502640805324F,
     3.78233919087897e-05F}};
inline constexpr odd_ratio_numbers<5> tangent_hyperbolic_numbers = {
    9.02F,
    {0.9999999798299046F, 0.13380085431094185F, 0.0034944553460720456F, 2.058977327716647e-05F,
     1.3326602436390975e-08F},
    {1.0F, 0.4671340124980786F, 0.025872714769557548F, 0.0003283753698109813F, 7.765352764054627e-07F}};

}  // namespace collage::inline v0::detail::host
