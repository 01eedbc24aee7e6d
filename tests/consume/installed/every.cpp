// Every backend of the package as one set, without an #if of the user's.
#include <collage/every_backend.hpp>
#include <collage/run/backend_table.hpp>

#include <cstdio>

static_assert(collage::every_backend::size > 0);

int main() {
  for (const collage::backend_entry& b : collage::table_of<collage::every_backend>) std::printf("%s\n", b.name);
}
