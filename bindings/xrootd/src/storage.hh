// The storage system that xrootd and cmsd see.
//
// Paths below a configured prefix are names, and read-only; all others belong to the local storage
// if there is any. All functions may be called from any thread.
#pragma once

#include "door.hh"

namespace byname::xrd {

class Storage final : public XrdOss {
 public:
  explicit Storage(Door& door) : door_(door) {}

  Door& door() { return door_; }

  XrdOssDF* newDir(const char* tident) override;
  XrdOssDF* newFile(const char* tident) override;

  int Stat(const char* path, struct stat* buffer, int options, XrdOucEnv* env) override;
  int StatPF(const char* path, struct stat* buffer, int options) override;
  int StatFS(const char* path, char* buffer, int& size, XrdOucEnv* env) override;
  int StatLS(XrdOucEnv& env, const char* path, char* buffer, int& size) override;
  int StatVS(XrdOssVSInfo* space, const char* name, int update) override;
  int StatXA(const char* path, char* buffer, int& size, XrdOucEnv* env) override;
  int StatXP(const char* path, unsigned long long& attributes, XrdOucEnv* env) override;

  // Changes: below the prefixes as the user for whom the door acts; refused without one.
  int Chmod(const char* path, mode_t mode, XrdOucEnv* env) override;
  int Create(const char* tident, const char* path, mode_t mode, XrdOucEnv& env,
             int options) override;
  int Mkdir(const char* path, mode_t mode, int make_path, XrdOucEnv* env) override;
  int Reloc(const char* tident, const char* path, const char* space, const char* anchor) override;
  int Remdir(const char* path, int options, XrdOucEnv* env) override;
  int Rename(const char* from, const char* to, XrdOucEnv* from_env, XrdOucEnv* to_env) override;
  int Truncate(const char* path, unsigned long long size, XrdOucEnv* env) override;
  int Unlink(const char* path, int options, XrdOucEnv* env) override;

  // The local storage was initialised before or is by its loader.
  int Init(XrdSysLogger*, const char*) override { return XrdOssOK; }
  uint64_t Features() override;
  void Connect(XrdOucEnv& env) override;
  void Disc(XrdOucEnv& env) override;
  void EnvInfo(XrdOucEnv* env) override;
  int FSctl(int command, int size, const char* arguments, char** response) override;
  int Stats(char* buffer, int size) override;
  int Lfn2Pfn(const char* path, char* buffer, int size) override;
  const char* Lfn2Pfn(const char* path, char* buffer, int size, int& error) override;

  // True if the path is served by name now: no file of this machine stands for it.
  bool is_served_by_name(const char* path);

  // Status of the name that a path stands for.
  int stat_name(const char* path, const std::string& name, struct stat* buffer);

 private:
  int stat_for(const char* path, const std::string& name, struct stat* buffer, XrdOucEnv* env);
  bool is_named(const char* path) const { return door_.routes.find(path).has_value(); }
  // The local storage if the path is its own; otherwise null, and the refusal is counted.
  XrdOss* writable(const char* path);
  // Changes a path at local storage, or a name as the client's user.
  template <class Local, class Named>
  int changed(const char* path, XrdOucEnv* env, Local local, Named named);
  // Room for what the client may write at a path that is a name; none if nobody can say.
  std::optional<byname_site_room> room(const char* path, const XrdOucEnv* env);
  // The client's user; null, and an error, if there is none.
  std::unique_ptr<Actor> actor(const XrdOucEnv* env, int& error);

  Door& door_;
};

}  // namespace byname::xrd
