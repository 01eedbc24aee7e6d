// The instruction sets that kernels are generated for, and whether a processor has them.
#pragma once

#include <cstdint>
#include <string>

namespace collage::inline v0::detail::jit {

enum class instruction_set : std::uint8_t {
  avx512,  ///< the foundation, avx512f
  avx2,    ///< with fused multiply-add
};

constexpr const char* name_of(instruction_set set) { return set == instruction_set::avx512 ? "avx512" : "avx2"; }
/// Floats in one vector.
constexpr int lanes_of(instruction_set set) { return set == instruction_set::avx512 ? 16 : 8; }
constexpr int bytes_of(instruction_set set) { return 4 * lanes_of(set); }
/// Vector registers.
constexpr int registers_of(instruction_set set) { return set == instruction_set::avx512 ? 32 : 16; }

/// One bit for each feature that kernels may need.
enum processor_feature : unsigned {
  feature_avx2 = 1,
  feature_fma = 2,
  feature_avx512f = 4,
  feature_avx512_vnni = 8  ///< with avx512bw and avx512vl
};

/// The features that this processor has and that the system saves registers for.
unsigned processor_features();

/// Why a processor with these features cannot run kernels for an instruction set, in one sentence; empty if it can.
std::string refusal_of(instruction_set set, unsigned features = processor_features());

}  // namespace collage::inline v0::detail::jit
