// Changes of storage: names are read-only, local paths are the local storage's business.
#include "storage.hh"

namespace byname::xrd {

XrdOss* Storage::writable(const char* path) {
  if (door_.local && !is_named(path)) {
    return door_.local;
  }
  door_.counters.refused_writes += 1;
  return nullptr;
}

int Storage::Chmod(const char* path, mode_t mode, XrdOucEnv* env) {
  return guarded([&] {
    XrdOss* const local = writable(path);
    return local ? local->Chmod(path, mode, env) : -EROFS;
  });
}

int Storage::Create(const char* tident, const char* path, mode_t mode, XrdOucEnv& env,
                    int options) {
  return guarded([&] {
    XrdOss* const local = writable(path);
    return local ? local->Create(tident, path, mode, env, options) : -EROFS;
  });
}

int Storage::Mkdir(const char* path, mode_t mode, int make_path, XrdOucEnv* env) {
  return guarded([&] {
    XrdOss* const local = writable(path);
    return local ? local->Mkdir(path, mode, make_path, env) : -EROFS;
  });
}

int Storage::Reloc(const char* tident, const char* path, const char* space, const char* anchor) {
  return guarded([&] {
    XrdOss* const local = writable(path);
    return local ? local->Reloc(tident, path, space, anchor) : -EROFS;
  });
}

int Storage::Remdir(const char* path, int options, XrdOucEnv* env) {
  return guarded([&] {
    XrdOss* const local = writable(path);
    return local ? local->Remdir(path, options, env) : -EROFS;
  });
}

int Storage::Rename(const char* from, const char* to, XrdOucEnv* from_env, XrdOucEnv* to_env) {
  return guarded([&] {
    XrdOss* const local = writable(from);
    return local && writable(to) ? local->Rename(from, to, from_env, to_env) : -EROFS;
  });
}

int Storage::Truncate(const char* path, unsigned long long size, XrdOucEnv* env) {
  return guarded([&] {
    XrdOss* const local = writable(path);
    return local ? local->Truncate(path, size, env) : -EROFS;
  });
}

int Storage::Unlink(const char* path, int options, XrdOucEnv* env) {
  return guarded([&] {
    XrdOss* const local = writable(path);
    return local ? local->Unlink(path, options, env) : -EROFS;
  });
}

}  // namespace byname::xrd
