// `collage run` for networks whose shapes depend on contents: a session runs them in stages.
#pragma once

#include "options.hpp"

#if COLLAGE_HAS_ONNX
#include <collage/io/onnx/model_source.hpp>
#endif

#include <memory>

namespace program {

#if COLLAGE_HAS_ONNX
/// Runs the network and prints its outputs. All inputs have shapes. Returns the exit status.
int run_stages(const options& given, std::shared_ptr<const collage::onnx::model_source> source);
#endif

}  // namespace program
