// Every operator kind.
#pragma once

#include <collage/op/activation.hpp>
#include <collage/op/algebra.hpp>
#include <collage/op/bitwise.hpp>
#include <collage/op/cast.hpp>
#include <collage/op/comparison.hpp>
#include <collage/op/control.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/conv_transpose.hpp>
#include <collage/op/deform_conv.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/gather.hpp>
#include <collage/op/local_norm.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/order.hpp>
#include <collage/op/pool.hpp>
#include <collage/op/quantise.hpp>
#include <collage/op/recurrent.hpp>
#include <collage/op/reduce.hpp>
#include <collage/op/resize.hpp>
#include <collage/op/sampling.hpp>
#include <collage/op/slice.hpp>
