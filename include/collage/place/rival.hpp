// A kernel that is measured, with its memory.
#pragma once

#include <collage/dtype.hpp>
#include <collage/place/accuracy.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/space.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace collage::inline v0::detail {

/// The memory of an argument or output of a kernel. An argument that is not read, or an output that is not wanted, is null and
/// has no bytes.
struct rival_value {
  const memory_space* space = &host_space;
  std::size_t bytes = 0;
};

/// A kernel with its memory, ready to be called.
struct rival {
  kernel run;
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<rival_value> arguments, outputs;  ///< the memory of `in` and `out`
  std::map<std::uint32_t, buffer> results;      ///< by value: outputs that are not plain on the host
  buffer workspace;
  judged_kernel judged;
  std::optional<dtype> rounded;  ///< the smallest element type to which it rounds values
  bool is_region = false;
  const backend_entry* backend = nullptr;
  int threads = 1;

  void call() const { run({in.data(), out.data(), workspace.data()}); }
  /// Calls the kernel as the engine does: with the library's thread count set around the call.
  void enter_and_call() const {
    const thread_scope scope(*backend, threads);
    call();
  }
};

}  // namespace collage::inline v0::detail
