// Memory spaces: values in the memory of a device, whose addresses the host cannot touch and which does later what it is asked
// for; engines, plans and placing over it.
#include "random_placement.hpp"
#include "support/engine_check.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"
#include "support/plan_making.hpp"
#include "support/random_numbers.hpp"

#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/error.hpp>
#include <collage/fuse/combine.hpp>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/fuse.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/layout.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/space.hpp>
#include <collage/run/verify.hpp>
#include <collage/run/views.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace run_space_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::conversion_by;
using collage_test::kernel_group;
using collage_test::message_of;
using collage_test::view_group;
using collage_test::view_of;

// ---- A device -----------------------------------------------------------------------------------------------------------

/// What kernels take, on a clock that stands still otherwise.
double now_ms = 0;
double device_ms = 1, copy_ms = 5;
constexpr double host_ms = 10;

constexpr std::uintptr_t device_bit = std::uintptr_t{1} << 62;  // no address of a process has it
std::atomic<std::ptrdiff_t> device_buffers = 0;

bool is_on_device(const void* p) { return (reinterpret_cast<std::uintptr_t>(p) & device_bit) != 0; }
/// From the device's address to ours and back.
template <class T = std::byte>
T* other_address(const void* p) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(p) ^ device_bit);
}

/// What this thread asked of the device, and was not done yet.
std::vector<std::function<void()>>& asked() {
  thread_local std::vector<std::function<void()>> list;
  return list;
}
void finish_device() {
  for (const auto& work : std::exchange(asked(), {})) work();
}

template <std::uint32_t Id>
constexpr c::memory_space make_space(const char* name) {
  return {.id = Id,
          .name = name,
          .alignment = 64,
          .allocate = [](std::size_t bytes) -> void* {
            ++device_buffers;
            return other_address<void>(c::host_space.allocate(bytes));
          },
          .release =
              [](void* memory, std::size_t bytes) {
                finish_device();
                --device_buffers;
                c::host_space.release(other_address<void>(memory), bytes);
              },
          .copy =
              [](void* to, const void* from, std::size_t bytes) {
                ASSERT_TRUE(is_on_device(to) && is_on_device(from));
                asked().push_back([=] { std::memcpy(other_address(to), other_address(from), bytes); });
              },
          .from_host =
              [](void* to, const void* from, std::size_t bytes) {
                ASSERT_TRUE(is_on_device(to) && !is_on_device(from));
                const auto* first = static_cast<const std::byte*>(from);
                asked().push_back([to, staged = std::vector<std::byte>(first, first + bytes)] {
                  std::memcpy(other_address(to), staged.data(), staged.size());
                });
              },
          .to_host =
              [](void* to, const void* from, std::size_t bytes) {
                ASSERT_TRUE(!is_on_device(to) && is_on_device(from));
                finish_device();
                std::memcpy(to, other_address(from), bytes);
              },
          .finish = finish_device};
}
constexpr c::memory_space device_memory = make_space<16>("device");
constexpr c::memory_space second_space = make_space<17>("second");

const c::form there(c::plain, device_memory);
const c::form last_there(c::channels_last, device_memory);

/// Copies, and its own layouts: to the device, to the host, to channels last there and back.
template <class P>
void convert_layouts(const c::match<P>& m, std::size_t choice, c::value_forms& to) {
  const std::uint32_t in = m.record().argument[0], out = m.record().output[0];
  if (choice != 0) to.set(in, choice == 3 ? last_there : there);
  if (choice != 1) to.set(out, choice == 2 ? last_there : there);
}
template <class P>
c::tensor_type type_of(const c::match<P>& m) {
  return m.graph().values[m.record().output[0]].type;
}
template <class P>
c::kernel conversion_kernel(const c::match<P>& m, std::size_t choice) {
  const c::tensor_type type = type_of(m);
  const char* const names[] = {"copy to the device", "copy to the host", "to channels last", "to plain"};
  return {names[choice], [=](const c::kernel_call& call) {
            if (choice == 0) device_memory.from_host(call.out[0], call.in[0], type.bytes());
            if (choice == 1) device_memory.to_host(call.out[0], call.in[0], type.bytes());
            if (choice < 2) {
              now_ms += copy_ms;
              return;
            }
            const auto *in = call.in[0], *out = call.out[0];
            asked().push_back([=] {
              if (choice == 2) c::from_plain(type, c::channels_last, other_address(in), other_address(out));
              else c::to_plain(type, c::channels_last, other_address(in), other_address(out));
              now_ms += device_ms;
            });
          }};
}

using relu = c::single<op::relu>;
using mul = c::single<op::mul>;
using sub = c::single<op::sub>;
using convert = c::single<op::convert_layout>;

/// relu, plain and channels last; mul by a constant that it packs, and sub of whatever.
struct device : c::backend<"device"> {
  using patterns = c::patterns<relu, mul, sub, convert>;
  static constexpr const c::memory_space* space = &device_memory;
  static inline bool is_wrong = false, claims_too_much = false;

  static std::size_t choices(const c::match<relu>& m) { return type_of(m).dims.rank < 2 ? 1 : 2; }
  static std::size_t choices(const c::match<convert>& m) { return type_of(m).dims.rank < 2 ? 2 : 4; }
  static constexpr bool accepts(const c::match<mul>& m) {
    return m.graph().values[m.record().argument[1]].role == c::value_role::constant && is_uniform(m);
  }
  static constexpr bool accepts(const c::match<sub>& m) { return is_uniform(m); }
  template <class P>
  static constexpr bool is_uniform(const c::match<P>& m) {
    const auto& in = m.graph().values[m.record().argument[0]].type.dims;
    for (std::uint32_t i = 0; i < m.record().arguments; ++i)
      if (m.graph().values[m.record().argument[i]].type.dims != in) return false;
    return in.is_concrete();
  }
  static void layouts(const c::match<relu>& m, std::size_t choice, c::value_forms& to) {
    if (choice == 0) return;
    to.set(m.record().argument[0], c::channels_last);
    to.set(m.record().output[0], c::channels_last);
  }
  static void layouts(const c::match<convert>& m, std::size_t choice, c::value_forms& to) {
    convert_layouts(m, choice, to);
  }

  static c::kernel build(const c::match<relu>& m, c::build_context& context) {
    const auto count = static_cast<std::size_t>(type_of(m).dims.elements());
    const bool last = context.choice() == 1;
    // A workspace, so that it lies where it has to.
    c::kernel made(
        last ? "relu, channels last" : "relu",
        [count](const c::kernel_call& call) {
          const auto *in = call.in[0], *out = call.out[0];
          auto* const scratch = call.workspace;
          asked().push_back([=] {
            auto* const copy = other_address<float>(scratch);
            if (count != 0) std::memcpy(copy, other_address(in), count * sizeof(float));
            for (std::size_t i = 0; i < count; ++i) other_address<float>(out)[i] = copy[i] < 0 ? 0 : copy[i];
            if (is_wrong && count != 0) other_address<float>(out)[0] = 17;
            now_ms += device_ms;
          });
        },
        count * sizeof(float));
    return std::move(made.may_write_over(0));
  }
  static c::kernel build(const c::match<mul>& m, c::build_context& context) {
    const auto count = static_cast<std::size_t>(type_of(m).dims.elements());
    const std::uint32_t factor = m.record().argument[1];
    EXPECT_EQ(context.space(), device_memory);
    const float* const from = context.constant<float>(factor);
    const auto packed = context.packed(factor, "device negated", count * sizeof(float), [&](std::byte* to) {
      EXPECT_FALSE(is_on_device(to));
      for (std::size_t i = 0; i < count; ++i) reinterpret_cast<float*>(to)[i] = -from[i];
    });
    EXPECT_TRUE(count == 0 || is_on_device(packed.get()));
    c::kernel made("mul", [=](const c::kernel_call& call) {
      const auto *in = call.in[0], *out = call.out[0];
      asked().push_back([=] {
        for (std::size_t i = 0; i < count; ++i)
          other_address<float>(out)[i] = other_address<float>(in)[i] * -other_address<float>(packed.get())[i];
        now_ms += device_ms;
      });
    });
    return std::move(made.does_not_read(1));
  }
  static c::kernel build(const c::match<sub>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(type_of(m).dims.elements());
    const std::size_t second = m.record().arguments - 1;  // a value that is read twice is one argument
    c::kernel made("sub", [=](const c::kernel_call& call) {
      const auto *a = call.in[0], *b = call.in[second], *out = call.out[0];
      asked().push_back([=] {
        if (claims_too_much && count != 0) other_address<float>(out)[0] = 0;
        for (std::size_t i = 0; i < count; ++i)
          other_address<float>(out)[i] = other_address<float>(a)[i] - other_address<float>(b)[i];
        now_ms += device_ms;
      });
    });
    return claims_too_much ? std::move(made.may_write_over(0)) : made;
  }
  static c::kernel build(const c::match<convert>& m, c::build_context& context) {
    return conversion_kernel(m, context.choice());
  }
};

/// The same operators on the host.
struct host : c::backend<"host"> {
  using patterns = c::patterns<relu, mul, sub>;
  template <class P>
  static constexpr bool accepts(const c::match<P>& m) {
    return device::is_uniform(m);
  }
  template <class P>
  static c::kernel build(const c::match<P>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(type_of(m).dims.elements());
    const std::size_t second = m.record().arguments - 1;
    return {"loop", [=](const c::kernel_call& call) {
              EXPECT_FALSE(is_on_device(call.in[0]) || is_on_device(call.out[0]));
              const auto* a = static_cast<const float*>(call.in[0]);
              const auto* b = static_cast<const float*>(call.in[second]);
              auto* to = static_cast<float*>(call.out[0]);
              for (std::size_t i = 0; i < count; ++i) {
                if constexpr (std::is_same_v<P, relu>) to[i] = a[i] < 0 ? 0 : a[i];
                else if constexpr (std::is_same_v<P, mul>) to[i] = a[i] * b[i];
                else to[i] = a[i] - b[i];
              }
              now_ms += host_ms;
            }};
  }
};

using set = c::backend_set<host, device>;

c::plan_conversion conversion(std::uint32_t value, const c::form& from, const c::form& to) {
  std::size_t choice = 0;
  while (choice < 3 && (from != (choice == 0   ? c::form()
                                 : choice == 3 ? last_there
                                               : there) ||
                        to != (choice == 1   ? c::form()
                               : choice == 2 ? last_there
                                             : there)))
    ++choice;
  return conversion_by("device", value, from, to, choice);
}

const c::tensor_type small{c::dtype::f32, {1, 5, 3, 2}};

c::value constant(c::graph_builder& g, const std::string& name, const c::tensor_type& type, float first = 0.5F) {
  const c::buffer numbers(type.bytes());
  auto* const to = reinterpret_cast<float*>(numbers.data());
  for (std::int64_t i = 0; i < type.dims.elements(); ++i) to[i] = first + 0.25F * static_cast<float>(i % 7);
  const auto copy = std::make_shared<c::buffer>(type.bytes());
  if (type.bytes() != 0) std::memcpy(copy->data(), numbers.data(), type.bytes());
  return g.constant(name, type, std::shared_ptr<const std::byte>(copy, copy->data()));
}

c::place_options exact_clock() { return collage_test::clock_options(now_ms); }

std::size_t steps_on_device(const c::placement& p) {
  return static_cast<std::size_t>(
      std::ranges::count_if(p.groups, [](const c::plan_group& g) { return g.backend() == "device"; }));
}

// ---- Names and copies ---------------------------------------------------------------------------------------------------

TEST(spaces, a_form_says_layout_element_and_memory) {
  EXPECT_EQ(c::to_text(there), "plain@device");
  EXPECT_NE(there, c::plain);
  EXPECT_EQ(last_there.in(c::host_space), c::channels_last);
  EXPECT_EQ(there.in(second_space), c::form(c::plain, second_space));
  EXPECT_EQ(c::bytes_in(small, last_there), c::bytes_in(small, c::channels_last));
  EXPECT_EQ(c::bytes_in({c::dtype::f32, {3}}, there), 12U);
  const c::form half = c::form(c::blocked_16, device_memory).of(c::dtype::bf16);
  EXPECT_EQ(c::to_text(half), "blocked-16:bf16@device");
  EXPECT_EQ(2 * c::bytes_in(small, half), c::bytes_in(small, c::blocked_16));
  EXPECT_NE(half, c::form(c::blocked_16, device_memory));
  EXPECT_EQ(c::id_of(c::channels_last), c::channels_last.id);
  EXPECT_NE(c::id_of(half), c::id_of(c::form(c::blocked_16, device_memory)));
  // Floating-point elements are rounded, and integers are stored in no other type.
  const c::tensor_type four{c::dtype::f32, {4}};
  const float numbers[] = {1, -2.5F, 1 + 0x1p-9F, 3e38F};
  std::uint16_t rounded[4];
  float back[4];
  const c::form bf16 = c::form().of(c::dtype::bf16);
  c::from_plain(four, bf16, reinterpret_cast<const std::byte*>(numbers), reinterpret_cast<std::byte*>(rounded));
  c::to_plain(four, bf16, reinterpret_cast<const std::byte*>(rounded), reinterpret_cast<std::byte*>(back));
  EXPECT_EQ(back[0], 1);
  EXPECT_EQ(back[1], -2.5F);
  EXPECT_EQ(back[2], 1);
  EXPECT_NEAR(back[3], 3e38F, 3e38F / 256);
  const c::buffer host(c::bytes_in(small, c::blocked_16));
  EXPECT_THROW(c::from_plain({c::dtype::i32, {4}}, bf16, host.data(), host.data()), c::error);
  EXPECT_THROW(c::to_plain({c::dtype::i32, {4}}, bf16, host.data(), host.data()), c::error);
}

TEST(spaces, the_text_of_a_form_is_read_among_what_there_is) {
  const c::memory_space* const spaces[] = {&device_memory, &second_space};
  const auto read = [&](std::string_view text) { return c::form_of(text, c::shared_layouts, spaces); };
  for (const c::memory_space* s : {&c::host_space, spaces[0], spaces[1]})
    for (const c::layout& order : c::shared_layouts)
      for (const auto element :
           {std::optional<c::dtype>(), std::optional(c::dtype::bf16), std::optional(c::dtype::u8)}) {
        c::form f(order, *s);
        f.element = element;
        const std::optional<c::form> found = read(c::to_text(f));
        ASSERT_TRUE(found) << c::to_text(f);
        EXPECT_EQ(*found, f) << c::to_text(f);
      }
  for (const char* const wrong : {"", "@", "plain@", "@device", "plain@nowhere", "wide", "plain:", "plain:f31",
                                  "plain:@device", "plain@device:bf16", "plain@host", " plain"})
    EXPECT_FALSE(read(wrong)) << wrong;
}

TEST(spaces, bytes_are_copied_between_any_two) {
  const std::ptrdiff_t before = device_buffers;
  {
    const c::buffer a(100), b(100);
    const c::buffer one(100, device_memory), other(100, device_memory), far(100, second_space);
    for (int i = 0; i < 100; ++i) a.data()[i] = static_cast<std::byte>(i);
    std::memset(b.data(), 0, 100);
    c::copy_bytes(device_memory, one.data(), c::host_space, a.data(), 100);
    c::copy_bytes(device_memory, other.data(), device_memory, one.data(), 100);
    c::copy_bytes(second_space, far.data(), device_memory, other.data(), 100);
    c::copy_bytes(c::host_space, b.data(), second_space, far.data(), 100);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), 100), 0);
    c::copy_bytes(device_memory, nullptr, c::host_space, nullptr, 0);
  }
  EXPECT_EQ(device_buffers, before);
}

TEST(spaces, tables_tell_which_there_are) {
  EXPECT_TRUE(c::spaces_of(c::table_of<c::backend_set<host>>).empty());
  ASSERT_EQ(c::spaces_of(c::table_of<set>).size(), 1U);
  const std::vector<c::form> layouts = c::forms_between(c::table_of<set>);
  ASSERT_EQ(layouts.size(), 2 * c::shared_layouts.size());
  EXPECT_EQ(layouts[c::shared_layouts.size()], there);
  static constexpr c::memory_space twin{.id = 16, .name = "twin"};
  c::backend_entry entries[] = {c::table_of<set>[1], c::table_of<set>[1]};
  entries[1].space = &twin;
  EXPECT_NE(message_of([&] { (void)c::spaces_of(entries); }).find("another one has its id or its name, device (16)"),
            std::string::npos);
  static constexpr c::memory_space namesake{.id = 18, .name = "device"}, nameless{.id = 19, .name = "a@b"};
  entries[1].space = &namesake;
  EXPECT_NE(message_of([&] { (void)c::spaces_of(entries); }).find("another one has its id or its name"),
            std::string::npos);
  entries[1].space = &nameless;
  EXPECT_NE(message_of([&] { (void)c::spaces_of(entries); }).find("its name is empty or has an @"), std::string::npos);
}

// ---- Engines --------------------------------------------------------------------------------------------------------------

/// relu, mul by a constant, sub of a constant: two on the device, one on the host, or otherwise.
c::graph chain() {
  c::graph_builder g;
  const c::value x = g.input("x", small);
  const c::value a = g(op::relu, x);
  const c::value b = g(op::mul, a, constant(g, "factor", small));
  g.output("y", g(op::sub, b, constant(g, "less", small, -1)));
  return g.finish();
}

TEST(spaces, engines_run_parts_elsewhere) {
  const c::graph network = chain();
  const c::graph_view view = network.view();
  const std::uint32_t x = network.inputs()[0], a = view.output_of(0), b = view.output_of(1), y = view.output_of(2);
  const std::ptrdiff_t before = device_buffers;
  for (unsigned which = 0; which < 8; ++which) {
    const auto on_device = [&](unsigned node) { return (which >> node & 1U) != 0; };
    c::placement p;
    const char* const kinds[] = {"relu", "mul", "sub"};
    const std::uint32_t values[] = {x, a, b, y};
    for (std::uint32_t n = 0; n < 3; ++n) {
      p.groups.push_back(kernel_group({n}, on_device(n) ? "device" : "host", kinds[n]));
      const bool was = n != 0 && on_device(n - 1);
      if (was != on_device(n))
        p.conversions.push_back(conversion(values[n], was ? there : c::form(), was ? c::form() : there));
    }
    if (on_device(2)) p.conversions.push_back(conversion(y, there, c::plain));
    const auto packed = std::make_shared<c::packed_weights>();
    const c::dynamic_engine engine(network, p, c::table_of<set>, 1, packed);
    EXPECT_EQ(packed->size(),
              (on_device(1) ? 1U : 0U) + (on_device(2) ? 1U : 0U));  // the factor packed, what is less as it is
    EXPECT_EQ(engine.arena_bytes(device_memory) != 0, which != 0);
    EXPECT_EQ(engine.arena_bytes(second_space), 0U);
    EXPECT_LE(engine.arena_lower_bound(device_memory), engine.arena_bytes(device_memory));
    c::run_buffers memory(network);
    memory.randomise(which);
    const std::vector<c::oracle_value> expected = c::evaluate(network, memory.inputs);
    c::dynamic_context context = engine.context();
    const c::buffer arena(engine.arena_bytes());
    c::dynamic_context given = engine.context({arena.data(), engine.arena_bytes()});
    for (c::dynamic_context* const one : {&context, &given}) {
      one->run(memory.inputs, memory.outputs);
      EXPECT_TRUE(asked().empty());
      EXPECT_TRUE(c::compare(memory.out[0], expected[0])) << which;
    }
    EXPECT_EQ(context.form_of(a), on_device(0) ? there : c::form());
    for (const c::step_info& s : engine.steps())
      if (s.nodes.empty()) EXPECT_EQ(s.backend, "device");
  }
  EXPECT_EQ(device_buffers, before);
}

TEST(spaces, observers_see_what_is_done) {
  const c::graph network = chain();
  const std::uint32_t x = network.inputs()[0], a = network.view().output_of(0);
  c::placement p;
  p.groups = {kernel_group({0}, "device", "relu"), kernel_group({1}, "host", "mul"), kernel_group({2}, "host", "sub")};
  p.conversions = {conversion(x, c::plain, there), conversion(a, there, c::plain)};
  const c::dynamic_engine engine(network, p, c::table_of<set>, 1);
  c::run_buffers memory(network);
  memory.randomise(3);
  struct seen {
    std::uint32_t value;
    std::size_t steps = 0;
    std::vector<float> numbers = {};
    static void after(void* data, std::size_t step, const c::dynamic_context& context) {
      auto& self = *static_cast<seen*>(data);
      ++self.steps;
      EXPECT_TRUE(asked().empty());
      if (step != 1) return;  // the first is the copy
      EXPECT_EQ(context.form_of(self.value), there);
      const auto* first = other_address<const float>(context.data_of(self.value));
      self.numbers.assign(first, first + small.dims.elements());
    }
  } found{a};
  engine.context().run(memory.inputs, memory.outputs, {&found, nullptr, &seen::after});
  EXPECT_EQ(found.steps, engine.steps().size());
  const auto in = memory.in[0].as<float>();
  ASSERT_EQ(found.numbers.size(), in.size());
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(found.numbers[i], std::max(in[i], 0.0F));
}

TEST(spaces, engines_refuse_what_is_not_copied_or_lies_elsewhere) {
  const c::graph network = chain();
  const std::uint32_t x = network.inputs()[0], a = network.view().output_of(0);
  c::placement good;
  good.groups = {kernel_group({0}, "device", "relu"), kernel_group({1}, "host", "mul"),
                 kernel_group({2}, "host", "sub")};
  good.conversions = {conversion(x, c::plain, there), conversion(a, there, c::plain)};
  const auto built = [&](const c::placement& p) {
    return message_of([&] { (void)c::dynamic_engine(network, p, c::table_of<set>, 1); });
  };
  EXPECT_EQ(built(good), "no error");
  c::placement p = good;
  p.conversions.erase(p.conversions.begin());
  EXPECT_NE(built(p).find("is needed as plain@device, but written as plain and not converted"), std::string::npos)
      << built(p);
  p = good;
  p.conversions.pop_back();
  EXPECT_NE(built(p).find("is needed as plain, but written as plain@device and not converted"), std::string::npos)
      << built(p);

  const c::dynamic_engine engine(network, good, c::table_of<set>, 1);
  c::dynamic_context context = engine.context();
  c::run_buffers memory(network);
  std::vector<c::const_tensor_view> inputs = memory.inputs;
  inputs[0].stored.space = &device_memory;
  EXPECT_EQ(message_of([&] { context.run(inputs, memory.outputs); }),
            "input x: lies in memory space device, but host memory is needed");
  std::vector<c::tensor_view> outputs = memory.outputs;
  outputs[0].stored.space = &device_memory;
  EXPECT_EQ(message_of([&] { context.run(memory.inputs, outputs); }),
            "output y: lies in memory space device, but host memory is needed");
}

TEST(spaces, threads_run_side_by_side) {
  const c::graph network = chain();
  const std::uint32_t x = network.inputs()[0], y = network.outputs()[0];
  c::placement p;
  p.groups = {kernel_group({0}, "device", "relu"), kernel_group({1}, "device", "mul"),
              kernel_group({2}, "device", "sub")};
  p.conversions = {conversion(x, c::plain, there), conversion(y, there, c::plain)};
  const c::dynamic_engine engine(network, p, c::table_of<set>, 1);
  collage_test::expect_agreement_in_threads(network, engine, 4, 50);
}

/// Places nodes by chance: on the device, plain or channels last, or on the host, and views in whichever layout they can be.
class any_placement : public collage_test::random_placement {
 public:
  any_placement(const c::graph& network, std::mt19937& random) : random_placement(network, random) { place_all(); }

  std::size_t views_there = 0;
  std::size_t chains = 0;

 private:
  void add(std::uint32_t n) override {
    const std::string kind = network_.node(n).kind->name;
    const std::vector<c::form> layouts{c::plain, there, last_there};
    c::form order = layouts[random_() % (kind == "relu" || kind == "concat" || kind == "slice" ? 3 : 2)];
    if (kind == "reshape" || !c::views_of(network_, n, order).empty()) {
      views_there += order == c::form() ? 0U : 1U;
      made.groups.push_back(view_group(n, order));
    } else if (kind == "concat" || kind == "slice") {
      order = c::plain;
      made.groups.push_back(kernel_group({n}, "portable", "loops"));
    } else {
      made.groups.push_back(
          kernel_group({n}, order == c::plain ? "host" : "device", kind, order == last_there ? 1 : 0));
    }
    for (const std::uint32_t v : network_.view().inputs_of(n))
      if (network_.at(v).role != c::value_role::constant) need(v, order);
    written_[network_.view().output_of(n)] = order;
  }
  /// A conversion changes the memory or the layout. Both at once take a chain over the plain forms.
  void need(std::uint32_t v, const c::form& wanted) override {
    c::form at = written_[v];
    for (const c::form& next : {c::form(c::plain, *at.space), c::form(c::plain, *wanted.space), wanted}) {
      if (at == wanted) return;
      if (at == next) continue;
      if (next != written_[v] && c::find_conversion(made, v, c::to_text(next)) == nullptr)
        made.conversions.push_back(conversion(v, at, next));
      chains += at != written_[v] ? 1U : 0U;
      at = next;
    }
  }
};

TEST(spaces, random_graphs_over_both_memories_agree_with_the_reference) {
  using all = c::backend_set<host, device, c::portable>;
  std::mt19937 random(static_cast<std::uint32_t>(collage_test::fresh_seed()));
  std::size_t views = 0, chains = 0;
  const std::ptrdiff_t before = device_buffers;
  for (unsigned trial = 0; trial < 400; ++trial) {
    c::graph_builder g;
    const c::tensor_type type{c::dtype::f32, {1, 16, 2, 4}};
    std::vector<c::value> values{g.input("x", type), g.input("y", type)};
    const auto any = [&] { return values[random() % values.size()]; };
    const auto of_same_type = [&](c::value x) {
      std::vector<c::value> same;
      for (const c::value v : values)
        if (g.type_of(v) == g.type_of(x)) same.push_back(v);
      return same[random() % same.size()];
    };
    for (std::size_t count = 2 + random() % 12; count > 0; --count) {
      const c::value x = any();
      const c::shape dims = g.type_of(x).dims;
      switch (random() % 6) {
        case 0: values.push_back(g(op::relu, x)); break;
        case 1: values.push_back(g(op::mul, x, constant(g, "c" + std::to_string(g.node_count()), g.type_of(x)))); break;
        case 2: values.push_back(g(op::sub, x, of_same_type(x))); break;
        case 3: values.push_back(g(op::reshape, x, {.dims = {1, dims[1], 4, 2}})); break;
        case 4: {
          const c::value parts[] = {x, of_same_type(x)};
          if (dims[1] < 100) values.push_back(g(op::concat, parts, {.axis = 1}));
          break;
        }
        default:
          if (dims[1] >= 16)
            values.push_back(
                g(op::slice, x,
                  {.starts = {0, 8, 0, 0}, .steps = {1, 1, 1, 1}, .extents = {1, dims[1] - 8, dims[2], dims[3]}}));
      }
    }
    g.output("last", values.back());
    g.output("some", any());
    const c::graph network = g.finish();
    const any_placement p(network, random);
    views += p.views_there;
    chains += p.chains;
    c::run_buffers memory(network);
    memory.randomise(trial);
    const c::dynamic_engine e(network, p.made, c::table_of<all>, 1);
    EXPECT_EQ(c::fault_of(e.code()), "") << c::to_text(e.code(), network);
    collage_test::expect_agreement(network, e, memory, "trial " + std::to_string(trial) + ", ");
  }
  EXPECT_GT(chains, 40U);
  EXPECT_GT(views, 10U);
  EXPECT_EQ(device_buffers, before);
}

// ---- Placing ----------------------------------------------------------------------------------------------------------------

c::graph relus(int count) {
  c::graph_builder g;
  c::value x = g.input("x", small);
  for (int i = 0; i < count; ++i) x = g(op::relu, x);
  g.output("y", x);
  return g.finish();
}

TEST(spaces, placing_copies_where_it_pays) {
  for (int count = 1; count <= 4; ++count)
    for (const double copy : {1.0, 9.0, 100.0}) {
      copy_ms = copy;
      const c::graph network = relus(count);
      const c::plan made = c::place<set>(network, exact_clock());
      const double there_ms = 2 * copy + count * device_ms, here_ms = count * host_ms;
      EXPECT_EQ(steps_on_device(made.chosen), there_ms < here_ms ? static_cast<std::size_t>(count) : 0U) << count;
      EXPECT_EQ(made.chosen.conversions.size(), there_ms < here_ms ? 2U : 0U);
      EXPECT_NEAR(made.chosen.cost_ms, std::min(there_ms, here_ms), 1e-6);
      EXPECT_NEAR(made.runs[0].median_ms, std::min(there_ms, here_ms), 1e-6);
      EXPECT_NEAR(made.lower_bound_ms, std::min(there_ms, here_ms), 1e-6);
      EXPECT_EQ(c::verify<set>(network, made).why(), "");
      if (there_ms < here_ms) EXPECT_EQ(made.chosen.groups[0].layout, "plain@device");
    }
  copy_ms = 5;
}

/// relu on the device for values that lie channels last there, and nothing else: what comes from the host takes two conversions.
struct last_device : c::backend<"last_device"> {
  using patterns = c::patterns<relu, convert>;
  static constexpr const c::memory_space* space = &device_memory;
  static std::size_t choices(const c::match<convert>& m) { return device::choices(m); }
  static void layouts(const c::match<relu>& m, std::size_t, c::value_forms& to) { device::layouts(m, 1, to); }
  static void layouts(const c::match<convert>& m, std::size_t choice, c::value_forms& to) {
    convert_layouts(m, choice, to);
  }
  static c::kernel build(const c::match<relu>& m, c::build_context& context) {
    context.set_configuration(c::configuration(1));
    return device::build(m, context);
  }
  static c::kernel build(const c::match<convert>& m, c::build_context& context) {
    return conversion_kernel(m, context.choice());
  }
};

TEST(spaces, chains_of_conversions_are_placed_where_no_single_one_exists) {
  using both = c::backend_set<host, last_device>;
  const c::graph network = relus(4);
  for (const double copy : {1.0, 100.0}) {
    copy_ms = copy;
    const c::plan made = c::place<both>(network, exact_clock());
    const double there_ms = 2 * copy + 2 * device_ms + 4 * device_ms, here_ms = 4 * host_ms;
    EXPECT_EQ(made.chosen.conversions.size(), there_ms < here_ms ? 4U : 0U);
    EXPECT_NEAR(made.chosen.cost_ms, std::min(there_ms, here_ms), 1e-6);
    EXPECT_NEAR(made.runs[0].median_ms, std::min(there_ms, here_ms), 1e-6);
    EXPECT_EQ(c::verify<both>(network, made).why(), "");
    const c::plan read = c::plan_from_json(c::plan_to_json(made, network), network, "plan.json");
    EXPECT_TRUE(c::same_steps(read.chosen, made.chosen));
    EXPECT_EQ(c::fault_of(c::engine<both>(network, read).code()), "");
  }
  copy_ms = 5;
}

TEST(spaces, a_chain_that_goes_in_circles_is_refused) {
  const c::graph network = relus(1);
  const std::uint32_t x = network.inputs()[0], y = network.outputs()[0];
  c::placement p;
  p.groups = {kernel_group({0}, "device", "relu", 1)};
  p.conversions = {conversion(x, c::plain, there), conversion(x, there, last_there), conversion(y, last_there, there),
                   conversion(y, there, c::plain)};
  const auto built = [&] { return message_of([&] { const c::dynamic_engine e(network, p, c::table_of<set>, 1); }); };
  EXPECT_EQ(built(), "no error");
  p.conversions[0] = conversion_by("device", x, last_there, there, 3);
  EXPECT_NE(built().find("not converted"), std::string::npos) << built();
}

TEST(spaces, plans_over_both_memories_are_files_as_others) {
  const c::graph network = chain();
  copy_ms = 1;
  const c::plan made = c::place<set>(network, exact_clock());
  copy_ms = 5;
  EXPECT_EQ(steps_on_device(made.chosen), 3U);
  const c::json text = c::plan_to_json(made, network);
  const c::plan read = c::plan_from_json(text, network, "plan.json");
  EXPECT_EQ(c::plan_to_json(read, network), text);
  EXPECT_EQ(c::verify<set>(network, read).why(), "");
  for (const char* const wrong : {"plain@", "@device", "wide@device", "plain@nowhere"}) {
    c::json other = text;
    for (c::json& one : other["chosen"]["conversions"])
      if (one["to"] == "plain@device") one["to"] = wrong;
    const std::string reason =
        message_of([&] { (void)c::engine<set>(network, c::plan_from_json(other, network, "plan.json")); });
    EXPECT_NE(reason.find(std::string(wrong) == "plain@nowhere" ? "not converted" : "known are plain"),
              std::string::npos)
        << wrong << ": " << reason;
  }
}

TEST(spaces, views_stay_on_the_device) {
  c::graph_builder g;
  c::value x = g(op::relu, g.input("x", small));
  x = g(op::reshape, x, {.dims = {6, 5}});
  g.output("y", g(op::relu, x));
  const c::graph network = g.finish();
  copy_ms = 1;
  const c::plan made = c::place<set>(network, exact_clock());
  copy_ms = 5;
  EXPECT_EQ(made.chosen.conversions.size(), 2U);
  EXPECT_NEAR(made.runs[0].median_ms, 2 * 1 + 2 * device_ms, 1e-6);
  ASSERT_EQ(made.chosen.groups.size(), 3U);
  EXPECT_TRUE(made.chosen.groups[1].is_view());
  EXPECT_EQ(made.chosen.groups[1].layout, "plain@device");
  EXPECT_EQ(std::get<c::view_step>(made.chosen.groups[1].step).form, "plain@device");
  const c::plan read = c::plan_from_json(c::plan_to_json(made, network), network, "plan.json");
  EXPECT_TRUE(c::same_steps(read.chosen, made.chosen));
  EXPECT_EQ(c::verify<set>(network, read).why(), "");
  c::plan other = read;
  view_of(other.chosen.groups[1]).form = "plain";
  EXPECT_FALSE(c::same_steps(other.chosen, made.chosen));
  EXPECT_NE(message_of([&] { (void)c::engine<set>(network, other); }).find("not converted"), std::string::npos);
  view_of(other.chosen.groups[1]).form = "plain@nowhere";
  EXPECT_NE(message_of([&] {
              (void)c::engine<set>(network, other);
            }).find("names form plain@nowhere, but no backend of this program has that memory space"),
            std::string::npos);
}

TEST(spaces, kernels_that_are_wrong_there_are_refused) {
  copy_ms = 1;
  device::is_wrong = true;
  c::place_report report;
  c::place_options o = exact_clock();
  const c::placed_plan made = c::place<set>(relus(4), o);
  report = made.report;
  device::is_wrong = false;
  EXPECT_EQ(steps_on_device(made.chosen), 0U);
  EXPECT_TRUE(std::ranges::any_of(report.refusals, [](const c::place_refusal& r) {
    return r.pattern == "relu" && r.reason.starts_with("wrong result");
  }));

  device::claims_too_much = true;
  const c::placed_plan careful = c::place<set>(chain(), o);
  report = careful.report;
  device::claims_too_much = false;
  copy_ms = 5;
  EXPECT_TRUE(std::ranges::any_of(report.refusals, [](const c::place_refusal& r) {
    return r.pattern == "sub" && r.reason.find("wrong result when it runs in place") != std::string::npos;
  }));
  EXPECT_EQ(steps_on_device(careful.chosen), 2U);
}

TEST(spaces, plans_by_rank_copy_as_well) {
  using device_first = c::backend_set<device, host>;
  const c::graph network = chain();
  c::place_options o = exact_clock();
  o.costs = c::placing_costs::none;
  const c::plan made = c::place<device_first>(network, o);
  EXPECT_EQ(steps_on_device(made.chosen), 3U);
  EXPECT_EQ(c::verify<device_first>(network, made).why(), "");
}

/// Groups of relu by a rule, on the device.
bool any_operator(const c::fuse::dataflow&, std::uint32_t) { return true; }
struct device_rule : c::backend<"device_rule"> {
  using patterns = c::patterns<convert>;
  static constexpr auto rule = c::fuse::by_fusion{any_operator, {.nodes = 8, .outputs = 1}};
  static constexpr const c::memory_space* space = &device_memory;
  static bool takes(const c::graph& network, std::uint32_t node) {
    return network.node(node).kind->id == c::kind_id<decltype(op::relu)>;
  }
  static std::size_t choices(const c::match<convert>&) { return 2; }
  static void layouts(const c::match<convert>& m, std::size_t choice, c::value_forms& to) {
    convert_layouts(m, choice, to);
  }
  static c::kernel build(const c::match<convert>& m, c::build_context& context) {
    return conversion_kernel(m, context.choice());
  }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    EXPECT_EQ(context.space(), device_memory);
    const auto count = static_cast<std::size_t>(context.network().type_of(group.outputs.front()).dims.elements());
    return {"relus", [count](const c::kernel_call& call) {
              const auto *in = call.in[0], *out = call.out[0];
              asked().push_back([=] {
                for (std::size_t i = 0; i < count; ++i)
                  other_address<float>(out)[i] = std::max(other_address<float>(in)[i], 0.0F);
                now_ms += device_ms;
              });
            }};
  }
};

TEST(spaces, rules_list_groups_for_a_device) {
  using ruled = c::backend_set<host, device_rule>;
  const c::graph network = relus(5);
  copy_ms = 1;
  const c::plan made = c::place<ruled>(network, exact_clock());
  copy_ms = 5;
  ASSERT_EQ(made.chosen.groups.size(), 1U);
  EXPECT_EQ(made.chosen.groups[0].backend(), "device_rule");
  EXPECT_EQ(made.chosen.groups[0].layout, "plain@device");
  EXPECT_NEAR(made.runs[0].median_ms, 2 * 1 + device_ms, 1e-6);
  EXPECT_EQ(c::verify<ruled>(network, made).why(), "");
}

/// A backend that copies and does nothing else is no rival of its own.
struct copies : c::backend<"copies"> {
  using patterns = c::patterns<convert>;
  static constexpr const c::memory_space* space = &device_memory;
  static std::size_t choices(const c::match<convert>&) { return 2; }
  static void layouts(const c::match<convert>& m, std::size_t choice, c::value_forms& to) {
    convert_layouts(m, choice, to);
  }
  static c::kernel build(const c::match<convert>& m, c::build_context& context) {
    return conversion_kernel(m, context.choice());
  }
};

TEST(spaces, who_only_copies_is_compared_with_nobody) {
  const c::plan made = c::place<c::backend_set<host, copies>>(relus(2), exact_clock());
  ASSERT_EQ(made.singles.size(), 1U);
  EXPECT_EQ(made.singles[0].name, "host");
  EXPECT_TRUE(made.chosen.conversions.empty());
}

}  // namespace run_space_test
