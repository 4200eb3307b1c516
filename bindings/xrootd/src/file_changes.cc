// Changes of an open file: a local one outside of all prefixes, or a name that is written anew.
#include <fcntl.h>

#include <cstdlib>

#include "XrdOuc/XrdOucEnv.hh"
#include "XrdOuc/XrdOucIOVec.hh"
#include "XrdSfs/XrdSfsAio.hh"
#include "file.hh"
#include "identity.hh"

namespace byname::xrd {
namespace {

// What the client has told of the size: xrdcp and HTTP do.
std::optional<uint64_t> told_size(XrdOucEnv& env) {
  const char* const text = env.Get("oss.asize");
  if (!text || !*text) {
    return std::nullopt;
  }
  char* end = nullptr;
  errno = 0;
  const unsigned long long size = std::strtoull(text, &end, 10);
  return errno == 0 && *end == 0 ? std::optional<uint64_t>(size) : std::nullopt;
}

}  // namespace

int File::open_upload(const std::string& name, int flags, mode_t mode, XrdOucEnv& env) {
  // What is there is replaced as a whole: there is no writing into a version.
  if ((flags & (O_CREAT | O_TRUNC)) == 0) {
    return -ENOTSUP;
  }
  auto outcome = door_.session.actor(client_of(env));
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    door_.log.Emsg("open", failure->text.c_str());
    return -failure->error;
  }
  auto actor = std::get<std::unique_ptr<Actor>>(std::move(outcome));
  const bool is_exclusive = (flags & O_EXCL) != 0;
  const auto found = actor->stat(name);
  if (const auto* failure = std::get_if<Failure>(&found)) {
    if (failure->error != ENOENT) {
      return -failure->error;
    }
  } else if (S_ISDIR(std::get<Status>(found).stat.st_mode)) {
    return -EISDIR;
  } else if (is_exclusive) {
    return -EEXIST;
  }
  Actor::Wishes wishes;
  wishes.mode = mode;
  wishes.is_exclusive = is_exclusive;
  auto upload = std::make_unique<Upload>(std::move(actor), name, wishes, told_size(env));
  if (const int error = upload->open(door_.spool)) {
    door_.log.Emsg("open", -error, "keep an upload in", door_.spool.c_str());
    return error;
  }
  upload_ = std::move(upload);
  return XrdOssOK;
}

int File::close_upload(long long* size) {
  struct stat stat {};
  if (size && upload_->stat(&stat) == 0) {
    *size = stat.st_size;
  }
  const auto failure = upload_->close();
  upload_.reset();
  if (!failure) {
    return XrdOssOK;
  }
  door_.log.Emsg("close", failure->text.c_str());
  return -failure->error;
}

int File::Fchmod(mode_t mode) {
  if (upload_) {
    upload_->chmod(mode);
    return XrdOssOK;
  }
  return local_ ? local_->Fchmod(mode) : -EROFS;
}

int File::Fsync() {
  if (upload_) {
    return upload_->sync();
  }
  return local_ ? local_->Fsync() : -EROFS;
}

int File::Fsync(XrdSfsAio* aio) {
  if (!upload_) {
    return local_ ? local_->Fsync(aio) : -EROFS;
  }
  aio->Result = upload_->sync();
  aio->doneWrite();
  return XrdOssOK;
}

int File::Ftruncate(unsigned long long size) {
  if (upload_) {
    return upload_->truncate(static_cast<off_t>(size));
  }
  return local_ ? local_->Ftruncate(size) : -EROFS;
}

ssize_t File::Write(const void* buffer, off_t offset, size_t size) {
  if (upload_) {
    return upload_->write(buffer, offset, size);
  }
  return local_ ? local_->Write(buffer, offset, size) : -EROFS;
}

int File::Write(XrdSfsAio* aio) {
  if (!upload_) {
    return local_ ? local_->Write(aio) : -EROFS;
  }
  aio->Result = upload_->write(const_cast<const void*>(aio->sfsAio.aio_buf),
                               aio->sfsAio.aio_offset, aio->sfsAio.aio_nbytes);
  aio->doneWrite();
  return XrdOssOK;
}

ssize_t File::WriteV(XrdOucIOVec* pieces, int count) {
  if (!upload_) {
    return local_ ? local_->WriteV(pieces, count) : -EROFS;
  }
  ssize_t written = 0;
  for (int index = 0; index < count; ++index) {
    const XrdOucIOVec& piece = pieces[index];
    const ssize_t done =
        upload_->write(piece.data, piece.offset, static_cast<size_t>(piece.size));
    if (done < 0) {
      return done;
    }
    written += done;
  }
  return written;
}

ssize_t File::pgWrite(void* buffer, off_t offset, size_t size, uint32_t* checksums,
                      uint64_t options) {
  if (upload_) {
    // Checksums are looked at as the base class does.
    return XrdOssDF::pgWrite(buffer, offset, size, checksums, options);
  }
  return local_ ? local_->pgWrite(buffer, offset, size, checksums, options) : -EROFS;
}

int File::pgWrite(XrdSfsAio* aio, uint64_t options) {
  if (upload_) {
    return XrdOssDF::pgWrite(aio, options);
  }
  return local_ ? local_->pgWrite(aio, options) : -EROFS;
}

}  // namespace byname::xrd
