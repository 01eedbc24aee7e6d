// Faults that the sanitizers must find. Each compiler compiles this file into a namespace of its own.
#include <climits>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace COLLAGE_MAKER {

// What is volatile the compiler cannot evaluate.
int commit(std::string_view fault) {
  volatile std::size_t beyond = 8;
  const std::vector<int> elements(8, 1);
  if (fault == "heap") return elements.data()[beyond];
  if (fault == "freed") {
    auto made = std::make_unique<int>(1);
    const int* volatile kept = made.get();
    made.reset();
    return *kept;
  }
  if (fault == "leak") {
    int* volatile made = new int[100];
    made = nullptr;
    return made == nullptr ? 1 : 0;
  }
  if (fault == "index") {
    const int local[8] = {};
    return local[beyond];
  }
  if (fault == "overflow") {
    volatile int most = INT_MAX;
    return most + elements[0];
  }
  if (fault == "null") {
    const int* volatile nothing = nullptr;
    return *nothing;
  }
  return std::accumulate(elements.begin(), elements.end(), 0);
}

}  // namespace COLLAGE_MAKER
