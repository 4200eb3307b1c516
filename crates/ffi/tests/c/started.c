// Started calls: each kind once, many at once, and what a call-back may do.
#include "harness.h"

static void check_each(const struct tree *tree, byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  struct waiter waiter;
  waiter_init(&waiter);
  byname_completion completion = completion_of(&waiter);

  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  CHECK_OK(byname_stat_start(session, "events.root", &attributes, &completion, &error), error);
  CHECK(wait_for(&waiter, 1) == 0 && attributes.size == 3000000);

  byname_file file = 0;
  byname_call call = byname_open_start(session, "events.root", &file, &completion, &error);
  CHECK_OK(call, error);
  CHECK(wait_for(&waiter, 2) == 0 && file > 0);
  CHECK_ERROR(byname_cancel(call, &error), EBADF, error);

  struct bytes bytes = local_file(tree, "events.root");
  static unsigned char room[3][1000000];
  byname_range ranges[] = {
      {2500000, room[0], 1000000, 0}, {5, room[1], 1000000, 0}, {17, room[2], 0, 9}};
  CHECK_OK(byname_read_ranges_start(file, ranges, 3, &completion, &error), error);
  CHECK(wait_for(&waiter, 3) == 0);
  CHECK(!pthread_equal(waiter.thread, pthread_self()));
  CHECK(ranges[0].filled_bytes == 500000 && ranges[1].filled_bytes == 1000000);
  CHECK(ranges[2].filled_bytes == 0);
  CHECK(memcmp(room[0], bytes.start + 2500000, 500000) == 0);
  CHECK(memcmp(room[1], bytes.start + 5, 1000000) == 0);

  // Failures reach the call-back, and leave results alone.
  byname_file none = 77;
  CHECK_OK(byname_open_start(session, "missing", &none, &completion, &error), error);
  CHECK(wait_for(&waiter, 4) == ENOENT && none == 77);
  CHECK_OK(byname_open_start(session, "a folder", &none, &completion, &error), error);
  CHECK(wait_for(&waiter, 5) == EISDIR && none == 77);

  // A file may be closed while it is read.
  CHECK_OK(byname_read_ranges_start(file, ranges, 3, &completion, &error), error);
  CHECK_OK(byname_file_close(file, &error), error);
  CHECK(wait_for(&waiter, 6) == 0);
  CHECK(memcmp(room[1], bytes.start + 5, 1000000) == 0);
  free(bytes.start);
}

// More calls than an engine takes at once.
static void check_many(const struct tree *tree, byname_session session) {
  enum { CALLS = 3000, LENGTH = 100 };
  byname_error error = BYNAME_INIT(byname_error);
  struct bytes bytes = local_file(tree, "events.root");
  byname_file file = byname_open(session, "events.root", &error);
  CHECK_OK(file, error);
  struct waiter waiter;
  waiter_init(&waiter);
  byname_completion completion = completion_of(&waiter);
  static unsigned char room[CALLS][LENGTH];
  static byname_range ranges[CALLS];
  for (int index = 0; index < CALLS; index++) {
    ranges[index] = (byname_range){(uint64_t)index * 997, room[index], LENGTH, 0};
    CHECK_OK(byname_read_ranges_start(file, &ranges[index], 1, &completion, &error), error);
  }
  CHECK(wait_for(&waiter, CALLS) == 0);
  for (int index = 0; index < CALLS; index++) {
    CHECK(ranges[index].filled_bytes == LENGTH);
    CHECK(memcmp(room[index], bytes.start + ranges[index].offset, LENGTH) == 0);
  }
  CHECK_OK(byname_file_close(file, &error), error);
  free(bytes.start);
}

struct chain {
  byname_session session;
  struct waiter waiter;
  int left;
};

// Blocks in a call-back, starts the next call from it, and tries to close the session.
static void do_more(void *context, const byname_error *outcome) {
  struct chain *chain = context;
  CHECK(outcome->code == 0 && outcome->message[0] == 0);
  byname_error error = BYNAME_INIT(byname_error);
  CHECK_ERROR(byname_session_close(chain->session, &error), EDEADLK, error);
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  CHECK_OK(byname_stat(chain->session, "log.txt", &attributes, &error), error);
  if (--chain->left == 0) {
    note_done(&chain->waiter, outcome);
    return;
  }
  byname_completion completion = BYNAME_INIT(byname_completion);
  completion.done = do_more;
  completion.context = chain;
  static byname_attributes later;
  later = attributes;
  CHECK_OK(byname_stat_start(chain->session, "unit", &later, &completion, &error), error);
}

static void check_chain(byname_session session) {
  byname_error error = BYNAME_INIT(byname_error);
  struct chain chain = {.session = session, .left = 20};
  waiter_init(&chain.waiter);
  byname_completion completion = BYNAME_INIT(byname_completion);
  completion.done = do_more;
  completion.context = &chain;
  byname_attributes attributes = BYNAME_INIT(byname_attributes);
  CHECK_OK(byname_stat_start(session, "unit", &attributes, &completion, &error), error);
  CHECK(wait_for(&chain.waiter, 1) == 0);
}

void test_started(const struct tree *tree) {
  byname_session session = open_session(tree);
  check_each(tree, session);
  check_many(tree, session);
  check_chain(session);
  byname_error error = BYNAME_INIT(byname_error);
  CHECK_OK(byname_session_close(session, &error), error);
}
