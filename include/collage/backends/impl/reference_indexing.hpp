// The references of the operators that copy parts, read and write by index, and order elements.
#pragma once

#include <collage/backends/impl/reference_gather.hpp>
#include <collage/backends/impl/reference_order.hpp>
#include <collage/backends/impl/reference_slice.hpp>
