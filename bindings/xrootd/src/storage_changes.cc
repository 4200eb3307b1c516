// Changes of storage: names are changed as the user for whom the door acts, and are read-only where
// there is no door; local paths are the local storage's business.
#include "XrdOuc/XrdOucEnv.hh"
#include "identity.hh"
#include "storage.hh"

namespace byname::xrd {

XrdOss* Storage::writable(const char* path) {
  if (door_.local && !is_named(path)) {
    return door_.local;
  }
  door_.counters.refused_writes += 1;
  return nullptr;
}

std::unique_ptr<Actor> Storage::actor(const XrdOucEnv* env, int& error) {
  auto outcome = door_.session.actor(env ? client_of(*env) : Client{});
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    door_.log.Emsg("change", failure->text.c_str());
    error = -failure->error;
    return nullptr;
  }
  return std::get<std::unique_ptr<Actor>>(std::move(outcome));
}

template <class Local, class Named>
int Storage::changed(const char* path, XrdOucEnv* env, Local local, Named named) {
  return guarded([&]() -> int {
    const auto route = door_.routes.find(path);
    if (!route || !door_.session.has_door()) {
      XrdOss* const storage = writable(path);
      return storage ? local(*storage) : -EROFS;
    }
    int error = XrdOssOK;
    const auto user = actor(env, error);
    if (!user) {
      return error;
    }
    const std::optional<Failure> failure = named(*user, route->name);
    if (!failure) {
      return XrdOssOK;
    }
    door_.log.Emsg("change", failure->text.c_str());
    return -failure->error;
  });
}

int Storage::Chmod(const char* path, mode_t mode, XrdOucEnv* env) {
  return changed(
      path, env, [&](XrdOss& local) { return local.Chmod(path, mode, env); },
      [&](const Actor& user, const std::string& name) { return user.chmod(name, mode); });
}

// A name is made when what is written is whole. What is above it is made here, if that is asked
// for; ENOTSUP has XRootD say at the opening that there is a new file.
int Storage::Create(const char* tident, const char* path, mode_t mode, XrdOucEnv& env,
                    int options) {
  bool is_named_file = false;
  const int outcome = changed(
      path, &env, [&](XrdOss& local) { return local.Create(tident, path, mode, env, options); },
      [&](const Actor& user, const std::string& name) -> std::optional<Failure> {
        is_named_file = true;
        const auto end = name.rfind('/');
        if ((options & XRDOSS_mkpath) == 0 || end == std::string::npos || end == 0) {
          return std::nullopt;
        }
        return user.make_directory(name.substr(0, end), 0755, true);
      });
  return outcome == XrdOssOK && is_named_file ? -ENOTSUP : outcome;
}

int Storage::Mkdir(const char* path, mode_t mode, int make_path, XrdOucEnv* env) {
  return changed(
      path, env, [&](XrdOss& local) { return local.Mkdir(path, mode, make_path, env); },
      [&](const Actor& user, const std::string& name) {
        return user.make_directory(name, mode, make_path != 0);
      });
}

int Storage::Reloc(const char* tident, const char* path, const char* space, const char* anchor) {
  return guarded([&] {
    XrdOss* const local = writable(path);
    return local ? local->Reloc(tident, path, space, anchor) : -EROFS;
  });
}

int Storage::Remdir(const char* path, int options, XrdOucEnv* env) {
  return changed(
      path, env, [&](XrdOss& local) { return local.Remdir(path, options, env); },
      [&](const Actor& user, const std::string& name) { return user.remove_directory(name); });
}

int Storage::Rename(const char* from, const char* to, XrdOucEnv* from_env, XrdOucEnv* to_env) {
  return changed(
      from, from_env,
      [&](XrdOss& local) {
        return writable(to) ? local.Rename(from, to, from_env, to_env) : -EROFS;
      },
      [&](const Actor& user, const std::string& name) -> std::optional<Failure> {
        const auto route = door_.routes.find(to);
        if (!route) {
          return Failure{EXDEV, std::string(to) + " is no name"};
        }
        return user.rename(name, route->name);
      });
}

int Storage::Truncate(const char* path, unsigned long long size, XrdOucEnv* env) {
  return changed(
      path, env, [&](XrdOss& local) { return local.Truncate(path, size, env); },
      [&](const Actor& user, const std::string& name) { return user.truncate(name, size); });
}

int Storage::Unlink(const char* path, int options, XrdOucEnv* env) {
  return changed(
      path, env, [&](XrdOss& local) { return local.Unlink(path, options, env); },
      [&](const Actor& user, const std::string& name) { return user.remove_file(name); });
}

}  // namespace byname::xrd
