#include <cerrno>

#include "check.hh"
#include "fake_byname.hh"
#include "session.hh"
#include "upload.hh"

using namespace byname::xrd;
using byname::xrd::test::fake;
using byname::xrd::test::Fake;

namespace {

Client client(const char* name) {
  Client client;
  client.protocol = "sss";
  client.name = name;
  return client;
}

Upload upload(std::optional<uint64_t> size) {
  return Upload(std::make_unique<Actor>(5), "/a", Actor::Wishes{}, size);
}

int error_of(const std::optional<Failure>& failure) {
  return failure ? failure->error : 0;
}

}  // namespace

TEST(a_client_whom_the_table_does_not_know_is_nobody) {
  fake() = Fake{};
  fake().known_users = {"anna"};
  Settings settings;
  settings.door = "xrd1";
  settings.table = "/who.toml";
  Session session(settings, true, [](const std::string&) {});
  CHECK(session.has_door());
  const auto nobody = session.actor(client("eve"));
  CHECK_EQUAL(std::get<Failure>(nobody).error, EACCES);
  {
    const auto anna = session.actor(client("anna"));
    CHECK(std::holds_alternative<std::unique_ptr<Actor>>(anna));
    CHECK_EQUAL(fake().sites_closed, 0);
  }
  CHECK_EQUAL(fake().sites_closed, 1);
}

TEST(a_user_lists_page_by_page_what_the_head_has) {
  fake() = Fake{};
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    fake().entries.push_back({name, BYNAME_KIND_FILE, true, "", 1});
  }
  UserListing listing(std::make_unique<Actor>(5), "/");
  CHECK(!listing.begin());
  std::string names;
  while (true) {
    const auto entry = std::get<std::optional<Entry>>(listing.next(true));
    if (!entry) {
      break;
    }
    CHECK(entry->status.has_value());
    names += entry->name;
  }
  CHECK_EQUAL(names, "abcde");
  fake().call_error = EACCES;
  UserListing refused(std::make_unique<Actor>(5), "/");
  CHECK_EQUAL(error_of(refused.begin()), EACCES);
}

TEST(what_is_removed_is_of_the_kind_that_was_meant) {
  fake() = Fake{};
  const Actor anna(5);
  fake().stat_kind = BYNAME_KIND_DIRECTORY;
  CHECK_EQUAL(error_of(anna.remove_file("/d")), EISDIR);
  CHECK_EQUAL(error_of(anna.remove_directory("/d")), 0);
  fake().stat_kind = BYNAME_KIND_FILE;
  CHECK_EQUAL(error_of(anna.remove_directory("/f")), ENOTDIR);
  CHECK_EQUAL(error_of(anna.remove_file("/f")), 0);
  CHECK_EQUAL(fake().removed.size(), 2u);
}

TEST(an_upload_that_is_not_whole_gets_no_name) {
  fake() = Fake{};
  {
    Upload half = upload(8);
    CHECK_EQUAL(half.open("/tmp"), 0);
    CHECK_EQUAL(half.write("1234", 0, 4), 4);
    CHECK_EQUAL(error_of(half.close()), ECANCELED);
  }
  {
    Upload untold = upload(std::nullopt);
    CHECK_EQUAL(untold.open("/tmp"), 0);
    CHECK_EQUAL(untold.write("1234", 0, 4), 4);
    CHECK_EQUAL(untold.sync(), 0);
    CHECK_EQUAL(untold.write("5", 4, 1), 1);
    CHECK_EQUAL(error_of(untold.close()), ECANCELED);
  }
  CHECK(fake().written.empty());
}

TEST(an_upload_is_whole_by_its_size_or_because_it_was_synced) {
  fake() = Fake{};
  {
    Upload told = upload(6);
    CHECK_EQUAL(told.open("/tmp"), 0);
    CHECK_EQUAL(told.write("456", 3, 3), 3);
    CHECK_EQUAL(told.write("123", 0, 3), 3);
    CHECK_EQUAL(error_of(told.close()), 0);
  }
  CHECK_EQUAL(fake().written["/a"], "123456");
  {
    Upload synced = upload(std::nullopt);
    CHECK_EQUAL(synced.open("/tmp"), 0);
    CHECK_EQUAL(synced.write("789", 0, 3), 3);
    CHECK_EQUAL(synced.sync(), 0);
    CHECK_EQUAL(error_of(synced.close()), 0);
  }
  CHECK_EQUAL(fake().written["/a"], "789");
}
