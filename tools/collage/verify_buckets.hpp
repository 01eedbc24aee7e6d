// `collage verify --bucket`: whether padding to declared extents changes a network's results.
#pragma once

#include "options.hpp"

namespace program {

/// Runs the network at its shape and in a bucket, and compares the outputs. Returns the exit status: 1 if one differs.
int verify_buckets(const options& given);

}  // namespace program
