// Cancelled calls and closed sessions: every call-back comes, once, and then no buffer is touched.
#include "harness.h"

#include <unistd.h>

enum { BYTES = 20000000 };

// Cancelled at different moments; whatever the outcome, the buffer is ours after the call-back.
static void check_reads(const struct tree *tree, byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  struct bytes bytes = local_file(tree, "large.bin");
  CHECK(bytes.count == BYTES);
  int cancelled = 0;
  for (int round = 0; round < 30; round++) {
    // A new file each time, so that little is in memory already.
    byname_file file = byname_open(session, "large.bin", &error);
    CHECK_OK(file, error);
    struct waiter waiter;
    waiter_init(&waiter);
    byname_completion completion = completion_of(&waiter);
    unsigned char *buffer = malloc(BYTES);
    CHECK(buffer != NULL);
    byname_range range = {0, buffer, BYTES, 0};
    byname_call call = byname_read_ranges_start(file, &range, 1, &completion, &error);
    CHECK_OK(call, error);
    usleep((useconds_t)round * 500);
    int32_t asked = byname_cancel(call, &error);
    CHECK(asked == 0 || asked == -EBADF);
    int32_t code = wait_for(&waiter, 1);
    CHECK(code == 0 || code == ECANCELED);
    if (code == 0) CHECK(memcmp(buffer, bytes.start, BYTES) == 0);
    cancelled += code == ECANCELED;
    memset(buffer, 0x5a, BYTES);
    usleep(1000);
    for (int index = 0; index < BYTES; index++) CHECK(buffer[index] == 0x5a);
    free(buffer);
    CHECK(byname_cancel(call, &error) == -EBADF);
    CHECK(waiter.count == 1);
    CHECK_OK(byname_file_close(file, &error), error);
  }
  CHECK(cancelled > 0);
  free(bytes.start);
}

static void check_others(byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  struct waiter waiter;
  waiter_init(&waiter);
  byname_completion completion = completion_of(&waiter);
  byname_file file = 0;
  byname_call call = byname_open_start(session, "log.txt", &file, &completion, &error);
  CHECK_OK(call, error);
  int32_t asked = byname_cancel(call, &error);
  CHECK(asked == 0 || asked == -EBADF);
  int32_t code = wait_for(&waiter, 1);
  CHECK(code == 0 || code == ECANCELED);
  if (code == 0) CHECK_OK(byname_file_close(file, &error), error);
}

struct reader {
  byname_file file;
  int64_t result;
  byname_error error;
};

static void *read_all(void *context) {
  struct reader *reader = context;
  unsigned char *buffer = malloc(BYTES);
  CHECK(buffer != NULL);
  do {
    reader->result = byname_read(reader->file, buffer, BYTES, 0, &reader->error);
  } while (reader->result >= 0);
  free(buffer);
  return NULL;
}

// Closing a session ends what runs in it, and waits for that.
static void check_close(const struct tree *tree) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_session session = open_session(tree);
  byname_file file = byname_open(session, "large.bin", &error);
  CHECK_OK(file, error);
  struct reader readers[4];
  pthread_t threads[4];
  for (int index = 0; index < 4; index++) {
    readers[index] = (struct reader){file, 0, BYNAME_INIT(byname_error)};
    CHECK(pthread_create(&threads[index], NULL, read_all, &readers[index]) == 0);
  }
  struct waiter waiter;
  waiter_init(&waiter);
  byname_completion completion = completion_of(&waiter);
  unsigned char *buffer = malloc(BYTES);
  CHECK(buffer != NULL);
  byname_range range = {0, buffer, BYTES, 0};
  CHECK_OK(byname_read_ranges_start(file, &range, 1, &completion, &error), error);
  usleep(5000);
  CHECK_OK(byname_session_close(session, &error), error);
  // No waiting: the call-back has run.
  CHECK(waiter.count == 1 && (waiter.code == 0 || waiter.code == ECANCELED));
  free(buffer);
  for (int index = 0; index < 4; index++) {
    CHECK(pthread_join(threads[index], NULL) == 0);
    CHECK(readers[index].result == -ECANCELED || readers[index].result == -EBADF);
  }
  CHECK_ERROR(byname_file_close(file, &error), EBADF, error);
}

void test_cancel(const struct tree *tree) {
  byname_error error = BYNAME_INIT(byname_error);
  byname_session session = open_session(tree);
  check_reads(tree, session);
  for (int round = 0; round < 20; round++) check_others(session);
  byname_counters counters = BYNAME_INIT(byname_counters);
  CHECK_OK(byname_session_counters(session, &counters, &error), error);
  CHECK(counters.files_open == 0);
  CHECK_OK(byname_session_close(session, &error), error);
  check_close(tree);
}
