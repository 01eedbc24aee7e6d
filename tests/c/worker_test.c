/* Workers of a program whose main does not call collage_worker: worker_test MODEL. The model is the plain one of make_model.py. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

/* Places the network by measuring. The report says that it was measured there. */
static void measured(const collage_network* network, const char* there) {
  const collage_place_options how = {
      .struct_size = sizeof how, .threads = 1, .compare_s = 0.05, .store = "none", .backends = "portable"};
  collage_plan* plan = NULL;
  const char* json = "";
  if (!DONE(collage_plan_place(network, &how, &plan)) || !DONE(collage_plan_json(plan, &json))) return;
  if (!CHECK(strstr(json, there) != NULL)) printf("wanted %s in %s\n", there, json);
  collage_plan_release(plan);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int64_t rows[] = {5, 4};
  const collage_input_shape shape = {"x", rows, 2};
  const collage_network_options options = {.struct_size = sizeof options, .shapes = &shape, .shape_count = 1};
  collage_network* network = NULL;
  if (!DONE(collage_network_from_file(argv[1], &options, &network))) return 1;

  measured(network, "\"where\": \"in a worker\"");
  CHECK(chdir("/") == 0);
  measured(network, "\"where\": \"in a worker\"");

  CHECK(setenv("COLLAGE_WORKER", "none", 1) == 0);
  measured(network, "\"where\": \"in this process (COLLAGE_WORKER is none)\"");
  CHECK(setenv("COLLAGE_WORKER", "/nowhere/worker", 1) == 0);
  measured(network, "\"where\": \"in this process (COLLAGE_WORKER is /nowhere/worker, and there is no such file)\"");

  collage_network_release(network);
  if (failures == 0) printf("workers are found, and done without\n");
  return failures == 0 ? 0 : 1;
}
