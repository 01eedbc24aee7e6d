/* Forks through the C interface: a child can use what its parent has placed, built and run. */
#define _DEFAULT_SOURCE
#include "check.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ELEMENTS = 64 * 256 };
static float input[ELEMENTS];

static collage_engine* engine_of(const collage_plan* plan) {
  collage_engine* engine = NULL;
  DONE(collage_engine_create(plan, NULL, &engine));
  return engine;
}

static collage_context* context_of(const collage_engine* engine, float* output) {
  collage_context* context = NULL;
  DONE(collage_context_create(engine, NULL, &context));
  DONE(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, input, sizeof input));
  DONE(collage_context_bind_output(context, 0, COLLAGE_DTYPE_F32, output, sizeof input));
  return context;
}

/* What the parent has when it forks. */
struct made {
  const collage_plan* plan;
  const collage_engine* engine; /* NULL: the child builds it */
  collage_context* context;     /* NULL: the child makes it */
};

/* The child runs once and writes to memory that it shares with its parent. A child that hangs is ended. */
static void run_in_child(struct made had, float* output, const char* when) {
  memset(output, 0, sizeof input);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    failures = 0; /* those of the parent are told there */
    if (had.engine == NULL) had.engine = engine_of(had.plan);
    if (had.context == NULL) had.context = context_of(had.engine, output);
    DONE(collage_context_run(had.context));
    fflush(stdout); /* what the checks have told */
    _exit(failures == 0 ? 0 : 1);
  }
  int status = -1;
  if (CHECK(child > 0 && waitpid(child, &status, 0) == child) && !CHECK(status == 0))
    printf("%s: the child ended with %d\n", when, status);
}

int main(void) {
  float* output = mmap(NULL, sizeof input, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  float* found = malloc(sizeof input);
  if (!CHECK(output != MAP_FAILED && found != NULL)) return 1;
  for (int i = 0; i < ELEMENTS; ++i) input[i] = (float)(i % 13 - 6) / 8;

  collage_network* network = NULL;
  collage_plan* plan = NULL;
  DONE(collage_network_from_zoo("bert-paper", &network));
  /* Placing compares kernels with the reference in this process, with two threads. */
  const collage_place_options how = {
      .struct_size = sizeof how, .threads = 2, .how = COLLAGE_PLACE_PRIORITY, .backends = "portable", .store = "none"};
  DONE(collage_plan_place(network, &how, &plan));
  if (plan == NULL) return 1;

  run_in_child((struct made){plan, NULL, NULL}, output, "after placing");
  memcpy(found, output, sizeof input);
  collage_engine* engine = engine_of(plan);
  run_in_child((struct made){plan, engine, NULL}, output, "with an engine that never ran");
  CHECK(memcmp(found, output, sizeof input) == 0);
  collage_context* context = context_of(engine, output);
  DONE(collage_context_run(context));
  CHECK(memcmp(found, output, sizeof input) == 0);
  run_in_child((struct made){plan, engine, context}, output, "after a run");
  CHECK(memcmp(found, output, sizeof input) == 0);
  DONE(collage_context_run(context)); /* the parent goes on */
  CHECK(memcmp(found, output, sizeof input) == 0);

  collage_context_release(context);
  collage_engine_release(engine);
  collage_plan_release(plan);
  collage_network_release(network);
  free(found);
  munmap(output, sizeof input);
  return failures == 0 ? 0 : 1;
}
