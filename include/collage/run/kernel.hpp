// Kernels: backends build them, placing measures them, and the engine runs them.
#pragma once

#include <algorithm>
#include <collage/detail/host_memory.hpp>
#include <collage/detail/memory_check.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pattern/bound_value.hpp>
#include <collage/pattern/match.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/form.hpp>
#include <collage/run/space.hpp>
#include <collage/run/value_scales.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// One call of a kernel. It only has pointers, because shapes were fixed when the kernel was built. `in` follows the match's
/// arguments; those that the kernel does not read may be null. `out` begins with the outputs of the root's operator. If there
/// are several, outputs that nothing reads are null. Values of other operators that are read outside follow, in the order of
/// match::output.
struct kernel_call {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  void* workspace = nullptr;  ///< of kernel::workspace() bytes, aligned to 64, in the backend's memory space
};

/// A built kernel: immutable, cheap to copy, and callable from several threads at once, each with its own workspace. A call
/// neither allocates nor throws, with two exceptions. A device may report errors, and a library may set itself up once in each
/// thread.
class kernel {
 public:
  kernel() = default;
  /// From any function object with `void operator()(const kernel_call&) const`. `name` identifies the implementation ("conv
  /// jit:avx512_core"). `workspace` is the size of its scratch memory in bytes.
  template <class F>
  kernel(std::string name, F run, std::size_t workspace = 0)
      : name_(std::move(name)), workspace_(workspace), state_(std::make_shared<const F>(std::move(run))) {
    invoke_ = [](const void* state, const kernel_call& call) { (*static_cast<const F*>(state))(call); };
  }

  /// States that argument `index` was packed when the kernel was built, and is not read again.
  kernel& does_not_read(std::size_t index) {
    if (index >= unread_.size()) unread_.resize(index + 1);
    unread_[index] = true;
    return *this;
  }
  bool reads(std::size_t index) const { return index >= unread_.size() || !unread_[index]; }

  /// States that output `output` may lie exactly where argument `index` lies, if the argument is not needed afterwards. The
  /// kernel must then read every byte for the last time before it overwrites it, with any number of threads and whatever else
  /// it reads. Elementwise kernels do so for operands of the result's shape and element size, but not for operands that they
  /// broadcast. The argument and the output must have the same layout. Placing tests this: a kernel that is measured also runs
  /// in place, and is refused if its result differs.
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

  // For the engine's flat list of steps.
  using function = void (*)(const void* state, const kernel_call& call);
  function entry() const { return invoke_; }
  const void* state() const { return state_.get(); }

 private:
  struct in_place {
    std::size_t argument = 0, output = 0;
  };

  std::string name_;
  std::size_t workspace_ = 0;
  std::vector<bool> unread_;  // by argument; arguments past its end are read
  std::vector<in_place> in_place_;
  std::shared_ptr<const void> state_;
  function invoke_ = nullptr;
};

/// Packed forms of constants, one for each constant and packing, shared by all plans that are alive. Thread-safe.
class packed_weights {
 public:
  /// The packed form of these contents in a memory space. If there is none yet, `pack` makes it by filling `bytes` bytes of the
  /// host's memory. `packing` names the backend and the format: all that the result depends on besides the contents.
  std::shared_ptr<const std::byte> get(const std::shared_ptr<const std::byte>& contents, const std::string& packing,
                                       std::size_t bytes, const std::function<void(std::byte*)>& pack,
                                       const memory_space& space = host_space) {
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= swept_at_) forget_released();
    entry& e = entries_[key_of(contents.get(), packing, space)];
    // The address alone does not identify contents: others, since released, may have had the same address.
    if (std::shared_ptr<const std::byte> found = e.packed.lock(); found != nullptr && e.contents.lock() == contents)
      return found;
    const std::shared_ptr<std::byte> made = space == host_space ? allocate(bytes) : pack_into(space, bytes, pack);
    if (space == host_space) pack(made.get());
    e = {made, contents, bytes};
    return made;
  }
  /// Unchanged contents, in a memory space that is not the host's.
  std::shared_ptr<const std::byte> get(const std::shared_ptr<const std::byte>& contents, std::size_t bytes,
                                       const memory_space& space) {
    const auto pack = [&](std::byte* made) {
      if (bytes != 0) std::memcpy(made, contents.get(), bytes);
    };
    return get(contents, "as it is, " + std::to_string(bytes) + " bytes", bytes, pack, space);
  }
  /// Whether `get` would find the packed form: it is alive.
  bool has(const std::shared_ptr<const std::byte>& contents, const std::string& packing,
           const memory_space& space = host_space) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key_of(contents.get(), packing, space));
    return found != entries_.end() && !found->second.packed.expired() && found->second.contents.lock() == contents;
  }
  /// The number of packed forms that are alive.
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    std::size_t alive = 0;
    for (const auto& item : entries_) alive += item.second.packed.expired() ? 0U : 1U;
    return alive;
  }
  /// Their bytes.
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& item : entries_) sum += item.second.packed.expired() ? 0U : item.second.bytes;
    return sum;
  }

 private:
  struct entry {
    std::weak_ptr<const std::byte> packed;
    std::weak_ptr<const std::byte> contents;
    std::size_t bytes = 0;
  };
  static std::string key_of(const std::byte* contents, const std::string& packing, const memory_space& space) {
    return packing + '@' + std::to_string(space.id) + '@' + std::to_string(reinterpret_cast<std::uintptr_t>(contents));
  }
  /// A session makes and releases forms as long as it lives. Looking through the entries each time their number has doubled costs
  /// little, and leaves no more than twice as many as are alive.
  void forget_released() {
    std::erase_if(entries_, [](const auto& item) { return item.second.packed.expired(); });
    swept_at_ = std::max(least_swept, 2 * entries_.size());
  }
  static std::shared_ptr<std::byte> pack_into(const memory_space& space, std::size_t bytes,
                                              const std::function<void(std::byte*)>& pack) {
    const buffer packed(bytes);
    pack(packed.data());
    auto there = std::make_shared<buffer>(bytes, space);
    copy_bytes(space, there->data(), host_space, packed.data(), bytes);
    space.finish();  // from now on any thread may read it
    std::byte* const memory = there->data();
    return {std::move(there), memory};
  }
  /// Small forms lie side by side in large pieces, so that they share huge pages. A piece lives as long as any form in it.
  std::shared_ptr<std::byte> allocate(std::size_t bytes) {
    constexpr std::size_t piece_bytes = std::size_t{16} << 20;
    const std::size_t padded = detail::padded_bytes(bytes);
    std::size_t at = 0;
    std::shared_ptr<buffer> piece;
    if (padded > piece_bytes / 8) {
      detail::check_memory(bytes, "packed weights");
      piece = std::make_shared<buffer>(bytes);
    } else {
      piece = piece_.lock();
      if (piece == nullptr || piece->size() - used_ < padded) {
        detail::check_memory(std::max(padded, std::size_t{1} << 20),
                             "packed weights");  // not all of the piece may be used
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
  static constexpr std::size_t least_swept = 64;
  std::unordered_map<std::string, entry> entries_;
  std::size_t swept_at_ = least_swept;  // so many entries: those without a form are forgotten
  std::weak_ptr<buffer> piece_;         // the piece for small forms
  std::size_t used_ = 0;                // bytes of the piece
};

/// The context in which a backend builds a kernel.
class build_context {
 public:
  build_context(const graph& network, int threads, packed_weights& packed, const memory_space& space = host_space)
      : graph_(&network), threads_(threads), packed_(&packed), space_(&space) {}

  /// The number of threads that will run the kernel.
  int threads() const { return threads_; }
  /// Which of the backend's ways to build the kernel is meant. The backend has it: it proposed it, or its `knows` took it.
  const collage::configuration& configuration() const { return configuration_; }
  void set_configuration(collage::configuration which) { configuration_ = std::move(which); }
  /// The number of the variant to build, less than the backend's `choices`. Throws if the configuration is no number.
  std::size_t choice() const {
    if (const std::optional<std::size_t> number = configuration_.number()) return *number;
    throw error(error_kind::invalid_argument, "is no number, and the backend reads it as one",
                "configuration " + configuration_.text(), "read build_context::configuration() instead");
  }
  /// The memory space that the backend's kernels read and write.
  const memory_space& space() const { return *space_; }

  /// The contents of a bound constant, in the host's memory; null for other values and for an absent one.
  template <class T>
  const T* constant(std::uint32_t value) const {
    if (value == match_record::nothing || graph_->at(value).role != value_role::constant) return nullptr;
    return reinterpret_cast<const T*>(graph_->bytes_of(value).data());
  }
  template <class T>
  const T* constant(const bound_value& v) const {
    return constant<T>(v.value);
  }
  /// The packed form of a bound constant, in the backend's memory space. It is made once, and shared by all kernels that pack
  /// the constant the same way. `pack` writes to the host's memory.
  std::shared_ptr<const std::byte> packed(std::uint32_t value, const std::string& packing, std::size_t bytes,
                                          const std::function<void(std::byte*)>& pack) const {
    return packed_->get(graph_->constant(value).bytes, packing, bytes, pack, *space_);
  }
  const graph& network() const { return *graph_; }

  /// The scale of the integers as which a value is stored, if some form of the kernel stores it as integers of 8 bits. Errors: the plan
  /// has none.
  integer_scale scale_of(std::uint32_t value, dtype element) const {
    const std::optional<integer_scale> known = scales_ != nullptr ? scales_->of(value, element) : std::nullopt;
    if (known) return *known;
    throw error(error_kind::unsupported, "has no scale for integers of 8 bits", "value " + graph_->value_name(value),
                "calibrate the network");
  }
  /// Null: values have no scales.
  const value_scales* scales() const { return scales_; }
  /// Null: values have no scales. They must live as long as the context.
  void set_scales(const value_scales* scales) { scales_ = scales; }

 private:
  const graph* graph_;
  int threads_;
  collage::configuration configuration_;
  packed_weights* packed_;
  const value_scales* scales_ = nullptr;
  const memory_space* space_;
};

}  // namespace collage::inline v0
