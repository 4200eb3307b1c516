// Cancelled calls and closed sessions: every call-back comes, once, and then no buffer is touched.
#include "harness.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 8000000 };

// Cancelled at different moments; whatever the outcome, the buffer is ours after the call-back.
static void check_reads(const struct tree *tree, byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  struct bytes bytes = local_file(tree, "large.bin");
  CHECK(bytes.count == BYTES);
  unsigned char *pattern = malloc(BYTES);
  CHECK(pattern != NULL);
  memset(pattern, 0x5a, BYTES);
  for (int round = 0; round < 20; round++) {
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
    memset(buffer, 0x5a, BYTES);
    usleep(1000);
    CHECK(memcmp(buffer, pattern, BYTES) == 0);
    free(buffer);
    CHECK(byname_cancel(call, &error) == -EBADF);
    CHECK(waiter.count == 1);
    CHECK_OK(byname_file_close(file, &error), error);
  }
  free(pattern);
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

struct silent {
  byname_session session;
  int32_t code;
};

static void *ask_silent(void *context) {
  struct silent *silent = context;
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  silent->code = byname_stat(silent->session, "a", &attributes, NULL);
  return NULL;
}

// Nobody answers, and more calls wait than an engine takes: closing does not wait for their time.
static void check_silent(const struct tree *tree) {
  enum { CALLS = 1500, THREADS = 20 };
  byname_error error = BYNAME_INIT(byname_error);
  int server = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  CHECK(server >= 0 && bind(server, (struct sockaddr *)&address, size) == 0);
  CHECK(listen(server, 5) == 0);
  CHECK(getsockname(server, (struct sockaddr *)&address, &size) == 0);
  char link[100];
  snprintf(link, sizeof link, "byname:/a?via=tcp://127.0.0.1:%d", ntohs(address.sin_port));
  byname_session_options options = BYNAME_INIT(byname_session_options);
  options.link = link;
  options.home = tree->home;
  options.timeout_ms = 20000;
  byname_session session = byname_session_open(&options, BYNAME_ABI_VERSION, &error);
  CHECK_OK(session, error);
  struct waiter waiter, first;
  waiter_init(&waiter);
  waiter_init(&first);
  byname_completion completion = completion_of(&first);
  static byname_attributes attributes[CALLS];
  attributes[0] = BYNAME_INIT(byname_attributes);
  byname_call call = byname_stat_start(session, "a", &attributes[0], &completion, &error);
  CHECK_OK(call, error);
  CHECK_OK(byname_cancel(call, &error), error);
  CHECK(wait_for(&first, 1) == ECANCELED && attributes[0].kind == 0);
  completion = completion_of(&waiter);
  for (int index = 0; index < CALLS; index++) {
    attributes[index] = BYNAME_INIT(byname_attributes);
    CHECK_OK(byname_stat_start(session, "a", &attributes[index], &completion, &error), error);
  }
  struct silent silents[THREADS];
  pthread_t threads[THREADS];
  for (int index = 0; index < THREADS; index++) {
    silents[index] = (struct silent){session, 0};
    CHECK(pthread_create(&threads[index], NULL, ask_silent, &silents[index]) == 0);
  }
  byname_counters counters = BYNAME_INIT(byname_counters);
  do {
    usleep(1000);
    CHECK_OK(byname_session_counters(session, &counters, &error), error);
  } while (counters.calls_in_flight < CALLS + THREADS + 1);
  CHECK_OK(byname_session_close(session, &error), error);
  CHECK(waiter.count == CALLS && waiter.code == ECANCELED);
  for (int index = 0; index < THREADS; index++) {
    CHECK(pthread_join(threads[index], NULL) == 0);
    CHECK(silents[index].code == -ECANCELED);
  }
  close(server);
}

void test_cancel(const struct tree *tree) {
  byname_error error = BYNAME_INIT(byname_error);
  // Without memory for content every read goes to the publisher.
  byname_session_options options = BYNAME_INIT(byname_session_options);
  options.link = tree->link;
  options.home = tree->home;
  options.cache_bytes_max = options.prefetch_bytes_max = BYNAME_NONE;
  byname_session session = byname_session_open(&options, BYNAME_ABI_VERSION, &error);
  CHECK_OK(session, error);
  check_reads(tree, session);
  for (int round = 0; round < 20; round++) check_others(session);
  byname_counters counters = BYNAME_INIT(byname_counters);
  CHECK_OK(byname_session_counters(session, &counters, &error), error);
  CHECK(counters.files_open == 0);
  CHECK_OK(byname_session_close(session, &error), error);
  check_close(tree);
  check_silent(tree);
}
