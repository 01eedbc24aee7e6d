// What collage_threads leaves out of the libraries: OpenMP, reading files, and the rules of operators that it does not use.
#include <collage/error.hpp>
#include <collage/io/onnx/model.hpp>
#include <collage/run/waiting.hpp>

#include <optional>
#include <span>
#include <string>

#include "onnx/rules.hpp"
#include "process/spread.hpp"

namespace collage::inline v0 {

int concurrent_threads(int) { return 1; }
void detail::prepare_for_forks() {}
void detail::spread_team(int) {}

namespace onnx {

std::optional<dtype> element_type_of(int number) {
  switch (number) {
    case 1: return dtype::f32;
    case 7: return dtype::i64;
    case 9: return dtype::boolean;
    default: return std::nullopt;
  }
}
std::string element_type_name(int number) { return "type " + std::to_string(number); }
model read_model(const std::string& file, const read_limits&) {
  throw error(error_kind::unsupported, "this program reads no files", file);
}
model read_model(std::span<const std::byte>, const std::string& name, const read_limits&) {
  throw error(error_kind::unsupported, "this program reads no files", name);
}

std::span<const lowering_rule> algebra_rules() { return {}; }
std::span<const lowering_rule> attention_rules() { return {}; }
std::span<const lowering_rule> decoding_rules() { return {}; }
std::span<const lowering_rule> elementwise_rules() { return {}; }
std::span<const lowering_rule> indexing_rules() { return {}; }
std::span<const lowering_rule> layer_rules() { return {}; }
std::span<const lowering_rule> norm_rules() { return {}; }
std::span<const lowering_rule> microsoft_quantise_rules() { return {}; }
std::span<const lowering_rule> packed_weight_rules() { return {}; }
std::span<const lowering_rule> quantise_rules() { return {}; }
std::span<const lowering_rule> recurrent_rules() { return {}; }
std::span<const lowering_rule> reduction_rules() { return {}; }
std::span<const lowering_rule> sampling_rules() { return {}; }
std::span<const lowering_rule> training_rules() { return {}; }

}  // namespace onnx
}  // namespace collage::inline v0
