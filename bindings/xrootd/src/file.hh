// An open file: one of local storage or one version of a name.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "door.hh"
#include "upload.hh"

namespace byname::xrd {

// XRootD shares it among all who read the path: reads come from many threads at once. Opened once,
// closed once.
class File final : public XrdOssDF {
 public:
  File(Door& door, const char* tident) : XrdOssDF(tident, DF_isFile), door_(door) {}
  ~File() override { Close(nullptr); }

  int Open(const char* path, int flags, mode_t mode, XrdOucEnv& env) override;
  int Close(long long* size) override;

  // Reads.
  int Fstat(struct stat* buffer) override;
  ssize_t Read(off_t offset, size_t size) override;
  ssize_t Read(void* buffer, off_t offset, size_t size) override;
  int Read(XrdSfsAio* aio) override;
  ssize_t ReadRaw(void* buffer, off_t offset, size_t size) override;
  ssize_t ReadV(XrdOucIOVec* pieces, int count) override;
  ssize_t pgRead(void* buffer, off_t offset, size_t size, uint32_t* checksums,
                 uint64_t options) override;
  int pgRead(XrdSfsAio* aio, uint64_t options) override;
  off_t getMmap(void** address) override;
  int getFD() override;
  int isCompressed(char* algorithm) override;
  void Flush() override;
  int Fctl(int command, int size, const char* arguments, char** response) override;

  // Changes: of local files, and of names while they are written anew.
  int Fchmod(mode_t mode) override;
  int Fsync() override;
  int Fsync(XrdSfsAio* aio) override;
  int Ftruncate(unsigned long long size) override;
  ssize_t Write(const void* buffer, off_t offset, size_t size) override;
  int Write(XrdSfsAio* aio) override;
  ssize_t WriteV(XrdOucIOVec* pieces, int count) override;
  ssize_t pgWrite(void* buffer, off_t offset, size_t size, uint32_t* checksums,
                  uint64_t options) override;
  int pgWrite(XrdSfsAio* aio, uint64_t options) override;

 private:
  int open_local(const char* path, int flags, mode_t mode, XrdOucEnv& env);
  int open_named(const std::string& name, const XrdOucEnv& env);
  int open_upload(const std::string& name, int flags, mode_t mode, XrdOucEnv& env);
  int close_upload(long long* size);
  void write_log(int error);
  // What a read returns to XRootD, counted.
  ssize_t counted(const Outcome<uint64_t>& outcome, size_t ranges);
  ssize_t read_pieces(std::vector<byname_range>& ranges, uint64_t wanted);

  Door& door_;
  std::unique_ptr<XrdOssDF> local_;
  std::unique_ptr<NamedFile> named_;
  std::unique_ptr<Upload> upload_;
  Status status_{};
  OpenRecord record_;
  std::chrono::steady_clock::time_point opened_{};
  std::atomic<uint64_t> reads_{0};
  std::atomic<uint64_t> ranges_{0};
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace byname::xrd
