// Everything that the author of a backend needs: patterns, sets, kernels, forms and memory spaces (docs/adding-a-backend.md).
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/collage.hpp>
#include <collage/error.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/space.hpp>
