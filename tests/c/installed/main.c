#include <collage.h>
#include <collage_session.h>
#include <stdio.h>
#include <string.h>

// Whether some library that was opened when it was asked for is not found. What a device takes need not be there.
static int lacks_library(const char* system) {
  static const char* const excused[] = {"NVIDIA's driver ", "of CUDA 12 ", "of CUDA 12 or 13 "};
  const char* at = system;
  while ((at = strstr(at, "could not be opened")) != NULL) {
    int is_excused = 0;
    for (size_t i = 0; i < sizeof excused / sizeof *excused; ++i) {
      const size_t length = strlen(excused[i]);
      is_excused = is_excused || ((size_t)(at - system) >= length && strncmp(at - length, excused[i], length) == 0);
    }
    if (!is_excused) return 1;
    ++at;
  }
  return 0;
}

int main(void) {
  const collage_place_options how = {.struct_size = sizeof how, .how = COLLAGE_PLACE_PRIORITY, .threads = 1};
  collage_network* network = NULL;
  collage_plan* plan = NULL;
  collage_engine* engine = NULL;
  collage_context* context = NULL;
  void* input = NULL;
  const char* system = NULL;
  if (collage_abi_version() != COLLAGE_ABI_VERSION || collage_network_from_zoo("bert-paper", &network) != COLLAGE_OK ||
      collage_plan_place(network, &how, &plan) != COLLAGE_OK ||
      collage_engine_create(plan, NULL, &engine) != COLLAGE_OK ||
      collage_context_create(engine, NULL, &context) != COLLAGE_OK ||
      collage_context_input(context, 0, &input) != COLLAGE_OK || collage_context_run(context) != COLLAGE_OK) {
    fprintf(stderr, "%s\n", collage_last_error());
    return 1;
  }
  // What is opened when it is asked for is found where it was installed.
  if (collage_system_json(&system) != COLLAGE_OK || lacks_library(system)) {
    fprintf(stderr, "%s\n", system != NULL ? system : collage_last_error());
    return 1;
  }
  // Its worker, too: this program does not offer itself.
  const collage_place_options measured = {.struct_size = sizeof measured,
                                          .threads = 1,
                                          .budget_s = 0.2,
                                          .compare_s = 0.01,
                                          .store = "none",
                                          .backends = "portable"};
  collage_plan* measured_plan = NULL;
  const char* report = "";
  if (collage_plan_place(network, &measured, &measured_plan) != COLLAGE_OK ||
      collage_plan_json(measured_plan, &report) != COLLAGE_OK || strstr(report, "\"where\": \"in a worker\"") == NULL) {
    fprintf(stderr, "%s\n%s\n", collage_last_error(), report);
    return 1;
  }
  collage_plan_release(measured_plan);
  collage_session* session = NULL;
  if (collage_session_from_file("/nowhere/at.onnx", NULL, &session) == COLLAGE_OK) return 1;
  collage_context_release(context);
  collage_engine_release(engine);
  collage_plan_release(plan);
  collage_network_release(network);
  printf("collage %s\n", collage_version());
  return 0;
}
