#include "storage.hh"

#include "XrdOuc/XrdOucEnv.hh"
#include "checksums.hh"
#include "directory.hh"
#include "file.hh"
#include "identity.hh"

namespace byname::xrd {

XrdOssDF* Storage::newDir(const char* tident) {
  return new (std::nothrow) Directory(door_, tident);
}

XrdOssDF* Storage::newFile(const char* tident) {
  return new (std::nothrow) File(door_, tident);
}

int Storage::stat_name(const char* path, const std::string& name, struct stat* buffer) {
  door_.counters.stats += 1;
  const auto outcome = door_.session.stat(name);
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    if (failure->error == ENOENT) {
      door_.open_files.gone(path);
    }
    return -failure->error;
  }
  const Status& status = std::get<Status>(outcome);
  door_.open_files.saw(path, status.version);
  *buffer = status.stat;
  return XrdOssOK;
}

int Storage::Stat(const char* path, struct stat* buffer, int options, XrdOucEnv* env) {
  return guarded([&] {
    const auto local = [&] { return door_.local->Stat(path, buffer, options, env); };
    const auto route = door_.routes.find(path);
    if (!route) {
      return door_.local ? local() : -ENOENT;
    }
    return in_order(route->order, local,
                    [&] { return stat_for(path, route->name, buffer, env); });
  });
}

// A client whom the door's table knows sees what the head has now: his own changes, for instance.
int Storage::stat_for(const char* path, const std::string& name, struct stat* buffer,
                      XrdOucEnv* env) {
  if (!env || !env->secEnv() || !door_.session.has_door()) {
    return stat_name(path, name, buffer);
  }
  const auto user = door_.session.actor(client_of(*env));
  if (const auto* failure = std::get_if<Failure>(&user)) {
    return door_.session.binds_reading() ? -failure->error : stat_name(path, name, buffer);
  }
  door_.counters.stats += 1;
  const auto outcome = std::get<std::unique_ptr<Actor>>(user)->stat(name);
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    return -failure->error;
  }
  *buffer = std::get<Status>(outcome).stat;
  door_.open_files.saw(path, std::get<Status>(outcome).version);
  return XrdOssOK;
}

int Storage::StatPF(const char* path, struct stat* buffer, int options) {
  return guarded([&] {
    // Without a path the question is about partitions, and there are none of ours.
    const bool is_about_disks = path == nullptr || (options & (PF_dInfo | PF_dNums)) != 0;
    const auto route = is_about_disks ? std::nullopt : door_.routes.find(path);
    const auto local = [&] { return door_.local->StatPF(path, buffer, options); };
    if (!route) {
      return door_.local ? local() : -ENOTSUP;
    }
    return in_order(route->order, local, [&] {
      const int outcome = stat_name(path, route->name, buffer);
      buffer->st_rdev = 0;  // no checksums of pages are kept
      return outcome;
    });
  });
}

uint64_t Storage::Features() {
  // Reads come in pieces of up to 2 MiB rather than of 64 KiB (docs/decisions, 0017); pages are
  // summed here. There is never a descriptor to send from.
  const uint64_t ours = XRDOSS_HASPGRW | XRDOSS_HASNAIO;
  return door_.local ? door_.local->Features() | ours : ours | XRDOSS_HASNOSF;
}

void Storage::Connect(XrdOucEnv& env) {
  if (door_.local) {
    door_.local->Connect(env);
  }
}

void Storage::Disc(XrdOucEnv& env) {
  if (door_.local) {
    door_.local->Disc(env);
  }
}

void Storage::EnvInfo(XrdOucEnv* env) {
  if (door_.local) {
    door_.local->EnvInfo(env);
  }
}

int Storage::FSctl(int command, int size, const char* arguments, char** response) {
  return door_.local ? door_.local->FSctl(command, size, arguments, response) : -ENOTSUP;
}

int Storage::Stats(char* buffer, int size) {
  return door_.local ? door_.local->Stats(buffer, size) : 0;
}

bool Storage::is_served_by_name(const char* path) {
  const auto route = door_.routes.find(path);
  if (!route) {
    return false;
  }
  struct stat stat {};
  switch (route->order) {
    case Order::kLocalFirst:
      return door_.local->Stat(path, &stat) != XrdOssOK;
    case Order::kNameFirst:
      return stat_name(path, route->name, &stat) == XrdOssOK;
    default:
      return true;
  }
}

int Storage::Lfn2Pfn(const char* path, char* buffer, int size) {
  return guarded([&] {
    if (!is_served_by_name(path)) {
      return door_.local ? door_.local->Lfn2Pfn(path, buffer, size) : -ENOENT;
    }
    return XrdOss::Lfn2Pfn(physical_name(path).c_str(), buffer, size);
  });
}

const char* Storage::Lfn2Pfn(const char* path, char* buffer, int size, int& error) {
  error = guarded([&] {
    if (!is_served_by_name(path)) {
      return door_.local ? XrdOssOK : -ENOENT;
    }
    return XrdOss::Lfn2Pfn(physical_name(path).c_str(), buffer, size) == 0 ? 1 : -ENAMETOOLONG;
  });
  if (error == 1) {
    error = 0;
    return buffer;
  }
  return error == 0 ? door_.local->Lfn2Pfn(path, buffer, size, error) : nullptr;
}

}  // namespace byname::xrd
