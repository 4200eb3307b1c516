#include "open_files.hh"

namespace byname::xrd {

void OpenFiles::opened(const std::string& path, const std::string& name, uint64_t version) {
  const std::lock_guard<std::mutex> lock(mutex_);
  open_.emplace(path, Known{name, version, false});
}

void OpenFiles::closed(const std::string& path, uint64_t version) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [begin, end] = open_.equal_range(path);
  for (auto it = begin; it != end; ++it) {
    if (it->second.version == version) {
      open_.erase(it);
      return;
    }
  }
}

// XRootD is called without the lock: it has locks of its own, and calls back.
void OpenFiles::saw(const std::string& path, uint64_t version) {
  bool is_outdated = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [begin, end] = open_.equal_range(path);
    for (auto it = begin; it != end; ++it) {
      if (it->second.version < version && !it->second.is_forgotten) {
        it->second.is_forgotten = true;
        is_outdated = true;
      }
    }
  }
  if (is_outdated) {
    forget_(path);
  }
}

void OpenFiles::gone(const std::string& path) {
  saw(path, UINT64_MAX);
}

std::vector<OpenFiles::Open> OpenFiles::list() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Open> all;
  for (const auto& [path, known] : open_) {
    if (!known.is_forgotten) {
      all.push_back({path, known.name});
    }
  }
  return all;
}

}  // namespace byname::xrd
