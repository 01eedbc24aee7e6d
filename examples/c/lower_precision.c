/* The fastest plan in bfloat16 and float32 whose outputs err at most 1 %: lower_precision MODEL
   The model takes x, float32[N, 512]. */
#include <collage_precision.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 16, ROWS = 64, COLUMNS = 512 };

static void check(collage_status status) {
  if (status == COLLAGE_OK) return;
  fprintf(stderr, "%s\n", collage_last_error());
  exit((int)status);
}

/* Sample number `which`, written to the inputs of the network. The same number always means the same sample. */
static int write_sample(void* data, size_t which, void* const* inputs, size_t count) {
  const float* all = data; /* the program's own inputs; here they are read beforehand */
  if (which >= SAMPLES || count != 1) return COLLAGE_SAMPLE_END;
  memcpy(inputs[0], all + which * ROWS * COLUMNS, sizeof(float) * ROWS * COLUMNS);
  return COLLAGE_SAMPLE_WRITTEN;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  float* all = malloc(sizeof(float) * SAMPLES * ROWS * COLUMNS);
  if (all == NULL) return 1;
  for (size_t i = 0; i < (size_t)SAMPLES * ROWS * COLUMNS; ++i) all[i] = (float)(i * 37 % 1013) / 506 - 1;

  const int64_t extents[] = {ROWS, COLUMNS};
  const collage_input_shape shape = {.input = "x", .extents = extents, .rank = 2};
  const collage_network_options options = {.struct_size = sizeof options, .shapes = &shape, .shape_count = 1};
  collage_network* network = NULL;
  check(collage_network_from_file(argv[1], &options, &network));

  const collage_precision_options lower = {.struct_size = sizeof lower,
                                           .precision = "bf16",
                                           .error = 0.01,
                                           .sample = write_sample,
                                           .sample_data = all,
                                           .sample_count = SAMPLES};
  const collage_place_options how = {.struct_size = sizeof how, .threads = 1, .compare_s = 0.2, .precision = &lower};
  collage_plan* plan = NULL;
  check(collage_plan_place(network, &how, &plan));

  collage_plan_error error = {.struct_size = sizeof error};
  check(collage_plan_get_error(plan, &error));
  if (error.samples != 0)
    printf("the outputs err by %.2g, at most %.2g of %.2g\n", error.measured, error.upper, error.allowed);
  else printf("the plan is in float32: %s\n", error.why_unrounded);

  collage_plan_release(plan);
  collage_network_release(network);
  free(all);
  return 0;
}
