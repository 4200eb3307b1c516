#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "check.hh"
#include "housekeeper.hh"
#include "json.hh"
#include "metrics.hh"
#include "open_log.hh"
#include "status.hh"

using namespace byname::xrd;

namespace {

// A directory that goes with the test.
class Scratch {
 public:
  Scratch() {
    path_ = std::filesystem::temp_directory_path() / "byname-unit-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      std::perror(path_.c_str());
      std::abort();
    }
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string content(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

OpenRecord record() {
  OpenRecord made;
  made.path = "/store/a \"b\"";
  made.name = "/cms/a";
  made.client = {"sss", "alice", "host", "cms", "", "", "alice.1:2@host"};
  made.opened = std::chrono::system_clock::time_point(std::chrono::milliseconds(1'700'000'000'042));
  made.seconds = 1.5;
  made.size = 10;
  made.version = 7;
  made.reads = 2;
  made.ranges = 3;
  made.bytes = 10;
  made.received_bytes = 11;
  made.cached_bytes = 4;
  made.source = "unix:///x";
  return made;
}

}  // namespace

TEST(json_strings_are_escaped_and_always_utf8) {
  CHECK_EQUAL(json_string("a\"\\\n\x01"), "\"a\\\"\\\\\\u000a\\u0001\"");
  CHECK_EQUAL(json_string("日本 ö 🎲"), "\"日本 ö 🎲\"");
  CHECK_EQUAL(json_string("\xff"), "\"\\ufffd\"");
  CHECK_EQUAL(json_string("\xc3"), "\"\\ufffd\"");
  CHECK_EQUAL(json_string("\xc0\xaf"), "\"\\ufffd\\ufffd\"");
  CHECK_EQUAL(json_string("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");
  CHECK_EQUAL(json_string("\xf4\x90\x80\x80x"), "\"\\ufffd\\ufffd\\ufffd\\ufffdx\"");
}

TEST(a_line_says_who_read_what_from_whom) {
  CHECK_EQUAL(line_of(record()),
              "{\"opened\":\"2023-11-14T22:13:20.042Z\",\"path\":\"/store/a \\\"b\\\"\","
              "\"from\":\"name\",\"name\":\"/cms/a\",\"client\":{\"protocol\":\"sss\","
              "\"name\":\"alice\",\"host\":\"host\",\"vo\":\"cms\","
              "\"connection\":\"alice.1:2@host\"},\"seconds\":1.500,\"size\":10,\"version\":7,"
              "\"reads\":2,\"ranges\":3,\"bytes\":10,\"received_bytes\":11,\"cached_bytes\":4,"
              "\"source\":\"unix:///x\"}\n");
  OpenRecord refused = record();
  refused.client = {};
  refused.error = 2;
  refused.error_text = "no such file";
  CHECK_EQUAL(line_of(refused),
              "{\"opened\":\"2023-11-14T22:13:20.042Z\",\"path\":\"/store/a \\\"b\\\"\","
              "\"from\":\"name\",\"name\":\"/cms/a\",\"client\":{},\"seconds\":1.500,"
              "\"errno\":2,\"error\":\"no such file\"}\n");
}

TEST(the_log_goes_on_in_a_new_file_when_the_old_one_was_renamed) {
  const Scratch scratch;
  OpenLog log(scratch.path("opens.json"));
  CHECK_EQUAL(log.open(), 0);
  log.write(record());
  CHECK_EQUAL(rename(scratch.path("opens.json").c_str(), scratch.path("old").c_str()), 0);
  log.write(record());
  log.write(record());
  const std::string line = line_of(record());
  CHECK_EQUAL(content(scratch.path("old")), line);
  CHECK_EQUAL(content(scratch.path("opens.json")), line + line);
  CHECK_EQUAL(log.lost_count(), 0u);
}

TEST(lines_that_cannot_be_written_are_counted) {
  const Scratch scratch;
  OpenLog log(scratch.path("absent/opens.json"));
  CHECK_EQUAL(log.open(), ENOENT);
  log.write(record());
  CHECK_EQUAL(log.lost_count(), 1u);
  OpenLog off("");
  CHECK_EQUAL(off.open(), 0);
  off.write(record());
  CHECK_EQUAL(off.lost_count(), 0u);
}

TEST(metrics_are_prometheus_text_and_replaced_whole) {
  const Scratch scratch;
  Counters counters;
  counters.opens_named = 3;
  const std::string without = metrics_text(counters, std::nullopt, 2);
  CHECK(without.find("# TYPE byname_xrootd_opens_named_total counter\n"
                     "byname_xrootd_opens_named_total 3\n") != std::string::npos);
  CHECK(without.find("byname_xrootd_lost_log_lines_total 2\n") != std::string::npos);
  CHECK(without.find("byname_xrootd_session_open 0\n") != std::string::npos);
  CHECK(without.find("received_bytes") == std::string::npos);
  auto session = byname_init<byname_counters>();
  session.received_bytes = 99;
  const std::string with = metrics_text(counters, session, 0);
  CHECK(with.find("byname_xrootd_received_bytes_total 99\n") != std::string::npos);
  const std::string path = scratch.path("byname.prom");
  CHECK_EQUAL(replace_file(path, with), 0);
  CHECK_EQUAL(content(path), with);
  CHECK_EQUAL(access((path + ".new").c_str(), F_OK), -1);
  CHECK_EQUAL(replace_file(scratch.path("absent/x"), with), ENOENT);
}

TEST(a_status_is_readable_by_the_server_and_never_on_tape) {
  auto attributes = byname_init<byname_attributes>();
  attributes.kind = BYNAME_KIND_FILE;
  attributes.present = BYNAME_HAS_SIZE | BYNAME_HAS_MTIME | BYNAME_HAS_MODE | BYNAME_HAS_VERSION |
                       BYNAME_HAS_ADLER32;
  attributes.size = 1025;
  attributes.version = 5;
  attributes.mode = 0100222;
  attributes.mtime_ns = 3'000'000'007;
  attributes.adler32[3] = 9;
  const Status status = status_of(attributes, "/a");
  CHECK_EQUAL(status.stat.st_mode, static_cast<mode_t>(S_IFREG | S_IRUSR));
  CHECK_EQUAL(status.stat.st_size, 1025);
  CHECK_EQUAL(status.stat.st_blocks, 3);
  CHECK_EQUAL(status.stat.st_mtim.tv_sec, 3);
  CHECK_EQUAL(status.stat.st_mtim.tv_nsec, 7);
  CHECK(status.stat.st_dev != 0 && status.stat.st_ino != 0);
  CHECK_EQUAL(status.checksums.size(), 1u);
  CHECK_EQUAL(status.checksums[0].name, "adler32");
  CHECK_EQUAL(status.checksums[0].value, std::string("\0\0\0\x09", 4));
  const ino_t inode = status.stat.st_ino;
  CHECK_EQUAL(status_of(attributes, "/a").stat.st_ino, inode);
  CHECK(status_of(attributes, "/b").stat.st_ino != inode);
  attributes.version = 6;
  CHECK(status_of(attributes, "/a").stat.st_ino != inode);
  attributes.kind = BYNAME_KIND_DIRECTORY;
  CHECK(S_ISDIR(status_of(attributes, "/a").stat.st_mode));
  attributes.kind = BYNAME_KIND_SYMLINK;
  CHECK(S_ISLNK(status_of(attributes, "/a").stat.st_mode));
}

TEST(the_housekeeper_ends_at_once) {
  std::atomic<int> runs{0};
  {
    const Housekeeper housekeeper(std::chrono::hours(1), [&] { runs += 1; });
  }
  CHECK_EQUAL(runs.load(), 0);
  {
    const Housekeeper housekeeper(std::chrono::seconds(0), [&] { runs += 1; });
    while (runs == 0) {
      std::this_thread::yield();
    }
  }
  CHECK(runs > 0);
}
