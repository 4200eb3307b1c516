#include "checksum_store.hh"

namespace byname::xrd {

std::optional<std::string> ChecksumStore::find(const std::string& name, uint64_t version,
                                               const std::string& algorithm) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = values_.find(Key(name, version, algorithm));
  return found == values_.end() ? std::nullopt : std::optional<std::string>(found->second);
}

void ChecksumStore::keep(const std::string& name, uint64_t version, const std::string& algorithm,
                         const std::string& value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Key key(name, version, algorithm);
  if (!values_.emplace(key, value).second) {
    return;
  }
  oldest_first_.push_back(key);
  if (oldest_first_.size() > count_max_) {
    values_.erase(oldest_first_.front());
    oldest_first_.pop_front();
  }
}

}  // namespace byname::xrd
