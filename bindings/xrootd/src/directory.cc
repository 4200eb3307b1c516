#include "directory.hh"

#include <cstring>

#include "reading.hh"

namespace byname::xrd {

int Directory::Opendir(const char* path, XrdOucEnv& env) {
  return guarded([&] {
    if (local_ || named_) {
      return -EINVAL;
    }
    path_ = path;
    const auto route = door_.routes.find(path);
    if (!route) {
      is_local_now_ = true;
      return door_.local ? open_local(path, env) : -ENOENT;
    }
    if (route->order == Order::kNameOnly) {
      return open_named(route->name, env);
    }
    return open_both(path, *route, env);
  });
}

int Directory::open_local(const char* path, XrdOucEnv& env) {
  std::unique_ptr<XrdOssDF> local(door_.local->newDir(tident));
  if (!local) {
    return -ENOMEM;
  }
  const int outcome = local->Opendir(path, env);
  if (outcome == XrdOssOK) {
    local_ = std::move(local);
  }
  return outcome;
}

int Directory::open_named(const std::string& name, const XrdOucEnv& env) {
  auto outcome = list_for(door_, env, name);
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    return -failure->error;
  }
  door_.counters.listings += 1;
  named_ = std::move(std::get<std::unique_ptr<Listing>>(outcome));
  return XrdOssOK;
}

// One of them is enough. What stands first decides about errors that mean more than "not here".
int Directory::open_both(const char* path, const Route& route, XrdOucEnv& env) {
  is_local_now_ = route.order == Order::kLocalFirst;
  const int local = open_local(path, env);
  if (is_local_now_ && local != XrdOssOK && local != -ENOENT) {
    return local;
  }
  const int named = open_named(route.name, env);
  if (!is_local_now_ && named != XrdOssOK && !means_elsewhere(-named)) {
    local_.reset();
    return named;
  }
  if (local_ || named_) {
    is_local_now_ = local_ && (is_local_now_ || !named_);
    return XrdOssOK;
  }
  return named;
}

int Directory::Readdir(char* buffer, int size) {
  return guarded([&] {
    if (!local_ && !named_) {
      return -EBADF;
    }
    if (size <= 0) {
      return -EINVAL;
    }
    has_begun_ = true;
    while (true) {
      const int outcome = read_once(buffer, size);
      if (outcome != XrdOssOK || buffer[0] != '\0') {
        return outcome;
      }
      const bool has_second = is_local_now_ ? named_ != nullptr : local_ != nullptr;
      if (!is_first_ || !has_second) {
        return XrdOssOK;
      }
      is_first_ = false;
      is_local_now_ = !is_local_now_;
    }
  });
}

// An entry of the listing whose turn it is that was not given yet; "" at its end.
int Directory::read_once(char* buffer, int size) {
  const bool are_two = local_ && named_;
  while (true) {
    const int outcome = is_local_now_ ? read_local(buffer, size) : read_named(buffer, size);
    if (outcome != XrdOssOK || buffer[0] == '\0' || !are_two) {
      return outcome;
    }
    if (is_first_) {
      given_.insert(buffer);
      return XrdOssOK;
    }
    if (given_.count(buffer) == 0) {
      return XrdOssOK;
    }
  }
}

int Directory::read_local(char* buffer, int size) {
  const int outcome = local_->Readdir(buffer, size);
  if (outcome == XrdOssOK && buffer[0] != '\0' && status_ && !has_local_status_) {
    XrdOucEnv* const no_env = nullptr;
    const std::string whole = path_ + "/" + buffer;
    const int known = door_.local->Stat(whole.c_str(), status_, 0, no_env);
    return known == -ENOENT ? read_local(buffer, size) : known;
  }
  return outcome;
}

int Directory::read_named(char* buffer, int size) {
  buffer[0] = '\0';
  while (true) {
    auto outcome = named_->next(status_ != nullptr);
    if (const auto* failure = std::get_if<Failure>(&outcome)) {
      return -failure->error;
    }
    const auto& entry = std::get<std::optional<Entry>>(outcome);
    if (!entry) {
      return XrdOssOK;
    }
    if (entry->name.size() >= static_cast<size_t>(size)) {
      return -ENAMETOOLONG;
    }
    if (status_ && entry->status) {
      if (const auto* failure = std::get_if<Failure>(&*entry->status)) {
        if (failure->error == ENOENT) {
          continue;  // gone since the directory was listed
        }
        const std::string whole = path_ + "/" + entry->name;
        door_.log.Emsg("list", whole.c_str(), ":", failure->text.c_str());
        return -failure->error;
      }
      *status_ = std::get<Status>(*entry->status).stat;
    }
    std::memcpy(buffer, entry->name.c_str(), entry->name.size() + 1);
    return XrdOssOK;
  }
}

int Directory::StatRet(struct stat* buffer) {
  if (!local_ && !named_) {
    return -EBADF;
  }
  if (has_begun_) {
    return -ENOTSUP;
  }
  status_ = buffer;
  // Storage that cannot fill in the status is asked for each entry.
  has_local_status_ = local_ && local_->StatRet(buffer) == XrdOssOK;
  return XrdOssOK;
}

int Directory::Close(long long*) {
  const int outcome = local_ ? local_->Close() : XrdOssOK;
  local_.reset();
  named_.reset();
  given_.clear();
  return outcome;
}

}  // namespace byname::xrd
