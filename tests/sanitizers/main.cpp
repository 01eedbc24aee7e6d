// Commits the fault that it is asked for:  collage_faults own|clang FAULT
#include <iostream>
#include <string_view>

namespace own {
int commit(std::string_view fault);
}
namespace clang {
int commit(std::string_view fault);
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const int result = std::string_view(arguments[1]) == "own" ? own::commit(arguments[2]) : clang::commit(arguments[2]);
  std::cout << (result == 8 ? "no fault\n" : "not found\n");
}
