#include "file.hh"

#include <fcntl.h>

#include "XrdOuc/XrdOucEnv.hh"
#include "identity.hh"
#include "reading.hh"

namespace byname::xrd {
namespace {

bool is_for_writing(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC | O_APPEND)) != 0;
}

}  // namespace

int File::Open(const char* path, int flags, mode_t mode, XrdOucEnv& env) {
  return guarded([&] {
    if (local_ || named_ || upload_) {
      return -EINVAL;
    }
    const auto route = door_.routes.find(path);
    const auto local = [&] { return open_local(path, flags, mode, env); };
    if (!route && door_.local) {
      return local();
    }
    if (is_for_writing(flags)) {
      if (route && door_.session.has_door()) {
        return open_upload(route->name, flags, mode, env);
      }
      door_.counters.refused_writes += 1;
      return -EROFS;
    }
    record_.path = path;
    record_.client = client_of(env);
    record_.opened = std::chrono::system_clock::now();
    opened_ = std::chrono::steady_clock::now();
    const int outcome =
        !route ? -ENOENT : in_order(route->order, local, [&] { return open_named(route->name, env); });
    if (outcome != XrdOssOK) {
      door_.counters.open_failures += 1;
      write_log(outcome < 0 ? -outcome : outcome);
      return outcome;
    }
    (local_ ? door_.counters.opens_local : door_.counters.opens_named) += 1;
    return outcome;
  });
}

int File::open_local(const char* path, int flags, mode_t mode, XrdOucEnv& env) {
  std::unique_ptr<XrdOssDF> local(door_.local->newFile(tident));
  if (!local) {
    return -ENOMEM;
  }
  const int outcome = local->Open(path, flags, mode, env);
  if (outcome == XrdOssOK) {
    local_ = std::move(local);
  }
  return outcome;
}

int File::open_named(const std::string& name, const XrdOucEnv& env) {
  record_.name = name;
  const auto refused = [this](const Failure& failure) {
    record_.error_text = failure.text;
    return -failure.error;
  };
  auto outcome = open_for(door_, &env, name);
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    return refused(*failure);
  }
  auto& opened = std::get<std::unique_ptr<NamedFile>>(outcome);
  auto status = opened->status();
  if (const auto* failure = std::get_if<Failure>(&status)) {
    return refused(*failure);
  }
  status_ = std::get<Status>(std::move(status));
  named_ = std::move(opened);
  door_.counters.open_named_files += 1;
  door_.open_files.opened(record_.path, name, status_.version);
  return XrdOssOK;
}

int File::Close(long long* size) {
  return guarded([&] {
    if (upload_) {
      return close_upload(size);
    }
    if (!local_ && !named_) {
      return -EBADF;
    }
    // A file outside of all prefixes has no record.
    if (!record_.path.empty()) {
      struct stat stat {};
      record_.size = Fstat(&stat) == XrdOssOK ? static_cast<uint64_t>(stat.st_size) : 0;
      write_log(0);
    }
    if (size && named_) {
      *size = status_.stat.st_size;
    }
    const int outcome = local_ ? local_->Close(size) : XrdOssOK;
    if (named_) {
      door_.counters.open_named_files -= 1;
      door_.open_files.closed(record_.path, status_.version);
    }
    local_.reset();
    named_.reset();
    record_ = OpenRecord{};
    return outcome;
  });
}

void File::write_log(int error) {
  if (!door_.open_log.is_on()) {
    return;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - opened_;
  record_.seconds = took.count();
  record_.error = error;
  const bool is_named = !local_ && !record_.name.empty();
  record_.name = is_named ? door_.session.whole_name(record_.name) : "";
  if (named_) {
    const byname_counters counters = named_->counters();
    record_.version = status_.version;
    record_.reads = reads_;
    record_.ranges = ranges_;
    record_.bytes = bytes_;
    record_.received_bytes = counters.received_bytes;
    record_.cached_bytes = counters.cached_bytes;
    record_.source = door_.session.source();
  }
  door_.open_log.write(record_);
}

int File::Fstat(struct stat* buffer) {
  if (local_) {
    return local_->Fstat(buffer);
  }
  if (upload_) {
    return upload_->stat(buffer);
  }
  if (!named_) {
    return -EBADF;
  }
  *buffer = status_.stat;
  return XrdOssOK;
}

off_t File::getMmap(void** address) {
  if (local_) {
    return local_->getMmap(address);
  }
  *address = nullptr;
  return 0;
}

int File::getFD() {
  return local_ ? local_->getFD() : -1;
}

int File::isCompressed(char* algorithm) {
  return local_ ? local_->isCompressed(algorithm) : 0;
}

void File::Flush() {
  if (local_) {
    local_->Flush();
  }
}

int File::Fctl(int command, int size, const char* arguments, char** response) {
  return local_ ? local_->Fctl(command, size, arguments, response) : -ENOTSUP;
}

}  // namespace byname::xrd
