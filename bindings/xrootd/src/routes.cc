#include "routes.hh"

#include <algorithm>

namespace byname::xrd {

std::optional<std::string> normal_path(const std::string& path) {
  if (path.empty() || path[0] != '/') {
    return std::nullopt;
  }
  std::string normal;
  size_t at = 0;
  while (at < path.size()) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at) {
      const std::string component = path.substr(at, end - at);
      if (component == "." || component == "..") {
        return std::nullopt;
      }
      normal += "/" + component;
    }
    at = end + 1;
  }
  return normal.empty() ? "/" : normal;
}

Routes::Routes(std::vector<Prefix> prefixes) : prefixes_(std::move(prefixes)) {
  std::stable_sort(prefixes_.begin(), prefixes_.end(), [](const Prefix& one, const Prefix& other) {
    return one.path.size() > other.path.size();
  });
}

std::optional<Route> Routes::find(const std::string& path) const {
  const auto normal = normal_path(path);
  if (!normal) {
    return std::nullopt;
  }
  for (const Prefix& prefix : prefixes_) {
    const std::string base = prefix.path == "/" ? "" : prefix.path;
    if (normal->compare(0, base.size(), base) != 0) {
      continue;
    }
    std::string rest = *normal == "/" ? "" : normal->substr(base.size());
    if (!rest.empty() && rest[0] != '/') {
      continue;  // "/store" does not cover "/stores"
    }
    const std::string name = (prefix.name == "/" ? "" : prefix.name) + rest;
    return Route{name.empty() ? "/" : name, prefix.order};
  }
  return std::nullopt;
}

}  // namespace byname::xrd
