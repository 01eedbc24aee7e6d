// The compile-time core: words, operators, static graphs, patterns, backend sets. Includes no third-party library and
// no header that allocates. Placement is in collage/place.hpp, running in collage/run/engine.hpp.
#pragma once

// Headers with checks come first, each before the headers that include it. A compile error begins with the chain of
// includes that leads to the check. A short chain keeps the user's own line near the top.
#include <collage/shape.hpp>

#include <collage/op/kind_check.hpp>

#include <collage/op/kind.hpp>

#include <collage/detail/sentence.hpp>
#include <collage/pattern/expression.hpp>

#include <collage/pattern/detail/check.hpp>

#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/fwd.hpp>
#include <collage/graph/build.hpp>
#include <collage/graph/define.hpp>
#include <collage/graph/view.hpp>
#include <collage/layout.hpp>
#include <collage/list_view.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/describe.hpp>
#include <collage/pattern/explain.hpp>
#include <collage/pattern/match.hpp>
#include <collage/pattern/pattern.hpp>
#include <collage/pattern/single.hpp>
#include <collage/set/candidates.hpp>
#include <collage/set/covers.hpp>
#include <collage/verdict.hpp>
