/* A network from an ONNX file, placed once and run from C: run_network MODEL.onnx */
#include <collage.h>
#include <stdio.h>
#include <stdlib.h>

static void check(collage_status status) {
  if (status == COLLAGE_OK) return;
  fprintf(stderr, "%s\n", collage_last_error());
  exit((int)status);
}

int main(int argc, char** argv) {
  if (collage_worker(argc, argv)) return 0; /* kernels are measured in this program started again */
  if (argc != 2) return 2;
  float x[2][4] = {{1, 2, 3, 4}, {4, 3, 2, 1}}, y[2][3];

  /* The file leaves the number of rows open. */
  const int64_t rows[] = {2, 4};
  const collage_input_shape shape = {.input = "x", .extents = rows, .rank = 2};
  const collage_network_options options = {.struct_size = sizeof options, .shapes = &shape, .shape_count = 1};
  collage_network* network = NULL;
  check(collage_network_from_file(argv[1], &options, &network));

  /* Measured at the first start; at the next ones the plan is read, unless something has changed since. */
  collage_plan* plan = NULL;
  if (collage_plan_load(network, "run_network.plan.json", NULL, &plan) != COLLAGE_OK) {
    const collage_place_options how = {.struct_size = sizeof how, .threads = 1, .compare_s = 0.2};
    check(collage_plan_place(network, &how, &plan));
    check(collage_plan_save(plan, "run_network.plan.json"));
  }

  collage_engine* engine = NULL;
  check(collage_engine_create(plan, NULL, &engine));
  collage_plan_release(plan); /* the engine needs neither, and weights that it has packed go now */
  collage_network_release(network);

  collage_context* context = NULL; /* one for each thread that runs */
  check(collage_context_create(engine, NULL, &context));
  check(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, x, sizeof x));
  check(collage_context_bind_output(context, 0, COLLAGE_DTYPE_F32, y, sizeof y));
  for (int i = 0; i < 3; ++i) {
    check(collage_context_run(context));
    printf("%g %g %g\n", (double)y[0][0], (double)y[0][1], (double)y[0][2]);
    x[0][0] += 1; /* the next run reads it where it is */
  }
  collage_context_release(context);
  collage_engine_release(engine);
  return 0;
}
