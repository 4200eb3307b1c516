#include "open_log.hh"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>

#include "json.hh"

namespace byname::xrd {
namespace {

std::string utc(std::chrono::system_clock::time_point when) {
  const auto since = when.time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  const time_t seconds = static_cast<time_t>(ms / 1000);
  struct tm parts {};
  gmtime_r(&seconds, &parts);
  char day[32];
  std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  char whole[48];
  std::snprintf(whole, sizeof whole, "%s.%03dZ", day, static_cast<int>(ms % 1000));
  return whole;
}

// Members of a JSON object, one after the other.
class Members {
 public:
  void add(const char* key, const std::string& text) {
    if (!text.empty()) {
      add_raw(key, json_string(text));
    }
  }
  void add(const char* key, uint64_t number) { add_raw(key, std::to_string(number)); }
  void add_raw(const char* key, const std::string& json) {
    text_ += text_.empty() ? "{" : ",";
    text_ += json_string(key) + ":" + json;
  }
  std::string whole() const { return (text_.empty() ? "{" : text_) + "}"; }

 private:
  std::string text_;
};

std::string json_of(const Client& client) {
  Members members;
  members.add("protocol", client.protocol);
  members.add("name", client.name);
  members.add("host", client.host);
  members.add("vo", client.vo);
  members.add("role", client.role);
  members.add("groups", client.groups);
  members.add("connection", client.connection);
  return members.whole();
}

}  // namespace

std::string line_of(const OpenRecord& record) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3f", record.seconds);
  Members members;
  members.add("opened", utc(record.opened));
  members.add("path", record.path);
  members.add("from", std::string(record.name.empty() ? "local" : "name"));
  members.add("name", record.name);
  members.add_raw("client", json_of(record.client));
  members.add_raw("seconds", seconds);
  if (record.error != 0) {
    members.add("errno", static_cast<uint64_t>(record.error));
    members.add("error", record.error_text);
    return members.whole() + "\n";
  }
  members.add("size", record.size);
  if (!record.name.empty()) {
    members.add("version", record.version);
    members.add("reads", record.reads);
    members.add("ranges", record.ranges);
    members.add("bytes", record.bytes);
    members.add("received_bytes", record.received_bytes);
    members.add("cached_bytes", record.cached_bytes);
    members.add("source", record.source);
  }
  return members.whole() + "\n";
}

OpenLog::~OpenLog() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

int OpenLog::open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return path_.empty() ? 0 : open_locked();
}

int OpenLog::open_locked() {
  struct stat now {};
  const bool is_there = ::stat(path_.c_str(), &now) == 0;
  if (fd_ >= 0 && is_there && now.st_dev == device_ && now.st_ino == inode_) {
    return 0;
  }
  if (fd_ >= 0) {
    ::close(fd_);
  }
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (fd_ < 0) {
    return errno;
  }
  if (::fstat(fd_, &now) == 0) {
    device_ = now.st_dev;
    inode_ = now.st_ino;
  }
  return 0;
}

void OpenLog::write(const OpenRecord& record) {
  if (path_.empty()) {
    return;
  }
  const std::string line = line_of(record);
  const std::lock_guard<std::mutex> lock(mutex_);
  // One write each: lines of two servers that share the file do not mix.
  const bool is_written = open_locked() == 0 && ::write(fd_, line.data(), line.size()) ==
                                                    static_cast<ssize_t>(line.size());
  lost_count_ += is_written ? 0 : 1;
}

uint64_t OpenLog::lost_count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lost_count_;
}

}  // namespace byname::xrd
