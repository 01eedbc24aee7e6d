/* Which step of a network takes how long: profile_steps NAME, one of the zoo */
#include <collage.h>
#include <stdio.h>
#include <stdlib.h>

static void check(collage_status status) {
  if (status == COLLAGE_OK) return;
  fprintf(stderr, "%s\n", collage_last_error());
  exit((int)status);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  collage_network* network = NULL;
  collage_plan* plan = NULL;
  collage_engine* engine = NULL;
  collage_context* context = NULL;
  check(collage_network_from_zoo(argv[1], &network));
  const collage_place_options how = {.struct_size = sizeof how, .how = COLLAGE_PLACE_PRIORITY};
  check(collage_plan_place(network, &how, &plan));
  check(collage_engine_create(plan, NULL, &engine));
  check(collage_context_create(engine, NULL, &context));

  collage_engine_info info = {.struct_size = sizeof info};
  check(collage_engine_get_info(engine, &info));
  for (size_t i = 0; i < info.inputs; ++i) {
    void* input = NULL; /* memory of the context's own, all zero */
    check(collage_context_input(context, i, &input));
  }
  double* ms = malloc(info.steps * sizeof *ms);
  if (ms == NULL) return 1;
  check(collage_context_run(context)); /* the first run touches memory that nobody has used yet */
  check(collage_context_run_profiled(context, ms, info.steps));
  for (size_t i = 0; i < info.steps; ++i) {
    collage_step step = {.struct_size = sizeof step};
    check(collage_engine_step(engine, i, &step));
    printf("%8.4f ms  %-8s  %-24s  %s\n", ms[i], step.backend, step.label, step.kernel);
  }
  printf("%d threads, waiting policy %s, arena of %zu bytes\n", (int)info.threads, info.waiting_policy,
         info.arena_bytes);
  free(ms);
  collage_context_release(context);
  collage_engine_release(engine);
  collage_plan_release(plan);
  collage_network_release(network);
  return 0;
}
