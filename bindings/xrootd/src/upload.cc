#include "upload.hh"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace byname::xrd {

Upload::Upload(std::unique_ptr<Actor> actor, std::string name, Actor::Wishes wishes,
               std::optional<uint64_t> size)
    : actor_(std::move(actor)), name_(std::move(name)), wishes_(wishes), size_(size) {}

Upload::~Upload() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

int Upload::open(const std::string& directory) {
  fd_ = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return fd_ < 0 ? -EIO : 0;
}

ssize_t Upload::write(const void* buffer, off_t offset, size_t size) {
  is_synced_ = false;
  const auto* const octets = static_cast<const char*>(buffer);
  size_t done = 0;
  while (done < size) {
    const ssize_t count =
        ::pwrite(fd_, octets + done, size - done, offset + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      has_failed_ = true;
      return count < 0 && errno == ENOSPC ? -ENOSPC : -EIO;
    }
    done += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(size);
}

ssize_t Upload::read(void* buffer, off_t offset, size_t size) const {
  const ssize_t count = ::pread(fd_, buffer, size, offset);
  return count < 0 ? -EIO : count;
}

int Upload::truncate(off_t size) {
  is_synced_ = false;
  return ::ftruncate(fd_, size) < 0 ? -EIO : 0;
}

int Upload::stat(struct stat* buffer) const {
  if (::fstat(fd_, buffer) < 0) {
    return -EIO;
  }
  buffer->st_mode = S_IFREG | (wishes_.mode & 0777);
  return 0;
}

int Upload::sync() {
  is_synced_ = !has_failed_;
  return has_failed_ ? -EIO : 0;
}

std::optional<Failure> Upload::close() {
  struct stat now {};
  if (has_failed_ || stat(&now) < 0) {
    return Failure{EIO, name_ + ": it could not be kept here until it was whole"};
  }
  const bool has_size = size_ && static_cast<uint64_t>(now.st_size) == *size_;
  if (!has_size && !is_synced_) {
    return Failure{ECANCELED, name_ + ": it was not written to its end"};
  }
  return actor_->put(name_, fd_, wishes_);
}

}  // namespace byname::xrd
