// Calls a kernel in guarded memory.
#pragma once

#include <algorithm>
#include <collage/measure/fenced_memory.hpp>
#include <collage/place/rival.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/space.hpp>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace collage::inline v0::detail {

/// Calls a rival in guarded memory and copies its outputs to the results. Returns how it violates the guards, or an empty text.
/// Memory of devices is not guarded: the host's guard pages do not catch accesses there.
inline std::string call_between_fences(const rival& r) {
  std::vector<fenced_memory> in, out;
  const bool has_workspace = r.workspace.space() == host_space && r.workspace.size() != 0;
  fenced_memory workspace(has_workspace ? r.workspace.size() : 0);
  rival fenced;
  fenced.run = r.run;
  fenced.backend = r.backend;
  fenced.threads = r.threads;
  for (std::size_t i = 0; i < r.in.size(); ++i) {
    const bool is_here = *r.arguments[i].space == host_space && r.in[i] != nullptr;
    const std::size_t bytes = is_here ? r.arguments[i].bytes : 0;
    fenced_memory& memory = in.emplace_back(bytes);
    if (bytes != 0) std::memcpy(memory.data(), r.in[i], bytes);
    memory.make_read_only();
    fenced.in.push_back(is_here ? memory.data() : r.in[i]);
  }
  for (std::size_t i = 0; i < r.out.size(); ++i) {
    const bool is_here = *r.outputs[i].space == host_space && r.out[i] != nullptr;
    const std::size_t bytes = is_here ? r.outputs[i].bytes : 0;
    fenced_memory& memory = out.emplace_back(bytes);
    std::memset(memory.data(), 0xFF, bytes);
    fenced.out.push_back(is_here ? memory.data() : r.out[i]);
  }
  {
    const thread_scope scope(*fenced.backend, fenced.threads);
    fenced.run({fenced.in.data(), fenced.out.data(), has_workspace ? workspace.data() : r.workspace.data()});
  }
  for (std::size_t i = 0; i < r.out.size(); ++i)
    if (out[i].size() != 0) std::memcpy(r.out[i], out[i].data(), out[i].size());
  if (!std::all_of(out.begin(), out.end(), [](const fenced_memory& m) { return m.is_whole(); }))
    return "it writes outside its outputs";
  return workspace.is_whole() ? "" : "it writes outside its workspace";
}

}  // namespace collage::inline v0::detail
