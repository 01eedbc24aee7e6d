// Versions, element types, and what is here.
#include "states.hpp"

#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/fwd.hpp>
#include <collage/measure/store.hpp>
#include <collage/run/log.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/waiting.hpp>
#include <collage/zoo/all.hpp>

#include <collage/every_backend.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace c = collage;

// The numbers are the library's own, and neither may change.
static_assert(COLLAGE_DTYPE_F32 == static_cast<int>(c::dtype::f32) &&
              COLLAGE_DTYPE_F64 == static_cast<int>(c::dtype::f64));
static_assert(COLLAGE_LOG_NOTE == static_cast<int>(c::log_level::note) &&
              COLLAGE_LOG_WARNING == static_cast<int>(c::log_level::warning));
static_assert(COLLAGE_DTYPE_F16 == static_cast<int>(c::dtype::f16) &&
              COLLAGE_DTYPE_BF16 == static_cast<int>(c::dtype::bf16));
static_assert(COLLAGE_DTYPE_I8 == static_cast<int>(c::dtype::i8) &&
              COLLAGE_DTYPE_I16 == static_cast<int>(c::dtype::i16));
static_assert(COLLAGE_DTYPE_I32 == static_cast<int>(c::dtype::i32) &&
              COLLAGE_DTYPE_I64 == static_cast<int>(c::dtype::i64));
static_assert(COLLAGE_DTYPE_U8 == static_cast<int>(c::dtype::u8) &&
              COLLAGE_DTYPE_U16 == static_cast<int>(c::dtype::u16));
static_assert(COLLAGE_DTYPE_U32 == static_cast<int>(c::dtype::u32) &&
              COLLAGE_DTYPE_U64 == static_cast<int>(c::dtype::u64));
static_assert(COLLAGE_DTYPE_BOOL == static_cast<int>(c::dtype::boolean));
static_assert(COLLAGE_DTYPE_I4 == static_cast<int>(c::dtype::i4) &&
              COLLAGE_DTYPE_U4 == static_cast<int>(c::dtype::u4) &&
              COLLAGE_DTYPE_I2 == static_cast<int>(c::dtype::i2) && COLLAGE_DTYPE_U2 == static_cast<int>(c::dtype::u2));
static_assert(COLLAGE_DTYPE_F8E4M3FN == static_cast<int>(c::dtype::f8e4m3fn) &&
              COLLAGE_DTYPE_F8E4M3FNUZ == static_cast<int>(c::dtype::f8e4m3fnuz) &&
              COLLAGE_DTYPE_F8E5M2 == static_cast<int>(c::dtype::f8e5m2) &&
              COLLAGE_DTYPE_F8E5M2FNUZ == static_cast<int>(c::dtype::f8e5m2fnuz));
static_assert(COLLAGE_DTYPE_F8E8M0 == static_cast<int>(c::dtype::f8e8m0) &&
              COLLAGE_DTYPE_F4E2M1 == static_cast<int>(c::dtype::f4e2m1));
static_assert(COLLAGE_MAX_RANK == c::shape::max_rank);

namespace c_interface {

c::backend_table backends() { return c::table_of<c::every_backend>; }

namespace {

c::json default_store() {
  try {
    return c::default_store_path();
  } catch (const c::error&) { return {}; }
}

/// How threads wait is the choice of the process, and holds until the library is unloaded.
struct waiting_choice {
  std::mutex mutex;
  bool is_made = false;
  std::optional<c::brief_waiting> brief;
};
waiting_choice& waiting() {
  static waiting_choice choice;
  return choice;
}

#ifdef COLLAGE_WAITS_BRIEFLY_AT_LOAD
extern "C" bool collage_end_of_loading(bool only_if_in_vain);  // src/at_load/
/// Before any other code here asks for the policy.
__attribute__((constructor(101))) void check_loading() { collage_end_of_loading(true); }
/// The policy is read while the environment has what libgomp has read.
[[maybe_unused]] const bool is_loaded = [] {
  static_cast<void>(c::waiting_policy());
  return collage_end_of_loading(false);
}();
#endif

std::string describe_system() {
  c::json zoo = c::json::array(), found = c::json::array();
  for (const c::zoo::network& n : c::zoo::networks) zoo.push_back({{"name", n.name}, {"about", n.about}});
  for (const c::backend_entry& b : backends()) {
    const c::probe_result p = b.probe();
    found.push_back({{"name", b.name},
                     {"available", p.available},
                     {"version", p.version},
                     {"details", p.details},
                     {"reason", p.reason}});
  }
#if COLLAGE_HAS_ONNX
  constexpr bool onnx = true;
#else
  constexpr bool onnx = false;
#endif
  return c::to_text({{"version", collage_version()},
                     {"abi", collage_abi_version()},
                     {"processor", c::processor_name()},
                     {"available_threads", c::available_threads()},
                     {"waiting_policy", c::waiting_policy()},
                     {"default_store", default_store()},
                     {"zoo", zoo},
                     {"onnx", onnx},
                     {"backends", found}});
}

/// The description while threads wait as they do now.
const std::string& system_text() {
  static std::mutex mutex;
  static std::map<std::string, std::string> texts;  // by waiting policy: a caller may hold an earlier one
  const std::lock_guard lock(mutex);
  std::string& text = texts[c::waiting_policy()];
  if (text.empty()) text = describe_system();
  return text;
}

bool is_dtype(std::int32_t number) { return number >= COLLAGE_DTYPE_F32 && number <= COLLAGE_DTYPE_F4E2M1; }

}  // namespace

void wait_briefly_unless_chosen() {
  waiting_choice& now = waiting();
  const std::lock_guard lock(now.mutex);
  if (!std::exchange(now.is_made, true)) now.brief.emplace();
}

bool waits_briefly() {
  waiting_choice& now = waiting();
  const std::lock_guard lock(now.mutex);
  return now.brief.has_value() || c::waiting_policy() == "brief";
}

namespace {

void choose_waiting(const call& here, const std::string& policy) {
  if (policy != "brief" && policy != "default")
    here.misuse("'" + policy + "' is no waiting policy that can be set", "give \"brief\" or \"default\"");
  waiting_choice& now = waiting();
  const std::lock_guard lock(now.mutex);
  now.is_made = true;
  if (policy == "default") now.brief.reset();
  else if (!now.brief) now.brief.emplace();
}

}  // namespace
}  // namespace c_interface

using c_interface::call;
using c_interface::guarded;

std::uint32_t collage_abi_version() noexcept { return COLLAGE_ABI_VERSION; }

const char* collage_version() noexcept { return COLLAGE_VERSION; }

collage_status collage_system_json(const char** json) noexcept {
  return guarded(__func__, [&](const call& here) {
    const char*& to = here.target(json, "json");
    c_interface::wait_briefly_unless_chosen();
    to = c_interface::system_text().c_str();
  });
}

collage_status collage_set_waiting(const char* policy) noexcept {
  return guarded(__func__, [&](const call& here) { c_interface::choose_waiting(here, here.text(policy, "policy")); });
}

std::size_t collage_dtype_size(std::int32_t dtype) noexcept {
  return c_interface::is_dtype(dtype) ? c::size_of(static_cast<c::dtype>(dtype)) : 0;
}

const char* collage_dtype_name(std::int32_t dtype) noexcept {
  return c_interface::is_dtype(dtype) ? c::name_of(static_cast<c::dtype>(dtype)) : "";
}

void collage_set_log(collage_log_function function, void* data) noexcept {
  // The log calls `forward` under its lock. It is removed first, so that no call reads the listener while it changes.
  static std::mutex setting;
  static collage_log_function listener = nullptr;
  const std::lock_guard lock(setting);
  c::set_log(nullptr);
  listener = function;
  constexpr auto forward = [](void* to, c::log_level level, const char* text) {
    listener(to, static_cast<std::int32_t>(level), text);
  };
  if (function != nullptr) c::set_log(forward, data);
}
