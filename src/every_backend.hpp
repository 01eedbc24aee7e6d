// The composition root of the program and the C library: every backend of this build, preferred first.
#pragma once

#include <collage/backend_set.hpp>
#include <collage/backends/portable.hpp>

#if COLLAGE_HAS_CUDA
#include <collage/backends/cublas.hpp>
#include <collage/backends/cuda.hpp>
#endif
#if COLLAGE_HAS_EIGEN
#include <collage/backends/eigen.hpp>
#endif
#if COLLAGE_HAS_ONEDNN
#include <collage/backends/onednn.hpp>
#endif
#if COLLAGE_HAS_OPENBLAS
#include <collage/backends/openblas.hpp>
#endif
#if COLLAGE_HAS_OPENVINO
#include <collage/backends/openvino.hpp>
#endif
#if COLLAGE_HAS_STACKED
#include <collage/backends/stacked.hpp>
#endif

namespace collage::inline v0 {

// The preprocessor cannot leave a type out of the middle of a list: sets are united instead. `portable` covers everything
// and stands last.
using every_backend = set_union<
#if COLLAGE_HAS_ONEDNN
    backend_set<onednn>,
#endif
#if COLLAGE_HAS_OPENBLAS
    backend_set<openblas>,
#endif
#if COLLAGE_HAS_EIGEN
    backend_set<eigen>,
#endif
#if COLLAGE_HAS_STACKED
    backend_set<stacked>,
#endif
#if COLLAGE_HAS_OPENVINO
    backend_set<openvino>,
#endif
#if COLLAGE_HAS_CUDA
    backend_set<cublas, cuda>,
#endif
    backend_set<portable>>;

}  // namespace collage::inline v0
