// Kernels: what backends build, what is measured, and what the engine runs.
#pragma once

#include <collage/detail/host_memory.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pattern/bound_value.hpp>
#include <collage/pattern/match.hpp>
#include <collage/run/form.hpp>
#include <collage/run/space.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// One call of a kernel: pointers alone, since shapes were fixed when it was built. `in` follows the match's arguments;
/// arguments the kernel said it does not read may be null. `out` follows the outputs of the match's root, of which, where
/// there are several, those that nobody reads are null; then come the values of other operators that are read outside, in
/// the order of match::output.
struct kernel_call {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  void* workspace = nullptr;  ///< as many bytes as the kernel asked for, aligned to 64, in its backend's memory space
};

/// A built kernel: immutable, cheap to copy, and callable from several threads at once, each with a workspace of its
/// own. Running it neither allocates nor throws, but for what a device has to say and what its library wants once in a thread.
class kernel {
 public:
  kernel() = default;
  /// From any function object with `void operator()(const kernel_call&) const`. `name` says which implementation it is
  /// ("conv jit:avx512_core"); `workspace` is scratch memory in bytes.
  template <class F>
  kernel(std::string name, F run, std::size_t workspace = 0)
      : name_(std::move(name)), workspace_(workspace), state_(std::make_shared<const F>(std::move(run))) {
    invoke_ = [](const void* state, const kernel_call& call) { (*static_cast<const F*>(state))(call); };
  }

  /// Says that argument `index` was packed when the kernel was built and is not read again.
  kernel& does_not_read(std::size_t index) {
    if (index >= unread_.size()) unread_.resize(index + 1);
    unread_[index] = true;
    return *this;
  }
  bool reads(std::size_t index) const { return index >= unread_.size() || !unread_[index]; }

  /// Says that output `output` may lie exactly where argument `index` lies, if nobody needs that any more: whatever number
  /// of threads and whatever else it reads, the kernel writes a byte there only when it has read for the last time what lies
  /// in it. So it is with elementwise kernels for operands of the result's shape and size of elements, but not for those
  /// that broadcast. The argument and the output must be of the same layout. What is said is tested: where a kernel is
  /// measured it also runs in place, and is refused where the result is another.
  kernel& may_write_over(std::size_t index, std::size_t output = 0) {
    if (!writes_over(index, output)) in_place_.push_back({index, output});
    return *this;
  }
  bool writes_over(std::size_t index, std::size_t output = 0) const {
    for (const in_place& pair : in_place_)
      if (pair.argument == index && pair.output == output) return true;
    return false;
  }

  void operator()(const kernel_call& call) const { invoke_(state_.get(), call); }
  explicit operator bool() const { return invoke_ != nullptr; }
  const std::string& name() const { return name_; }
  std::size_t workspace() const { return workspace_; }

  // What the engine keeps in its flat list of steps.
  using function = void (*)(const void* state, const kernel_call& call);
  function entry() const { return invoke_; }
  const void* state() const { return state_.get(); }

 private:
  struct in_place {
    std::size_t argument = 0, output = 0;
  };

  std::string name_;
  std::size_t workspace_ = 0;
  std::vector<bool> unread_;  // by argument; those behind its end are read
  std::vector<in_place> in_place_;
  std::shared_ptr<const void> state_;
  function invoke_ = nullptr;
};

/// Packed forms of constants, one for each (constant, packing), shared by all plans that are alive. Thread-safe.
class packed_weights {
 public:
  /// The packed form of these contents, in a memory space; made by `pack` (which fills `bytes` bytes of the host's) where
  /// nobody has it. `packing` names the backend and the format: all that the result depends on besides the contents.
  std::shared_ptr<const std::byte> get(const std::shared_ptr<const std::byte>& contents, const std::string& packing,
                                       std::size_t bytes, const std::function<void(std::byte*)>& pack,
                                       const memory_space& space = host_space) {
    const std::lock_guard lock(mutex_);
    entry& e = entries_[packing + '@' + std::to_string(space.id) + '@' +
                        std::to_string(reinterpret_cast<std::uintptr_t>(contents.get()))];
    // The address alone would not do: other contents may have taken the place of contents that were released.
    if (std::shared_ptr<const std::byte> found = e.packed.lock(); found != nullptr && e.contents.lock() == contents)
      return found;
    const std::shared_ptr<std::byte> made = space == host_space ? allocate(bytes) : pack_into(space, bytes, pack);
    if (space == host_space) pack(made.get());
    e = {made, contents};
    return made;
  }
  /// Contents as they are, in a memory space that is not the host's.
  std::shared_ptr<const std::byte> get(const std::shared_ptr<const std::byte>& contents, std::size_t bytes,
                                       const memory_space& space) {
    const auto pack = [&](std::byte* made) {
      if (bytes != 0) std::memcpy(made, contents.get(), bytes);
    };
    return get(contents, "as it is, " + std::to_string(bytes) + " bytes", bytes, pack, space);
  }
  /// How many packed forms are alive.
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    std::size_t alive = 0;
    for (const auto& item : entries_) alive += item.second.packed.expired() ? 0U : 1U;
    return alive;
  }

 private:
  struct entry {
    std::weak_ptr<const std::byte> packed;
    std::weak_ptr<const std::byte> contents;
  };
  static std::shared_ptr<std::byte> pack_into(const memory_space& space, std::size_t bytes,
                                              const std::function<void(std::byte*)>& pack) {
    const buffer packed(bytes);
    pack(packed.data());
    auto there = std::make_shared<buffer>(bytes, space);
    copy_bytes(space, there->data(), host_space, packed.data(), bytes);
    space.finish();  // any thread may read it
    std::byte* const memory = there->data();
    return {std::move(there), memory};
  }
  /// Small ones lie side by side in large pieces, so that they share huge pages. A piece lives as long as anything in it.
  std::shared_ptr<std::byte> allocate(std::size_t bytes) {
    constexpr std::size_t piece_bytes = std::size_t{16} << 20;
    const std::size_t padded = detail::padded_bytes(bytes);
    std::size_t at = 0;
    std::shared_ptr<buffer> piece;
    if (padded > piece_bytes / 8) {
      piece = std::make_shared<buffer>(bytes);
    } else {
      piece = piece_.lock();
      if (piece == nullptr || piece->size() - used_ < padded) {
        piece = std::make_shared<buffer>(piece_bytes);
        piece_ = piece;
        used_ = 0;
      }
      at = std::exchange(used_, used_ + padded);
    }
    std::byte* const memory = piece->data() + at;
    return {std::move(piece), memory};
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::string, entry> entries_;
  std::weak_ptr<buffer> piece_;  // where small forms go
  std::size_t used_ = 0;         // of it
};

/// What a backend may ask while it builds a kernel.
class build_context {
 public:
  build_context(const graph& network, int threads, packed_weights& packed, const memory_space& space = host_space)
      : graph_(&network), threads_(threads), packed_(&packed), space_(&space) {}

  /// How many threads the kernel will run with.
  int threads() const { return threads_; }
  /// Which of the backend's `choices` to build.
  std::size_t choice() const { return choice_; }
  void set_choice(std::size_t which) { choice_ = which; }
  /// Where the backend's kernels read and write.
  const memory_space& space() const { return *space_; }

  /// The contents of a bound constant, in the host's memory, or null for any other value and for an absent one.
  template <class T>
  const T* constant(std::uint32_t value) const {
    if (value == match_record::nothing || graph_->at(value).role != value_role::constant) return nullptr;
    return reinterpret_cast<const T*>(graph_->bytes_of(value).data());
  }
  template <class T>
  const T* constant(const bound_value& v) const {
    return constant<T>(v.value);
  }
  /// The packed form of a bound constant, in the backend's memory space, made once and shared with every kernel that packs it
  /// the same way. `pack` writes to the host's memory.
  std::shared_ptr<const std::byte> packed(std::uint32_t value, const std::string& packing, std::size_t bytes,
                                          const std::function<void(std::byte*)>& pack) const {
    return packed_->get(graph_->constant(value).bytes, packing, bytes, pack, *space_);
  }
  const graph& network() const { return *graph_; }

 private:
  const graph* graph_;
  int threads_;
  std::size_t choice_ = 0;
  packed_weights* packed_;
  const memory_space* space_;
};

}  // namespace collage::inline v0
