// `collage run` for networks whose shapes depend on contents: a session runs them in stages.
#pragma once

#include "network.hpp"

namespace program {

#if COLLAGE_HAS_ONNX
/// Runs the network and prints its outputs. All inputs have shapes. Returns the exit status.
int run_stages(const late_network& network);
#endif

}  // namespace program
