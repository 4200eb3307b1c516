#include "actor.hh"

#include <cerrno>

namespace byname::xrd {
namespace {

// What a call of libbyname returned, as a failure if it is one.
std::optional<Failure> failed(int64_t outcome, const byname_error& error) {
  return outcome < 0 ? std::optional<Failure>(failure_of(error)) : std::nullopt;
}

constexpr mode_t kModeBits = 07777;
// Entries and octets of text of one page of a listing.
constexpr size_t kPageEntries = 256;
constexpr size_t kPageTextBytes = 256 * 1024;

}  // namespace

Actor::~Actor() {
  byname_site_close(site_, nullptr);
}

Outcome<Status> Actor::stat(const std::string& name) const {
  auto attributes = byname_init<byname_attributes>();
  auto error = no_error();
  if (byname_site_stat(site_, name.c_str(), &attributes, &error) < 0) {
    return failure_of(error);
  }
  return status_of(attributes, name);
}

Outcome<Status> Actor::access(const std::string& name, uint32_t wanted) const {
  auto attributes = byname_init<byname_attributes>();
  auto error = no_error();
  if (byname_site_access(site_, name.c_str(), wanted, &attributes, &error) < 0) {
    return failure_of(error);
  }
  return status_of(attributes, name);
}

Outcome<std::unique_ptr<NamedFile>> Actor::open(const std::string& name) const {
  auto error = no_error();
  const byname_file file = byname_site_open_to_read(site_, name.c_str(), &error);
  if (file < 0) {
    return failure_of(error);
  }
  return std::make_unique<NamedFile>(file, name);
}

Outcome<std::vector<Entry>> Actor::entries(const std::string& name,
                                           const std::string& after) const {
  std::vector<byname_entry> room(kPageEntries);
  std::vector<char> text(kPageTextBytes);
  auto page = byname_init<byname_page>();
  page.entry_size = sizeof(byname_entry);
  page.entries = room.data();
  page.entries_max = room.size();
  page.text = text.data();
  page.text_size = text.size();
  auto error = no_error();
  if (byname_site_entries(site_, name.c_str(), after.c_str(), &page, &error) < 0) {
    return failure_of(error);
  }
  std::vector<Entry> found;
  for (uint64_t index = 0; index < page.count; ++index) {
    std::string entry(room[index].name, room[index].name_bytes);
    const std::string path = name == "/" ? "/" + entry : name + "/" + entry;
    found.push_back({std::move(entry), status_of(room[index].attributes, path)});
  }
  return found;
}

Outcome<byname_site_room> Actor::room(const std::string& name) const {
  auto room = byname_init<byname_site_room>();
  auto error = no_error();
  if (byname_site_room_below(site_, name.c_str(), &room, &error) < 0) {
    return failure_of(error);
  }
  return room;
}

std::optional<Failure> UserListing::fetch(const std::string& after) {
  auto outcome = user_->entries(name_, after);
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    return *failure;
  }
  page_ = std::move(std::get<std::vector<Entry>>(outcome));
  at_ = 0;
  return std::nullopt;
}

Outcome<std::optional<Entry>> UserListing::next(bool) {
  if (at_ == page_.size() && !page_.empty()) {
    const std::string last = page_.back().name;
    if (const auto failure = fetch(last)) {
      return *failure;
    }
  }
  if (page_.empty()) {
    return std::optional<Entry>();
  }
  return std::optional<Entry>(page_[at_++]);
}

std::optional<Failure> Actor::make_directory(const std::string& name, mode_t mode,
                                             bool parents) const {
  auto error = no_error();
  const uint32_t flags = parents ? BYNAME_SITE_PARENTS : 0;
  return failed(byname_site_mkdir(site_, name.c_str(), mode & kModeBits, flags, &error), error);
}

std::optional<Failure> Actor::remove(const std::string& name, bool directory) const {
  const auto found = stat(name);
  if (const auto* failure = std::get_if<Failure>(&found)) {
    return *failure;
  }
  if (S_ISDIR(std::get<Status>(found).stat.st_mode) != directory) {
    return Failure{directory ? ENOTDIR : EISDIR, name + " is " + (directory ? "no" : "a") +
                                                     " directory"};
  }
  auto error = no_error();
  return failed(byname_site_remove(site_, name.c_str(), 0, &error), error);
}

std::optional<Failure> Actor::remove_file(const std::string& name) const {
  return remove(name, false);
}

std::optional<Failure> Actor::remove_directory(const std::string& name) const {
  return remove(name, true);
}

std::optional<Failure> Actor::rename(const std::string& from, const std::string& to) const {
  auto error = no_error();
  return failed(byname_site_rename(site_, from.c_str(), to.c_str(), 0, &error), error);
}

std::optional<Failure> Actor::chmod(const std::string& name, mode_t mode) const {
  auto changes = byname_init<byname_site_changes>();
  changes.wanted = BYNAME_CHANGE_MODE;
  changes.mode = mode & kModeBits;
  auto error = no_error();
  return failed(byname_site_change(site_, name.c_str(), &changes, &error), error);
}

std::optional<Failure> Actor::truncate(const std::string& name, uint64_t size) const {
  auto error = no_error();
  return failed(byname_site_truncate(site_, name.c_str(), size, &error), error);
}

std::optional<Failure> Actor::put(const std::string& name, int local_file,
                                  const Wishes& wishes) const {
  auto options = byname_init<byname_put_options>();
  options.flags = (wishes.is_exclusive ? BYNAME_SITE_EXCLUSIVE : 0u) |
                  (wishes.parents ? BYNAME_SITE_PARENTS : 0u);
  options.mode = wishes.mode & kModeBits;
  options.base_version = wishes.base_version;
  auto error = no_error();
  return failed(byname_site_put(site_, name.c_str(), local_file, &options, &error), error);
}

Doorkeeper::~Doorkeeper() {
  byname_door_close(door_, nullptr);
}

Outcome<std::unique_ptr<Actor>> Doorkeeper::user(const Client& client) const {
  auto who = byname_init<byname_authenticated>();
  who.method = client.protocol.c_str();
  who.name = client.name.c_str();
  who.host = client.host.c_str();
  who.vos = client.vo.c_str();
  who.roles = client.role.c_str();
  who.groups = client.groups.c_str();
  auto error = no_error();
  const byname_site site = byname_door_user(door_, &who, &error);
  if (site < 0) {
    return failure_of(error);
  }
  return std::make_unique<Actor>(site);
}

}  // namespace byname::xrd
