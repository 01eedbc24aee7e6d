// TfIdfVectorizer: counting n-grams by comparing.
#pragma once

#include <collage/io/onnx/lowering.hpp>

namespace collage::inline v0::onnx {

/// TfIdfVectorizer of integers: every window of the sequence is compared with every n-gram of the pool.
void lower_tf_idf_vectorizer(lowering& n);

}  // namespace collage::inline v0::onnx
