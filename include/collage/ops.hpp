// Every operator kind.
#pragma once

#include <collage/op/conv.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/pool.hpp>
#include <collage/op/reduce.hpp>
#include <collage/op/resize.hpp>
