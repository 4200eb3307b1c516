// Checksums that were computed here, because their publisher has not signed any.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

namespace byname::xrd {

// Remembers the last `count_max`: one of a version never changes.
class ChecksumStore {
 public:
  explicit ChecksumStore(size_t count_max) : count_max_(count_max) {}

  std::optional<std::string> find(const std::string& name, uint64_t version,
                                  const std::string& algorithm) const;
  void keep(const std::string& name, uint64_t version, const std::string& algorithm,
            const std::string& value);

 private:
  using Key = std::tuple<std::string, uint64_t, std::string>;

  const size_t count_max_;
  mutable std::mutex mutex_;
  std::map<Key, std::string> values_;
  std::deque<Key> oldest_first_;
};

}  // namespace byname::xrd
