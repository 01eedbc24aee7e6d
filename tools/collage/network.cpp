#include "network.hpp"

#include <collage/zoo/all.hpp>

namespace program {

namespace c = collage;

c::graph load_network(const std::string& name) {
  constexpr const char* zoo = "zoo:";
  if (name.rfind(zoo, 0) == 0) {
    c::graph_builder builder;
    if (c::zoo::build(name.c_str() + 4, builder)) return builder.finish();
  }
  std::string known;
  for (const c::zoo::network& n : c::zoo::networks) known += (known.empty() ? "" : ", ") + std::string(zoo) + n.name;
  throw c::error(c::error_kind::invalid_argument, "there is no such network", "network " + name, "there are " + known);
}

c::graph load_network_with_data(const std::string& name) {
  c::graph network = load_network(name);
  c::fill_constants(network);
  return network;
}

}  // namespace program
