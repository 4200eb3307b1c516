// Space and extended attributes: names have the room that a site has for the client's user, and none
// otherwise; their attributes are those of stat.
#include <algorithm>
#include <cstdio>

#include "XrdOss/XrdOssVS.hh"
#include "XrdOuc/XrdOucEnv.hh"
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

constexpr uint64_t kMegabyte = 1 << 20;

// Percent of what there may be that is not free.
uint64_t percent_used(const byname_site_room& room) {
  const uint64_t free = std::min(room.free_bytes, room.size_bytes);
  const uint64_t all = std::max<uint64_t>(room.size_bytes / 100, 1);
  return std::min<uint64_t>((room.size_bytes - free) / all, 100);
}

}  // namespace

std::optional<byname_site_room> Storage::room(const char* path, const XrdOucEnv* env) {
  const auto route = door_.routes.find(path);
  if (!route || !door_.session.has_door()) {
    return std::nullopt;
  }
  int error = XrdOssOK;
  const auto user = actor(env, error);
  if (!user) {
    return std::nullopt;
  }
  const auto outcome = user->room(route->name);
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    door_.log.Emsg("space", failure->text.c_str());
    return std::nullopt;
  }
  return std::get<byname_site_room>(outcome);
}

// Read-write: writable, free MB, percent used; staged: the same.
int Storage::StatFS(const char* path, char* buffer, int& size, XrdOucEnv* env) {
  return guarded([&] {
    if (door_.local && !is_named(path)) {
      return door_.local->StatFS(path, buffer, size, env);
    }
    const auto found = room(path, env);
    if (!found) {
      return put("0 0 0 0 0 0", buffer, size);
    }
    return put("1 " + std::to_string(found->free_bytes / kMegabyte) + " " +
                   std::to_string(percent_used(*found)) + " 0 0 0",
               buffer, size);
  });
}

int Storage::StatLS(XrdOucEnv& env, const char* path, char* buffer, int& size) {
  return guarded([&] {
    if (door_.local && !is_named(path)) {
      return door_.local->StatLS(env, path, buffer, size);
    }
    auto found = room(path, &env);
    if (!found) {
      found = byname_site_room{};
      found->quota_bytes = BYNAME_NONE;
    }
    const std::string free = std::to_string(found->free_bytes);
    const std::string quota =
        found->quota_bytes == BYNAME_NONE ? "-1" : std::to_string(found->quota_bytes);
    return put("oss.cgroup=byname&oss.space=" + std::to_string(found->size_bytes) +
                   "&oss.free=" + free + "&oss.maxf=" + free +
                   "&oss.used=" + std::to_string(found->used_bytes) + "&oss.quota=" + quota,
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
