// Forward declarations and the version: the first rung of the ladder of headers (docs/design.md).
#pragma once

#include <cstddef>
#include <cstdint>

#define COLLAGE_VERSION_MAJOR 0
#define COLLAGE_VERSION_MINOR 1
#define COLLAGE_VERSION_PATCH 0

namespace collage::inline v0 {

enum class dtype : std::uint8_t;
struct shape;
struct tensor_type;
struct layout;
class error;

struct kind_info;
struct graph_view;
struct probe_result;

class graph;
class kernel;
class build_context;
class value_layouts;
struct node_group;
struct plan;

namespace fuse {
class dataflow;
class group_list;
}  // namespace fuse

}  // namespace collage::inline v0
