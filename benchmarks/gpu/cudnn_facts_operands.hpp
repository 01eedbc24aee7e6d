// For cudnn_facts: the memory of a graph's tensors, written and read as numbers.
#pragma once

#include "cudnn_facts_graph.hpp"
#include "cudnn_facts_session.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace facts {

/// The tensors' memory, filled with random numbers, and the variant pack that names it. Empty in a dry run.
class operands {
 public:
  operands(session& s, operation_graph& graph) : session_(s), graph_(graph) {
    if (!s.device) return;
    for (const tensor& t : graph.tensors)
      memory_.push_back(t.is_virtual || t.by_value ? nullptr : std::make_unique<gpu::memory>(*s.device, t.bytes()));
  }
  /// A pack with workspace of at least `bytes`.
  descriptor pack(std::int64_t bytes) {
    void* const workspace = session_.workspace_of(bytes);
    extents ids;
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      tensor& t = graph_.tensors[i];
      if (t.is_virtual) continue;
      ids.push_back(t.id);
      pointers.push_back(t.by_value ? static_cast<void*>(&t.value) : memory_[i]->pointer());
    }
    descriptor made(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    made.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids).set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers);
    made.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
    made.finalize("finalize a variant pack");
    return made;
  }
  /// Writes numbers, in the order of the dimensions, and rounds them to the tensor's type.
  void write(std::size_t which, std::vector<double>& values) {
    const tensor& t = graph_.tensors[which];
    std::vector<std::byte> bytes(t.bytes());
    for_each_element(t, [&](std::size_t logical, std::size_t place) {
      const auto number = static_cast<float>(values[logical]);
      if (t.type == CUDNN_DATA_BFLOAT16) {
        const std::uint16_t half = to_bf16(number);
        std::memcpy(&bytes[place * 2], &half, 2);
        values[logical] = from_bf16(half);
      } else {
        std::memcpy(&bytes[place * 4], &number, 4);
        values[logical] = number;
      }
    });
    const gpu::session& on = *session_.device;
    on.cu.check(on.cu.to_device(memory_[which]->at(), bytes.data(), bytes.size(), on.stream), "a copy");
    on.finish();
  }
  std::vector<double> read(std::size_t which) const {
    const tensor& t = graph_.tensors[which];
    std::vector<std::byte> bytes(t.bytes());
    const gpu::session& on = *session_.device;
    on.cu.check(on.cu.to_host(bytes.data(), memory_[which]->at(), bytes.size(), on.stream), "a copy");
    on.finish();
    std::vector<double> values(static_cast<std::size_t>(t.elements()));
    for_each_element(t, [&](std::size_t logical, std::size_t place) {
      float number = 0;
      std::uint16_t half = 0;
      if (t.type == CUDNN_DATA_BFLOAT16) std::memcpy(&half, &bytes[place * 2], 2);
      if (t.type == CUDNN_DATA_BFLOAT16) number = from_bf16(half);
      if (t.type != CUDNN_DATA_BFLOAT16) std::memcpy(&number, &bytes[place * 4], 4);
      values[logical] = number;
    });
    return values;
  }
  /// Fills a tensor with NaN.
  void clear(std::size_t which) {
    const gpu::session& on = *session_.device;
    on.cu.check(on.cu.fill(memory_[which]->at(), 0xff, memory_[which]->bytes(), on.stream), "filling memory");
    on.finish();
  }

 private:
  static std::uint16_t to_bf16(float v) {
    return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(v) + 0x8000U) >> 16);
  }
  static float from_bf16(std::uint16_t v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v) << 16); }
  template <typename F>
  static void for_each_element(const tensor& t, F&& act) {
    for (std::int64_t i = 0; i < t.elements(); ++i) {
      std::int64_t rest = i, place = 0;
      for (std::size_t d = t.dims.size(); d-- > 0; rest /= t.dims[d]) place += rest % t.dims[d] * t.strides[d];
      act(static_cast<std::size_t>(i), static_cast<std::size_t>(place));
    }
  }

  session& session_;
  operation_graph& graph_;
  std::vector<std::unique_ptr<gpu::memory>> memory_;
};

}  // namespace facts
