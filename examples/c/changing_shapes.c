/* A model whose shapes change from run to run, with state that runs carry on: changing_shapes MODEL.onnx */
#include <collage_session.h>
#include <stdio.h>
#include <stdlib.h>

static void check(collage_status status) {
  if (status == COLLAGE_OK) return;
  fprintf(stderr, "%s\n", collage_last_error());
  exit((int)status);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  float x[3][4] = {{1, 2, 3, 4}, {4, 3, 2, 1}, {1, 0, 1, 0}};

  /* The model has inputs x, h and past. Two of them are outputs of the run before. */
  const collage_carried carried[] = {{"h_next", "h"}, {"present", "past"}};
  const collage_session_options options = {.struct_size = sizeof options, .carried = carried, .carried_count = 2};
  collage_session* session = NULL;
  check(collage_session_from_file(argv[1], &options, &session));
  collage_session_context* context = NULL; /* one for each thread that runs */
  check(collage_session_context_create(session, &context));

  for (int64_t rows = 1; rows <= 3; ++rows) {
    check(collage_session_context_reset(context)); /* a new sequence begins */
    for (int run = 0; run < 2; ++run) {
      const collage_tensor input = {COLLAGE_DTYPE_F32, 2, {rows, 4}, x, (size_t)rows * sizeof x[0]};
      check(collage_session_context_run(context, &input, 1, NULL));
      collage_tensor h, past;
      check(collage_session_context_output(context, 0, NULL, &h)); /* valid until the run after the next */
      check(collage_session_context_state(context, "past", &past));
      printf("%lld rows: %g, and %lld rows so far\n", (long long)rows, (double)((const float*)h.data)[0],
             (long long)past.extents[0]);
    }
  }

  collage_session_info info = {.struct_size = sizeof info};
  check(collage_session_get_info(session, &info));
  printf("%llu engines\n", (unsigned long long)info.engines);
  collage_session_context_release(context);
  collage_session_release(session);
  return 0;
}
