#include <cerrno>

#include "check.hh"
#include "checksum_store.hh"
#include "fake_byname.hh"
#include "open_files.hh"
#include "session.hh"

using namespace byname::xrd;
using byname::xrd::test::Fake;
using byname::xrd::test::fake;

namespace {

struct Told {
  std::vector<std::string> lines;
  Session::Report report() {
    return [this](const std::string& line) { lines.push_back(line); };
  }
};

template <class T>
int error_of(const Outcome<T>& outcome) {
  const auto* failure = std::get_if<Failure>(&outcome);
  return failure ? failure->error : 0;
}

}  // namespace

TEST(a_session_is_opened_when_it_is_needed_and_once) {
  fake() = Fake{};
  Told told;
  {
    Settings settings;
    settings.link = "/lab";
    Session session(settings, true, told.report());
    CHECK_EQUAL(fake().sessions_opened, 0);
    CHECK(!session.counters());
    CHECK_EQUAL(session.source(), "");
    CHECK_EQUAL(session.whole_name("/a"), "/a");
    CHECK_EQUAL(error_of(session.stat("/a")), 0);
    CHECK_EQUAL(error_of(session.stat("/b")), 0);
    CHECK_EQUAL(fake().sessions_opened, 1);
    CHECK_EQUAL(fake().link, "/lab");
    CHECK(session.counters().has_value());
    CHECK_EQUAL(session.source(), "fake:");
    CHECK_EQUAL(session.whole_name("/a"), "/fake/a");
    CHECK_EQUAL(session.whole_name("/" + std::string(9000, 'x')).size(), 9001u);
  }
  CHECK_EQUAL(fake().sessions_closed, 1);
  CHECK_EQUAL(told.lines.size(), 0u);
}

TEST(a_forwarder_that_is_not_there_yet_is_no_mistake_of_the_settings) {
  fake() = Fake{};
  fake().open_error = ECONNREFUSED;
  Told told;
  Session session(Settings{}, true, told.report());
  CHECK(!session.open_now());
  // Asked a thousand times it is tried once a second.
  for (int asked = 0; asked < 1000; ++asked) {
    CHECK_EQUAL(error_of(session.stat("/a")), ENETUNREACH);
  }
  CHECK(fake().sessions_opened < 10);
  CHECK_EQUAL(told.lines.size(), static_cast<size_t>(fake().sessions_opened));
}

TEST(settings_that_can_never_work_are_told_at_once) {
  fake() = Fake{};
  fake().open_error = EINVAL;
  Told told;
  Session session(Settings{}, true, told.report());
  const auto failure = session.open_now();
  CHECK(failure.has_value());
  CHECK_EQUAL(failure->error, EINVAL);
  CHECK_EQUAL(failure->text, "as the test says");
}

TEST(absence_is_an_answer_and_other_errors_are_told) {
  fake() = Fake{};
  Told told;
  Session session(Settings{}, true, told.report());
  fake().call_error = ENOENT;
  CHECK_EQUAL(error_of(session.stat("/a")), ENOENT);
  CHECK_EQUAL(error_of(session.open_file("/a")), ENOENT);
  CHECK_EQUAL(error_of(session.list("/a")), ENOENT);
  CHECK_EQUAL(told.lines.size(), 0u);
  fake().call_error = ENOKEY;
  CHECK_EQUAL(error_of(session.open_file("/a")), ENOKEY);
  CHECK_EQUAL(told.lines.size(), 1u);
  CHECK_EQUAL(told.lines[0], "open /a: as the test says");
}

TEST(an_open_file_is_forgotten_once_a_newer_version_is_seen) {
  std::vector<std::string> forgotten;
  OpenFiles files([&](const std::string& path) { forgotten.push_back(path); });
  files.opened("/a", "/lab/a", 5);
  files.opened("/b", "/lab/b", 5);
  files.saw("/a", 5);
  files.saw("/a", 4);
  files.saw("/other", 9);
  CHECK_EQUAL(forgotten.size(), 0u);
  CHECK_EQUAL(files.list().size(), 2u);
  files.saw("/a", 6);
  files.saw("/a", 6);
  CHECK_EQUAL(forgotten.size(), 1u);
  CHECK_EQUAL(forgotten[0], "/a");
  CHECK_EQUAL(files.list().size(), 1u);
  CHECK_EQUAL(files.list()[0].name, "/lab/b");
  // The next reader has the new version, and that is current.
  files.opened("/a", "/lab/a", 6);
  files.saw("/a", 6);
  files.closed("/a", 5);
  CHECK_EQUAL(forgotten.size(), 1u);
  files.gone("/a");
  CHECK_EQUAL(forgotten.size(), 2u);
  files.closed("/a", 6);
  files.closed("/b", 5);
  CHECK_EQUAL(files.list().size(), 0u);
}

TEST(checksums_are_kept_by_version_and_the_oldest_go) {
  ChecksumStore store(2);
  store.keep("/a", 1, "adler32", "one");
  store.keep("/a", 1, "adler32", "another");
  store.keep("/a", 2, "adler32", "two");
  CHECK_EQUAL(store.find("/a", 1, "adler32").value_or(""), "one");
  CHECK_EQUAL(store.find("/a", 2, "adler32").value_or(""), "two");
  CHECK(!store.find("/a", 2, "crc32c"));
  store.keep("/b", 1, "adler32", "three");
  CHECK(!store.find("/a", 1, "adler32"));
  CHECK_EQUAL(store.find("/a", 2, "adler32").value_or(""), "two");
  CHECK_EQUAL(store.find("/b", 1, "adler32").value_or(""), "three");
}
