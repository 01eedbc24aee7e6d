// Forward declarations and the version: the first rung of the ladder of headers (docs/design.md).
#pragma once

#include <cstddef>
#include <cstdint>

#define COLLAGE_VERSION_MAJOR 0
#define COLLAGE_VERSION_MINOR 1
#define COLLAGE_VERSION_PATCH 0
/// The same as a text, "0.1.0".
#define COLLAGE_VERSION COLLAGE_VERSION_JOIN_(COLLAGE_VERSION_MAJOR, COLLAGE_VERSION_MINOR, COLLAGE_VERSION_PATCH)
#define COLLAGE_VERSION_JOIN_(major, minor, patch) \
  COLLAGE_VERSION_TEXT_(major) "." COLLAGE_VERSION_TEXT_(minor) "." COLLAGE_VERSION_TEXT_(patch)
#define COLLAGE_VERSION_TEXT_(number) #number

namespace collage::inline v0 {

enum class dtype : std::uint8_t;
struct shape;
struct tensor_type;
struct layout;
struct form;
struct memory_space;
class error;

struct kind_info;
struct graph_view;
struct probe_result;

class graph;
class kernel;
struct kernel_call;
class build_context;
class value_forms;
class configuration;
class configuration_list;
struct node_group;
struct plan;

namespace fuse {
class dataflow;
class group_list;
}  // namespace fuse
namespace tune {
class any_space;
}  // namespace tune

}  // namespace collage::inline v0
