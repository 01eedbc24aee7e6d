// All that the package has, in both units: what is defined twice shows when they are linked.
#pragma once

#include <collage/collage.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/run/engine.hpp>
#include <collage/zoo/all.hpp>
#if WITH_PLACE
#include <collage/place.hpp>
#endif
#if WITH_EIGEN
#include <collage/backends/eigen.hpp>
#endif
#if WITH_OPENBLAS
#include <collage/backends/openblas.hpp>
#endif
#if WITH_ONEDNN
#include <collage/backends/onednn.hpp>
#endif
