// Users for whom the door acts at a site, and what they do there.
//
// Every function may be called from any thread. Nothing here knows xrootd.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "byname.h"
#include "errors.hh"
#include "listing.hh"
#include "named_file.hh"
#include "open_log.hh"
#include "status.hh"

namespace byname::xrd {

// A user at a site. Names are below the session's link.
class Actor {
 public:
  explicit Actor(byname_site site) : site_(site) {}
  ~Actor();
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  // As the head has it now, not a cache.
  Outcome<Status> stat(const std::string& name) const;
  // The same if the user may use it so: BYNAME_MAY_*, or 0 for what is above it alone.
  Outcome<Status> access(const std::string& name, uint32_t wanted) const;
  // Opens what the user may read, as the head has it now. No link is followed.
  Outcome<std::unique_ptr<NamedFile>> open(const std::string& name) const;
  // Entries behind one of them as the head has them now, a page of them; empty at the end.
  Outcome<std::vector<Entry>> entries(const std::string& name, const std::string& after) const;

  // Room below a name, by the quotas that count for the user and by the disks.
  Outcome<byname_site_room> room(const std::string& name) const;

  std::optional<Failure> make_directory(const std::string& name, mode_t mode, bool parents) const;
  std::optional<Failure> remove_file(const std::string& name) const;
  std::optional<Failure> remove_directory(const std::string& name) const;
  std::optional<Failure> rename(const std::string& from, const std::string& to) const;
  std::optional<Failure> chmod(const std::string& name, mode_t mode) const;
  std::optional<Failure> truncate(const std::string& name, uint64_t size) const;

  // How a file is written.
  struct Wishes {
    mode_t mode = 0644;
    bool is_exclusive = false;
    bool parents = false;
    uint64_t base_version = 0;
  };
  // Writes all octets of a local file. It is there whole, or not at all.
  std::optional<Failure> put(const std::string& name, int local_file, const Wishes& wishes) const;

 private:
  std::optional<Failure> remove(const std::string& name, bool directory) const;

  byname_site site_;
};

// A directory as a user may see it.
class UserListing final : public Listing {
 public:
  UserListing(std::unique_ptr<Actor> user, std::string name)
      : user_(std::move(user)), name_(std::move(name)) {}

  // Reads the first entries. Returns why the user may not.
  std::optional<Failure> begin() { return fetch(""); }
  Outcome<std::optional<Entry>> next(bool wants_status) override;

 private:
  std::optional<Failure> fetch(const std::string& after);

  std::unique_ptr<Actor> user_;
  std::string name_;
  std::vector<Entry> page_;
  size_t at_ = 0;
};

// What says who is which user. Closed when it goes.
class Doorkeeper {
 public:
  explicit Doorkeeper(byname_door door) : door_(door) {}
  ~Doorkeeper();
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

  // The user whom the door's table makes of a client; EACCES if it makes nobody of it.
  Outcome<std::unique_ptr<Actor>> user(const Client& client) const;

 private:
  byname_door door_;
};

}  // namespace byname::xrd
