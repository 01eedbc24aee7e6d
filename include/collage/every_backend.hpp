// Every backend that this collage was built with, as one set: `place<collage::every_backend>(network)`.
//
// Link the component collage::every_backend: it links all of them and defines COLLAGE_HAS_EIGEN=1 and so on. A program that
// does not use CMake defines these itself. No #if is needed where the set is used.
#pragma once

#include <collage/backend_set.hpp>
#include <collage/set/algebra.hpp>

#if COLLAGE_HAS_CUBLAS
#include <collage/backends/cublas.hpp>
#endif
#if COLLAGE_HAS_CUDA
#include <collage/backends/cuda.hpp>
#endif
#if COLLAGE_HAS_EIGEN
#include <collage/backends/eigen.hpp>
#endif
#if COLLAGE_HAS_JIT
#include <collage/backends/jit.hpp>
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
#if COLLAGE_HAS_PORTABLE
#include <collage/backends/portable.hpp>
#endif
#if COLLAGE_HAS_STACKED
#include <collage/backends/stacked.hpp>
#endif

namespace collage::inline v0 {

/// The backends that were built, preferred first: where several cost the same, the first is taken. `portable`, which covers
/// every operator, stands last.
using every_backend = set_union<backend_set<>
#if COLLAGE_HAS_ONEDNN
                                ,
                                backend_set<onednn>
#endif
#if COLLAGE_HAS_OPENBLAS
                                ,
                                backend_set<openblas>
#endif
#if COLLAGE_HAS_EIGEN
                                ,
                                backend_set<eigen>
#endif
#if COLLAGE_HAS_STACKED
                                ,
                                backend_set<stacked>
#endif
#if COLLAGE_HAS_JIT
                                ,
                                backend_set<jit>
#endif
#if COLLAGE_HAS_OPENVINO
                                ,
                                backend_set<openvino, openvino_bf16, openvino_int8>
#endif
#if COLLAGE_HAS_CUBLAS
                                ,
                                backend_set<cublas>
#endif
#if COLLAGE_HAS_CUDA
                                ,
                                backend_set<cuda>
#endif
#if COLLAGE_HAS_PORTABLE
                                ,
                                backend_set<portable>
#endif
                                >;

}  // namespace collage::inline v0
