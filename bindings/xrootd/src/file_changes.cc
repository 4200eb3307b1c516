// Changes of an open file: only a local one outside of all prefixes can have been opened for them.
#include "file.hh"

namespace byname::xrd {

int File::Fchmod(mode_t mode) {
  return local_ ? local_->Fchmod(mode) : -EROFS;
}

int File::Fsync() {
  return local_ ? local_->Fsync() : -EROFS;
}

int File::Fsync(XrdSfsAio* aio) {
  return local_ ? local_->Fsync(aio) : -EROFS;
}

int File::Ftruncate(unsigned long long size) {
  return local_ ? local_->Ftruncate(size) : -EROFS;
}

ssize_t File::Write(const void* buffer, off_t offset, size_t size) {
  return local_ ? local_->Write(buffer, offset, size) : -EROFS;
}

int File::Write(XrdSfsAio* aio) {
  return local_ ? local_->Write(aio) : -EROFS;
}

ssize_t File::WriteV(XrdOucIOVec* pieces, int count) {
  return local_ ? local_->WriteV(pieces, count) : -EROFS;
}

ssize_t File::pgWrite(void* buffer, off_t offset, size_t size, uint32_t* checksums,
                      uint64_t options) {
  return local_ ? local_->pgWrite(buffer, offset, size, checksums, options) : -EROFS;
}

int File::pgWrite(XrdSfsAio* aio, uint64_t options) {
  return local_ ? local_->pgWrite(aio, options) : -EROFS;
}

}  // namespace byname::xrd
