// The C++ header against a published tree: main LINK FOLDER HOME.
#include <byname.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <type_traits>

#define CHECK(what) ((what) ? (void)0 : fail(__LINE__, #what))

[[noreturn]] static void fail(int line, const char *what) {
  std::fprintf(stderr, "main.cpp:%d: %s\n", line, what);
  std::abort();
}

static_assert(!std::is_copy_constructible_v<byname::File>);
static_assert(std::is_nothrow_move_constructible_v<byname::Session>);

static int code_of(const std::function<void()> &call) {
  try {
    call();
  } catch (const byname::Error &error) {
    CHECK(error.what()[0] != '\0');
    return error.code();
  }
  return 0;
}

static void check_reads(const byname::Session &session) {
  byname::File file = session.open("log.txt");
  char buffer[100];
  CHECK(file.read(buffer, sizeof buffer, 4) == 9);
  CHECK(std::memcmp(buffer, "went well", 9) == 0);
  char first[3], last[4];
  std::vector<byname_range> ranges = {{0, first, 3, 0}, {9, last, 4, 0}};
  CHECK(file.read(ranges) == 7 && std::memcmp(last, "well", 4) == 0);
  CHECK(file.counters().asked_bytes == 16);

  std::promise<int> ended;
  const auto done = [&](const byname_error &error) { ended.set_value(error.code); };
  std::memset(first, 0, sizeof first);
  file.start_read(ranges.data(), ranges.size(), done);
  CHECK(ended.get_future().get() == 0 && std::memcmp(first, "all", 3) == 0);

  byname::File moved = std::move(file);
  CHECK(!file && moved);
  CHECK(code_of([&] { file.read(buffer, 1, 0); }) == EBADF);
  CHECK(session.counters().files_open == 1);
  moved.close();
  CHECK(session.counters().files_open == 0);
  CHECK(!byname::cancel(12345));
}

static void check_listings(const byname::Session &session) {
  const byname::Listing listing = session.list("many");
  CHECK(listing.size() == 500 && listing.attributes().is_directory());
  std::uint64_t seen = 0;
  for (;;) {
    const std::vector<byname::Entry> page = listing.entries(seen, 64);
    if (page.empty()) break;
    for (const byname::Entry &entry : page) CHECK(entry.attributes.fixed.size == seen++);
  }
  CHECK(seen == 500);
  char buffer[10];
  CHECK(listing.open("file007").read(buffer, sizeof buffer, 0) == 7);
  CHECK(code_of([&] { listing.open("none"); }) == ENOENT);
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  byname::Options options;
  options.link = argv[1];
  options.home = argv[3];
  byname::Session session(options);
  const byname::Attributes attributes = session.stat("events.root");
  CHECK(attributes.has(BYNAME_HAS_ROOT) && attributes.publisher == "/lab/run7");
  CHECK(session.name("a b") == "/lab/run7/a%20b");
  CHECK(session.source().requests > 0);
  CHECK(code_of([&] { session.open("missing"); }) == ENOENT);
  check_reads(session);
  check_listings(session);
  session.keep_versions();
  session = byname::Session();
  CHECK(code_of([&] { session.stat("log.txt"); }) == EBADF);
  std::puts("passed");
}
