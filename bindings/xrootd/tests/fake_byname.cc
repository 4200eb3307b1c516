#include "fake_byname.hh"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "byname.h"

namespace byname::xrd::test {

Fake& fake() {
  static Fake state;
  return state;
}

namespace {

int64_t outcome(int code, int64_t success, byname_error* error) {
  if (error) {
    error->code = code;
    std::strcpy(error->message, code == 0 ? "" : "as the test says");
  }
  return code == 0 ? success : -code;
}

std::vector<std::pair<byname_completion, int>>& waiting() {
  static std::vector<std::pair<byname_completion, int>> calls;
  return calls;
}

int32_t called(byname_error* error) {
  return static_cast<int32_t>(outcome(fake().call_error, 0, error));
}

}  // namespace
}  // namespace byname::xrd::test

using namespace byname::xrd::test;

extern "C" {

byname_session byname_session_open(const byname_session_options* options, uint32_t,
                                   byname_error* error) {
  fake().sessions_opened += 1;
  fake().link = options->link ? options->link : "";
  return outcome(fake().open_error, 1, error);
}

int32_t byname_session_close(byname_session, byname_error*) {
  fake().sessions_closed += 1;
  return 0;
}

int32_t byname_session_counters(byname_session, byname_counters*, byname_error* error) {
  return called(error);
}

int32_t byname_session_source(byname_session, byname_source* source, byname_error* error) {
  std::strcpy(source->endpoint, "fake:");
  return called(error);
}

int64_t byname_session_name(byname_session, const char* path, char* buffer, uint64_t size,
                            byname_error*) {
  const std::string whole = std::string("/fake") + path;
  if (whole.size() < size) {
    std::strcpy(buffer, whole.c_str());
  }
  return static_cast<int64_t>(whole.size()) + 1;
}

int32_t byname_session_keep_versions(byname_session, byname_error* error) {
  return called(error);
}

int32_t byname_stat(byname_session, const char*, byname_attributes* attributes,
                    byname_error* error) {
  attributes->kind = BYNAME_KIND_FILE;
  return called(error);
}

byname_call byname_stat_start(byname_session, const char* path, byname_attributes* attributes,
                              const byname_completion* completion, byname_error*) {
  const int number = static_cast<int>(fake().stats.size());
  fake().stats.push_back(path);
  attributes->kind = BYNAME_KIND_FILE;
  attributes->present = BYNAME_HAS_SIZE;
  attributes->size = 1000 + static_cast<uint64_t>(number);
  waiting().emplace_back(*completion, number);
  if (waiting().size() == fake().stats_together) {
    for (const auto& [call, index] : std::exchange(waiting(), {})) {
      auto error = byname_init<byname_error>();
      outcome(index == fake().stat_failing ? ENOENT : 0, 0, &error);
      call.done(call.context, &error);
    }
  }
  return 7;
}

byname_file byname_open(byname_session, const char*, byname_error* error) {
  return outcome(fake().call_error, 2, error);
}

int32_t byname_file_close(byname_file, byname_error*) {
  return 0;
}

int32_t byname_file_attributes(byname_file, byname_attributes*, byname_error* error) {
  return called(error);
}

int32_t byname_file_counters(byname_file, byname_counters*, byname_error* error) {
  return called(error);
}

int64_t byname_read(byname_file, void*, uint64_t bytes, uint64_t, byname_error* error) {
  return outcome(fake().call_error, static_cast<int64_t>(bytes), error);
}

int64_t byname_read_ranges(byname_file, byname_range* ranges, uint64_t count, byname_error* error) {
  int64_t bytes = 0;
  for (uint64_t index = 0; index < count; ++index) {
    bytes += static_cast<int64_t>(ranges[index].buffer_bytes);
  }
  return outcome(fake().call_error, bytes, error);
}

byname_door byname_door_open(byname_session, const char*, const byname_door_options*,
                             byname_error* error) {
  return outcome(fake().call_error, 4, error);
}

int32_t byname_door_close(byname_door, byname_error*) {
  return 0;
}

byname_site byname_door_user(byname_door, const byname_authenticated* who, byname_error* error) {
  const bool is_known = fake().known_users.count(who->name) > 0;
  return outcome(is_known ? fake().call_error : EACCES, 5, error);
}

int32_t byname_site_close(byname_site, byname_error*) {
  fake().sites_closed += 1;
  return 0;
}

int32_t byname_site_stat(byname_site, const char*, byname_attributes* attributes,
                         byname_error* error) {
  attributes->kind = fake().stat_kind;
  return called(error);
}

int32_t byname_site_access(byname_site, const char*, uint32_t, byname_attributes* attributes,
                           byname_error* error) {
  attributes->kind = fake().stat_kind;
  return called(error);
}

byname_file byname_site_open_to_read(byname_site, const char*, byname_error* error) {
  return outcome(fake().call_error, 2, error);
}

// A page has two entries.
int32_t byname_site_entries(byname_site, const char*, const char* after, byname_page* page,
                            byname_error* error) {
  page->count = 0;
  for (const FakeEntry& from : fake().entries) {
    if (from.name > after && page->count < 2) {
      byname_entry& to = page->entries[page->count++];
      to.name = from.name.c_str();
      to.name_bytes = from.name.size();
      to.attributes.kind = from.kind;
    }
  }
  return called(error);
}

int32_t byname_site_mkdir(byname_site, const char*, uint32_t, uint32_t, byname_error* error) {
  return called(error);
}

int32_t byname_site_remove(byname_site, const char* path, uint32_t, byname_error* error) {
  fake().removed.push_back(path);
  return called(error);
}

int32_t byname_site_rename(byname_site, const char*, const char*, uint32_t, byname_error* error) {
  return called(error);
}

int32_t byname_site_change(byname_site, const char*, const byname_site_changes*,
                           byname_error* error) {
  return called(error);
}

int32_t byname_site_truncate(byname_site, const char*, uint64_t, byname_error* error) {
  return called(error);
}

int32_t byname_site_room_below(byname_site, const char*, byname_site_room*, byname_error* error) {
  return called(error);
}

int32_t byname_site_put(byname_site, const char* path, int local_file, const byname_put_options*,
                        byname_error* error) {
  char octets[16];
  const ssize_t count = ::pread(local_file, octets, sizeof octets, 0);
  fake().written[path] = std::string(octets, static_cast<size_t>(count > 0 ? count : 0));
  return called(error);
}

byname_listing byname_list(byname_session, const char*, byname_error* error) {
  return outcome(fake().call_error, 3, error);
}

int32_t byname_listing_close(byname_listing, byname_error*) {
  return 0;
}

int64_t byname_listing_count(byname_listing, byname_error*) {
  return static_cast<int64_t>(fake().entries.size());
}

int32_t byname_listing_page(byname_listing, byname_page* page, byname_error* error) {
  page->count = 0;
  while (page->next < fake().entries.size() && page->count < page->entries_max) {
    const FakeEntry& from = fake().entries[page->next++];
    byname_entry& to = page->entries[page->count++];
    to.name = from.name.c_str();
    to.name_bytes = from.name.size();
    to.attributes.kind = from.kind;
    to.attributes.present = from.has_size ? BYNAME_HAS_SIZE : 0;
    to.attributes.size = from.bytes;
    to.attributes.link_target = from.target.empty() ? nullptr : from.target.c_str();
  }
  return called(error);
}
}
