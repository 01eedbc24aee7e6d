/* What the tests in C share: checks that tell what is wrong and go on. */
#ifndef COLLAGE_TESTS_CHECK_H
#define COLLAGE_TESTS_CHECK_H

#include <collage.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static inline bool check_that(bool holds, const char* text, const char* file, int line) {
  if (holds) return true;
  ++failures;
  printf("%s:%d: wrong: %s\n", file, line, text);
  return false;
}

static inline bool check_done(collage_status status, const char* text, const char* file, int line) {
  if (status == COLLAGE_OK) return true;
  ++failures;
  printf("%s:%d: %s answers %d: %s\n", file, line, text, (int)status, collage_last_error());
  return false;
}

/* The call fails with this status, and its sentence holds these words. */
static inline void check_refused(collage_status status, collage_status wanted, const char* words, const char* text,
                                 const char* file, int line) {
  const char* told = collage_last_error();
  if (status == wanted && strstr(told, words) != NULL) return;
  ++failures;
  printf("%s:%d: %s answers %d (wanted %d) and says '%s' (wanted '%s')\n", file, line, text, (int)status, (int)wanted,
         told, words);
}

#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__)
#define DONE(call) check_done((call), #call, __FILE__, __LINE__)
#define MISUSED(call, words) check_refused((call), COLLAGE_MISUSE, (words), #call, __FILE__, __LINE__)

#endif
