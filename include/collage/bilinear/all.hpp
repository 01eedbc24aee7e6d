// Everything about bilinear algorithms.
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/apply.hpp>
#include <collage/bilinear/combine.hpp>
#include <collage/bilinear/correlations.hpp>
#include <collage/bilinear/direct.hpp>
#include <collage/bilinear/enlarged.hpp>
#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/linear_program.hpp>
#include <collage/bilinear/matmul_schemes.hpp>
#include <collage/bilinear/problem.hpp>
#include <collage/bilinear/rational.hpp>
#include <collage/bilinear/rounding.hpp>
#include <collage/bilinear/scheme.hpp>
#include <collage/bilinear/toom_cook.hpp>
