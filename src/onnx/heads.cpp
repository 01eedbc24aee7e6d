// Heads of packed operands, and numbers of places.
#include "heads.hpp"

#include "importer.hpp"

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {

std::int64_t heads_of(const lowering& n, const shape& dims, const char* attribute) {
  if (dims.rank == 3 && !n.has_attribute(attribute))
    n.invalid(std::string("its operands of rank 3 need the attribute ") + attribute);
  const std::int64_t heads = n.integer(attribute, dims[1]);
  if (heads < 1) n.invalid(std::string("its attribute ") + attribute + " is " + std::to_string(heads));
  if (dims.rank == 4 && heads != dims[1])
    n.invalid(std::string("its attribute ") + attribute + " is " + std::to_string(heads) + ", but its operand has " +
              std::to_string(dims[1]) + " heads");
  if (dims.rank == 3 && dims[2] % heads != 0)
    n.invalid("its " + std::to_string(dims[2]) + " columns do not divide into " + std::to_string(heads) + " heads");
  return heads;
}

value numbers_below(lowering& n, std::int64_t count, const shape& dims) {
  n.driver().spend(static_cast<std::size_t>(count) * sizeof(std::int64_t));
  std::vector<std::int64_t> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), std::int64_t{0});
  return n.reshape(n.integers_constant(list), dims);
}

}  // namespace collage::inline v0::onnx
