#include <cerrno>

#include "check.hh"
#include "fake_byname.hh"
#include "listing.hh"

using namespace byname::xrd;
using byname::xrd::test::Fake;
using byname::xrd::test::fake;

namespace {

// All entries of the fake.
std::vector<Entry> listed(bool wants_status) {
  NamedListing listing(1, 3, "/d");
  std::vector<Entry> entries;
  for (int again = 0; again < 2; ++again) {
    while (true) {
      auto next = listing.next(wants_status);
      CHECK(std::holds_alternative<std::optional<Entry>>(next));
      auto& entry = std::get<std::optional<Entry>>(next);
      if (!entry) {
        break;
      }
      entries.push_back(std::move(*entry));
    }
  }
  return entries;
}

off_t size_of(const Entry& entry) {
  const auto* status = entry.status ? std::get_if<Status>(&*entry.status) : nullptr;
  return status ? status->stat.st_size : -1;
}

}  // namespace

TEST(a_listing_comes_page_by_page_with_what_it_knows) {
  fake() = Fake{};
  for (int index = 0; index < 1000; ++index) {
    const auto bytes = static_cast<uint64_t>(index);
    fake().entries.push_back({std::to_string(1000 + index), BYNAME_KIND_FILE, true, "", bytes});
  }
  fake().entries.push_back({"sub", BYNAME_KIND_DIRECTORY, false});
  const auto entries = listed(true);
  CHECK_EQUAL(entries.size(), 1001u);
  for (size_t index = 0; index < 1000; ++index) {
    CHECK_EQUAL(entries[index].name, fake().entries[index].name);
    CHECK_EQUAL(size_of(entries[index]), static_cast<off_t>(index));
  }
  CHECK_EQUAL(size_of(entries[1000]), 4096);
  CHECK_EQUAL(fake().stats.size(), 0u);
}

TEST(a_link_to_a_neighbour_is_described_by_the_same_listing) {
  fake() = Fake{};
  for (int index = 0; index < 600; ++index) {
    fake().entries.push_back({"a" + std::to_string(1000 + index), BYNAME_KIND_SYMLINK, false,
                              "z" + std::to_string(1000 + index)});
  }
  fake().entries.push_back({"b", BYNAME_KIND_SYMLINK, false, "a1007"});
  fake().entries.push_back({"c", BYNAME_KIND_SYMLINK, false, "sub"});
  fake().entries.push_back({"sub", BYNAME_KIND_DIRECTORY, false});
  for (int index = 0; index < 600; ++index) {
    fake().entries.push_back({"z" + std::to_string(1000 + index), BYNAME_KIND_FILE, true, "",
                              static_cast<uint64_t>(index)});
  }
  const auto entries = listed(true);
  CHECK_EQUAL(entries.size(), 1203u);
  for (size_t index = 0; index < 600; ++index) {
    CHECK_EQUAL(size_of(entries[index]), static_cast<off_t>(index));
  }
  CHECK_EQUAL(size_of(entries[600]), 7);
  CHECK_EQUAL(size_of(entries[601]), 4096);
  CHECK_EQUAL(fake().stats.size(), 0u);
}

TEST(what_a_listing_does_not_describe_is_asked_for_all_at_once) {
  fake() = Fake{};
  fake().entries = {{"a", BYNAME_KIND_SYMLINK, false, "../x"},
                    {"b", BYNAME_KIND_SYMLINK, false, "sub/x"},
                    {"c", BYNAME_KIND_FILE, false},
                    {"d", BYNAME_KIND_FILE, true, "", 5},
                    {"e", BYNAME_KIND_SYMLINK, false, "not-listed"},
                    {"f", BYNAME_KIND_SYMLINK, false, "f"},
                    {"g", BYNAME_KIND_SYMLINK, false, ".."}};
  fake().stats_together = 6;
  fake().stat_failing = 3;
  const auto entries = listed(true);
  const std::vector<std::string> wanted{"/d/a", "/d/b", "/d/c", "/d/e", "/d/f", "/d/g"};
  CHECK(fake().stats == wanted);
  CHECK_EQUAL(entries.size(), 7u);
  CHECK_EQUAL(size_of(entries[0]), 1000);
  CHECK_EQUAL(size_of(entries[2]), 1002);
  CHECK_EQUAL(size_of(entries[3]), 5);
  CHECK_EQUAL(size_of(entries[6]), 1005);
  const auto* failure = std::get_if<Failure>(&*entries[4].status);
  CHECK_EQUAL(failure ? failure->error : 0, ENOENT);
}

TEST(who_wants_names_only_asks_nobody) {
  fake() = Fake{};
  fake().entries = {{"a", BYNAME_KIND_SYMLINK, false, "../x"}};
  const auto entries = listed(false);
  CHECK_EQUAL(entries.size(), 1u);
  CHECK(!entries[0].status);
  CHECK_EQUAL(fake().stats.size(), 0u);
}
