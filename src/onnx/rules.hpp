// The built-in lowering rules, one list per file.
#pragma once

#include <collage/io/onnx/lowering.hpp>
#include <span>

namespace collage::inline v0::onnx {

std::span<const lowering_rule> elementwise_rules();
std::span<const lowering_rule> movement_rules();
std::span<const lowering_rule> indexing_rules();
std::span<const lowering_rule> layer_rules();  // conv, matmul, pooling
std::span<const lowering_rule> norm_rules();   // norms, softmax
std::span<const lowering_rule> attention_rules();
std::span<const lowering_rule> decoding_rules();  // rotary embeddings, caches, states
std::span<const lowering_rule> reduction_rules();
std::span<const lowering_rule> recurrent_rules();  // LSTM, GRU, RNN
std::span<const lowering_rule> sampling_rules();   // resize, grids, regions of interest
std::span<const lowering_rule> quantise_rules();
std::span<const lowering_rule> microsoft_quantise_rules();
std::span<const lowering_rule> packed_weight_rules();  // products by weights of few bits
std::span<const lowering_rule> algebra_rules();        // einsum, determinant, transforms, losses
std::span<const lowering_rule> training_rules();       // optimisers
std::span<const lowering_rule> data_rules();           // shapes that depend on data, computed while loading
std::span<const lowering_rule> shape_rules();          // constants, shapes, and what passes a value on

}  // namespace collage::inline v0::onnx
