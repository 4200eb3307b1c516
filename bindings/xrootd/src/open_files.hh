// The names that are open, to notice when one has a newer version.
//
// XRootD gives whoever opens a path that is open already the open file, so an old version would be
// read as long as anybody holds it. Whoever notices a newer one has XRootD forget the open file for
// those who come later; those who have it keep it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace byname::xrd {

class OpenFiles {
 public:
  // `forget` is called with a path whose open file new readers must not get.
  explicit OpenFiles(std::function<void(const std::string&)> forget) : forget_(std::move(forget)) {}

  void opened(const std::string& path, const std::string& name, uint64_t version);
  void closed(const std::string& path, uint64_t version);

  // What a publisher says of a path now. An older version that is open is forgotten.
  void saw(const std::string& path, uint64_t version);
  // The version that is open can no longer be read, or the name is gone.
  void gone(const std::string& path);

  // Paths that are open, and what they stand for.
  struct Open {
    std::string path;
    std::string name;
  };
  std::vector<Open> list() const;

 private:
  struct Known {
    std::string name;
    uint64_t version;
    bool is_forgotten;
  };

  const std::function<void(const std::string&)> forget_;
  mutable std::mutex mutex_;
  // Versions of one path that are open; more than one only until the older ones are closed.
  std::multimap<std::string, Known> open_;
};

}  // namespace byname::xrd
