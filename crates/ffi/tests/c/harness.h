// Checks and the published tree for the tests of the C interface.
#ifndef HARNESS_H
#define HARNESS_H

#include <byname.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) ((what) ? (void)0 : fail(__FILE__, __LINE__, #what, NULL))
#define CHECK_OK(result, error) \
  ((result) >= 0 ? (void)0 : fail(__FILE__, __LINE__, #result, (error).message))
// A call that must fail, with this number in both places.
#define CHECK_ERROR(result, number, error)                                   \
  do {                                                                       \
    int64_t result_ = (result);                                              \
    if (result_ != -(int64_t)(number) || (error).code != (int32_t)(number))  \
      fail(__FILE__, __LINE__, #result " is not " #number, (error).message); \
  } while (0)

static inline void fail(const char *file, int line, const char *what, const char *why) {
  fprintf(stderr, "%s:%d: %s%s%s\n", file, line, what, why ? ": " : "", why ? why : "");
  abort();
}

// The published tree: its link, and where it lies on this machine.
struct tree {
  const char *link;
  const char *folder;
  const char *home;
};

static inline byname_session open_session(const struct tree *tree) {
  byname_session_options options = BYNAME_INIT(byname_session_options);
  byname_error error = BYNAME_INIT(byname_error);
  options.link = tree->link;
  options.home = tree->home;
  byname_session session = byname_session_open(&options, BYNAME_ABI_VERSION, &error);
  CHECK_OK(session, error);
  return session;
}

struct bytes {
  unsigned char *start;
  size_t count;
};

// The local copy of a published file.
static inline struct bytes local_file(const struct tree *tree, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", tree->folder, name);
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  CHECK(fseek(file, 0, SEEK_END) == 0);
  struct bytes bytes = {NULL, (size_t)ftell(file)};
  rewind(file);
  bytes.start = malloc(bytes.count + 1);
  CHECK(bytes.start != NULL);
  CHECK(fread(bytes.start, 1, bytes.count, file) == bytes.count);
  fclose(file);
  return bytes;
}

// Waits for one started call.
struct waiter {
  pthread_mutex_t lock;
  pthread_cond_t ended;
  int count;
  int32_t code;
  pthread_t thread;
};

static inline void waiter_init(struct waiter *waiter) {
  memset(waiter, 0, sizeof *waiter);
  pthread_mutex_init(&waiter->lock, NULL);
  pthread_cond_init(&waiter->ended, NULL);
}

static inline void note_done(void *context, const byname_error *error) {
  struct waiter *waiter = context;
  pthread_mutex_lock(&waiter->lock);
  waiter->count++;
  waiter->code = error->code;
  waiter->thread = pthread_self();
  pthread_cond_broadcast(&waiter->ended);
  pthread_mutex_unlock(&waiter->lock);
}

static inline byname_completion completion_of(struct waiter *waiter) {
  byname_completion completion = BYNAME_INIT(byname_completion);
  completion.done = note_done;
  completion.context = waiter;
  return completion;
}

// The code of the next end, or of the one that has been.
static inline int32_t wait_for(struct waiter *waiter, int count) {
  pthread_mutex_lock(&waiter->lock);
  while (waiter->count < count) pthread_cond_wait(&waiter->ended, &waiter->lock);
  int32_t code = waiter->code;
  pthread_mutex_unlock(&waiter->lock);
  return code;
}

void test_basics(const struct tree *tree);
void test_listings(const struct tree *tree);
void test_started(const struct tree *tree);
void test_cancel(const struct tree *tree);
void test_misuse(const struct tree *tree);
void test_threads(const struct tree *tree);
void test_leaks(const struct tree *tree);
void test_site(const struct tree *tree);

#endif
