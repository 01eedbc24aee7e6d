// Programs: what an engine does step by step, as a value that can be read, checked and printed.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/form.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/space.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// An input or output of a network.
struct port {
  std::string name;
  tensor_type type;
};

/// Memory that instructions read and write: a value of the network in one form, or a workspace.
struct program_region {
  enum class home : std::uint8_t {
    nowhere,         ///< no instruction needs it
    callers_input,   ///< the memory that the caller passes for input `index`
    callers_output,  ///< the memory that the caller passes for output `index`
    weights,         ///< constant `index` of the engine
    arena,           ///< `offset` bytes into arena `index`
    part,            ///< `offset` bytes into region `index`, which is no part itself
  };
  static constexpr std::uint32_t none = 0xFFFFFFFF;

  std::uint32_t value = none;  ///< of the network; `none`: a workspace
  form stored;
  std::size_t bytes = 0;
  home where = home::nowhere;
  std::uint32_t index = 0;
  std::size_t offset = 0;
  /// For a region in an arena: the first instruction that writes it, and the last that needs it. Outputs that are copied at the
  /// end live until the last instruction.
  std::uint32_t first = 0, last = 0;
};

/// How an instruction uses a region.
enum class access : std::uint8_t { in, out, inout };

/// One argument or result of an instruction.
struct program_operand {
  std::uint32_t region = program_region::none;  ///< `none`: the kernel does not read it, or nothing reads the result
  access how = access::in;  ///< inout: the result lies where an argument lay, and is written over it
};

/// One entry of a program. A view has an entry where its value becomes available, but nothing runs for it.
struct program_instruction {
  plan_step step;
  std::string kernel;                ///< the implementation; "view" for a view
  std::vector<std::uint32_t> nodes;  ///< of the network; none for conversions and copies
  std::string label;                 ///< the name of the last node, or of the value that is converted or copied
  std::vector<program_operand> in;   ///< kernel_call::in
  std::vector<program_operand> out;  ///< kernel_call::out
  std::uint32_t workspace = program_region::none;  ///< a region

  bool is_view() const { return std::holds_alternative<view_step>(step); }
};

/// Memory that a context has in one memory space.
struct program_arena {
  const memory_space* space = &host_space;
  std::size_t bytes = 0;
  std::size_t bound = 0;  ///< the largest sum of regions alive at one instruction: no arena can be smaller
};

/// The work of one run, in order. The engine holds the kernels: instruction i runs kernel i.
struct program {
  std::vector<port> inputs, outputs;
  std::vector<program_region> regions;  ///< the network's values first, by number
  std::vector<program_instruction> instructions;
  std::vector<program_arena> arenas;  ///< the host's first
  std::size_t constants = 0;          ///< how many constants the engine keeps
  int threads = 1;
};

/// The first fault of a program, in one sentence; empty if the program is sound. A sound program writes every region before it
/// reads it, and reads it before it overwrites it. Every region lies within its arena, and every output is written.
std::string fault_of(const program& p);

/// The program as text, one line for each region and instruction. `network` names values and nodes.
std::string to_text(const program& p, const graph& network);

}  // namespace collage::inline v0
