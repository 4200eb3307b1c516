// Everything that the plug-in's objects share.
#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <string>

#include "XrdOss/XrdOss.hh"
#include "XrdSys/XrdSysError.hh"
#include "metrics.hh"
#include "open_files.hh"
#include "open_log.hh"
#include "routes.hh"
#include "session.hh"
#include "settings.hh"

namespace byname::xrd {

struct Door {
  // `is_bulk`: files will be read here, not only looked for.
  Door(const Settings& settings, bool is_bulk, XrdOss* local, XrdSysLogger* logger);

  XrdSysError log;
  XrdOss* const local;  // null: names only
  const std::string spool;
  const Routes routes;
  Session session;
  Counters counters;
  OpenLog open_log;
  OpenFiles open_files;
};

// Runs `body`, which returns 0, a count, or a negative errno. No exception leaves it: xrootd would
// end.
template <class Body>
auto guarded(Body body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const std::exception&) {
    return -EFAULT;
  }
}

// Asks local storage and names in the order of the route. Both return a negative errno or success.
template <class Local, class Named>
int in_order(Order order, Local local, Named named) {
  switch (order) {
    case Order::kLocalFirst: {
      const int outcome = local();
      return outcome == -ENOENT || outcome == -ENOTDIR ? named() : outcome;
    }
    case Order::kNameFirst: {
      const int outcome = named();
      if (outcome >= 0 || !means_elsewhere(-outcome)) {
        return outcome;
      }
      const int second = local();
      return second == -ENOENT || second == -ENOTDIR ? outcome : second;
    }
    default:
      return named();
  }
}

}  // namespace byname::xrd
