// What most tests include, read once (CMakeLists.txt). Tests include what they use all the same.
#pragma once

#include <collage/backend_set.hpp>
#include <collage/backends/reference.hpp>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>
