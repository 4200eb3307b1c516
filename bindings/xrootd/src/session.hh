// The session with the names: opened when it is needed, one for the whole process.
//
// Every function may be called from any thread. Nothing here knows xrootd.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "actor.hh"
#include "byname.h"
#include "errors.hh"
#include "listing.hh"
#include "named_file.hh"
#include "settings.hh"
#include "status.hh"

namespace byname::xrd {

// The session.
class Session {
 public:
  using Report = std::function<void(const std::string&)>;

  // `is_bulk`: much will be read.
  Session(const Settings& settings, bool is_bulk, Report report);
  // Ends what is under way; handed-out files and listings refuse everything afterwards.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Opens the session now. Returns why its settings are wrong; that the forwarder cannot be reached
  // is no reason, the next call tries again.
  std::optional<Failure> open_now();

  Outcome<Status> stat(const std::string& name);
  Outcome<std::unique_ptr<NamedFile>> open_file(const std::string& name);
  Outcome<std::unique_ptr<NamedListing>> list(const std::string& name);

  // True if there is a door, so that clients may change what their users may.
  bool has_door() const { return !settings_.door.empty(); }
  // True if clients read what their users may, and not what everybody can.
  bool binds_reading() const { return has_door() && !settings_.reads_are_open; }
  // Opens the door now. Returns why it cannot be opened.
  std::optional<Failure> open_door();
  // The user at the site for whom the door acts when this client asks.
  Outcome<std::unique_ptr<Actor>> actor(const Client& client);

  // What is known without asking anybody; nothing while there is no session.
  std::optional<byname_counters> counters() const;
  std::string source() const;
  // The whole name that a name below the link stands for, as a URI; as it is without a session.
  std::string whole_name(const std::string& name) const;
  // Writes the versions seen to disk.
  void keep_versions();

 private:
  Outcome<byname_session> handle();
  byname_session handle_if_open() const;
  Outcome<byname_session> open_locked();
  Outcome<std::shared_ptr<Doorkeeper>> doorkeeper();
  Failure failure(const std::string& what, const std::string& name, const byname_error& error);

  const Settings settings_;
  const bool is_bulk_;
  const Report report_;
  mutable std::mutex mutex_;
  byname_session session_ = 0;
  std::optional<Failure> last_failure_;
  std::chrono::steady_clock::time_point next_try_{};
  std::shared_ptr<Doorkeeper> doorkeeper_;
};

}  // namespace byname::xrd
