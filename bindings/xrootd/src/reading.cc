#include "reading.hh"

#include "XrdOuc/XrdOucEnv.hh"
#include "identity.hh"

namespace byname::xrd {
namespace {

Client client_or_nobody(const XrdOucEnv* env) {
  return env ? client_of(*env) : Client{};
}

Failure refused(Door& door, const Failure& failure) {
  if (failure.error != ENOENT) {
    door.log.Emsg("read", failure.text.c_str());
  }
  return failure;
}

bool is_local(const Door& door, const Route& route, const std::string& path) {
  struct stat stat {};
  return route.order == Order::kLocalFirst && door.local->Stat(path.c_str(), &stat) == XrdOssOK &&
         !S_ISDIR(stat.st_mode);
}

}  // namespace

Outcome<std::unique_ptr<NamedFile>> open_for(Door& door, const XrdOucEnv* env,
                                             const std::string& name) {
  if (!door.session.binds_reading()) {
    return door.session.open_file(name);
  }
  const auto user = door.session.actor(client_or_nobody(env));
  if (const auto* failure = std::get_if<Failure>(&user)) {
    return refused(door, *failure);
  }
  auto opened = std::get<std::unique_ptr<Actor>>(user)->open(name);
  if (const auto* failure = std::get_if<Failure>(&opened)) {
    return refused(door, *failure);
  }
  return opened;
}

Outcome<std::unique_ptr<Listing>> list_for(Door& door, const XrdOucEnv& env,
                                           const std::string& name) {
  if (!door.session.binds_reading()) {
    auto listed = door.session.list(name);
    if (const auto* failure = std::get_if<Failure>(&listed)) {
      return *failure;
    }
    return std::unique_ptr<Listing>(std::move(std::get<std::unique_ptr<NamedListing>>(listed)));
  }
  auto user = door.session.actor(client_of(env));
  if (const auto* failure = std::get_if<Failure>(&user)) {
    return refused(door, *failure);
  }
  auto listing =
      std::make_unique<UserListing>(std::move(std::get<std::unique_ptr<Actor>>(user)), name);
  if (const auto failure = listing->begin()) {
    return refused(door, *failure);
  }
  return std::unique_ptr<Listing>(std::move(listing));
}

bool may(Door& door, const Client& client, const std::string& path, uint32_t wanted) {
  const auto route = door.routes.find(path);
  if (!route || !door.session.binds_reading() || is_local(door, *route, path)) {
    return true;
  }
  const auto user = door.session.actor(client);
  if (const auto* failure = std::get_if<Failure>(&user)) {
    refused(door, *failure);
    return false;
  }
  const auto outcome = std::get<std::unique_ptr<Actor>>(user)->access(route->name, wanted);
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    refused(door, *failure);
    if (failure->error == ENOENT) {
      door.open_files.gone(path);  // what others have open is nothing to share
    }
    return failure->error == ENOENT;
  }
  const Status& status = std::get<Status>(outcome);
  if (S_ISREG(status.stat.st_mode)) {
    door.open_files.saw(path, status.version);
  }
  return wanted == 0 || !S_ISLNK(status.stat.st_mode);
}

}  // namespace byname::xrd
