// From a path of a client to the name that it stands for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "settings.hh"

namespace byname::xrd {

// Normal form of an absolute path: one '/' between components, none at the end, "/" for the root.
// Nothing if it is not absolute or has "." or "..".
std::optional<std::string> normal_path(const std::string& path);

// Where a path leads.
struct Route {
  std::string name;  // below the session's prefix
  Order order;
};

// The configured prefixes.
class Routes {
 public:
  explicit Routes(std::vector<Prefix> prefixes);

  // The route of the longest prefix that covers the path, or nothing if none does.
  std::optional<Route> find(const std::string& path) const;

 private:
  std::vector<Prefix> prefixes_;  // longest first
};

}  // namespace byname::xrd
