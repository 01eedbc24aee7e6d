// The definitions of collage/backends/reference.hpp and of every built-in kind's `reference`. Included by exactly one
// file of a program; the target collage::reference compiles its parts in several, src/reference*.cpp. Wants optimisation
// (the inner loops take the instruction sets they need by themselves) and, to use more than one thread, OpenMP.
#pragma once

#include <collage/backends/impl/reference_algebra.hpp>
#include <collage/backends/impl/reference_base.hpp>
#include <collage/backends/impl/reference_deform_conv.hpp>
#include <collage/backends/impl/reference_indexing.hpp>
#include <collage/backends/impl/reference_layers.hpp>
#include <collage/backends/impl/reference_recurrent.hpp>
#include <collage/backends/impl/reference_resize.hpp>
#include <collage/backends/impl/reference_sampling.hpp>
#include <collage/backends/impl/reference_selected.hpp>
