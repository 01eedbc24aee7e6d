// `collage run` for networks whose shapes depend on contents: a session runs them in stages.
#pragma once

#include "network.hpp"

#include <collage/run/tensor.hpp>

#include <vector>

namespace program {

#if COLLAGE_HAS_ONNX
/// The contents of all inputs: of the files that --input names, zeros where they decide shapes, otherwise random.
std::vector<collage::tensor> contents_of_inputs(const late_network& network);
/// Runs the network and prints its outputs. All inputs have shapes. Returns the exit status.
int run_stages(const late_network& network);
#endif

}  // namespace program
