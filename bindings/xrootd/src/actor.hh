// Users for whom the door acts at a site, and what they do there.
//
// Every function may be called from any thread. Nothing here knows xrootd.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "byname.h"
#include "errors.hh"
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
