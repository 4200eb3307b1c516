// A directory: its listing by name, and that of local storage in the order of the route.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "door.hh"

namespace byname::xrd {

// An entry that both listings have is the first one's. Used by one thread at a time.
class Directory final : public XrdOssDF {
 public:
  Directory(Door& door, const char* tident) : XrdOssDF(tident, DF_isDir), door_(door) {}
  ~Directory() override { Close(nullptr); }

  int Opendir(const char* path, XrdOucEnv& env) override;
  int Readdir(char* buffer, int size) override;
  int StatRet(struct stat* buffer) override;
  int Close(long long* size) override;

 private:
  int open_local(const char* path, XrdOucEnv& env);
  int open_named(const std::string& name, const XrdOucEnv& env);
  int open_both(const char* path, const Route& route, XrdOucEnv& env);
  int read_local(char* buffer, int size);
  int read_named(char* buffer, int size);
  int read_once(char* buffer, int size);

  Door& door_;
  std::string path_;
  std::unique_ptr<XrdOssDF> local_;
  std::unique_ptr<Listing> named_;
  bool is_local_now_ = false;
  bool is_first_ = true;         // the first of two listings, or the only one
  std::set<std::string> given_;  // by the first listing, if there is a second
  struct stat* status_ = nullptr;  // where each entry's goes; asked for before the first entry
  bool has_begun_ = false;
  bool has_local_status_ = false;
};

}  // namespace byname::xrd
