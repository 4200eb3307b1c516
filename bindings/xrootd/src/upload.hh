// A file that is being written: its octets are kept in a file without a name until it is closed.
//
// Nothing here knows xrootd. What was broken off never gets a name: an upload counts as whole if it
// has the size that was told when it was opened, or was synced after its last change.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "actor.hh"

namespace byname::xrd {

class Upload {
 public:
  // `size`: what the client has told that it will be.
  Upload(std::unique_ptr<Actor> actor, std::string name, Actor::Wishes wishes,
         std::optional<uint64_t> size);
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // A negative errno, or 0. `directory` is where the octets are kept meanwhile.
  int open(const std::string& directory);
  ssize_t write(const void* buffer, off_t offset, size_t size);
  ssize_t read(void* buffer, off_t offset, size_t size) const;
  int truncate(off_t size);
  int stat(struct stat* buffer) const;
  int sync();
  void chmod(mode_t mode) { wishes_.mode = mode; }
  // Writes it to the site, if it is whole.
  std::optional<Failure> close();

 private:
  const std::unique_ptr<Actor> actor_;
  const std::string name_;
  Actor::Wishes wishes_;
  const std::optional<uint64_t> size_;
  std::atomic<bool> is_synced_{false};
  std::atomic<bool> has_failed_{false};
  int fd_ = -1;
};

}  // namespace byname::xrd
