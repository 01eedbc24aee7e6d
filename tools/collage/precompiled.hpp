// The headers of most files of the program, read once (CMakeLists.txt). Files include what they use
// all the same.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "terminal.hpp"
