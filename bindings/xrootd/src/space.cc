// Space and extended attributes: names have no free space, and their attributes are those of stat.
#include <cstdio>

#include "XrdOss/XrdOssVS.hh"
#include "storage.hh"

namespace byname::xrd {
namespace {

// Puts a text where XRootD wants it; -ENOBUFS if it does not fit.
int put(const std::string& text, char* buffer, int& size) {
  if (size <= 0 || text.size() >= static_cast<size_t>(size)) {
    return -ENOBUFS;
  }
  text.copy(buffer, text.size());
  buffer[text.size()] = '\0';
  size = static_cast<int>(text.size());
  return XrdOssOK;
}

}  // namespace

// Read-write: writable, free MB, percent used; staged: the same.
int Storage::StatFS(const char* path, char* buffer, int& size, XrdOucEnv* env) {
  return guarded([&] {
    if (door_.local && !is_named(path)) {
      return door_.local->StatFS(path, buffer, size, env);
    }
    return put("0 0 0 0 0 0", buffer, size);
  });
}

int Storage::StatLS(XrdOucEnv& env, const char* path, char* buffer, int& size) {
  return guarded([&] {
    if (door_.local && !is_named(path)) {
      return door_.local->StatLS(env, path, buffer, size);
    }
    return put("oss.cgroup=byname&oss.space=0&oss.free=0&oss.maxf=0&oss.used=0&oss.quota=-1",
               buffer, size);
  });
}

int Storage::StatVS(XrdOssVSInfo* space, const char* name, int update) {
  if (door_.local) {
    return door_.local->StatVS(space, name, update);
  }
  // As it was made: nothing to write to.
  return XrdOssOK;
}

int Storage::StatXA(const char* path, char* buffer, int& size, XrdOucEnv* env) {
  return guarded([&] {
    const auto local = [&] { return door_.local->StatXA(path, buffer, size, env); };
    const auto route = door_.routes.find(path);
    if (!route) {
      return door_.local ? local() : -ENOENT;
    }
    return in_order(route->order, local, [&] {
      struct stat stat {};
      if (const int outcome = stat_name(path, route->name, &stat); outcome != XrdOssOK) {
        return outcome;
      }
      const char type = S_ISDIR(stat.st_mode) ? 'd' : S_ISREG(stat.st_mode) ? 'f' : 'o';
      const std::string mtime = std::to_string(stat.st_mtim.tv_sec);
      return put(std::string("oss.cgroup=byname&oss.type=") + type +
                     "&oss.used=" + std::to_string(stat.st_size) + "&oss.mt=" + mtime +
                     "&oss.ct=" + mtime + "&oss.at=" + mtime + "&oss.u=*&oss.g=*&oss.fs=r",
                 buffer, size);
    });
  });
}

int Storage::StatXP(const char* path, unsigned long long& attributes, XrdOucEnv* env) {
  return door_.local ? door_.local->StatXP(path, attributes, env) : -ENOTSUP;
}

}  // namespace byname::xrd
