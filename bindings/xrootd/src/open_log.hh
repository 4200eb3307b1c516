// The log of opens: one line of JSON for each file that was open, or could not be opened.
//
// XRootD gives all who read a path the same open file, so a line counts what all of them read; who
// opened it first is in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace byname::xrd {

// Who asked, as XRootD has found out. Empty where it knows nothing.
struct Client {
  std::string protocol;
  std::string name;
  std::string host;
  std::string vo;
  std::string role;
  std::string groups;
  std::string connection;
};

// An open file, from its opening to its end.
struct OpenRecord {
  std::string path;
  std::string name;  // empty: the file was local
  Client client;
  std::chrono::system_clock::time_point opened;
  double seconds = 0;
  uint64_t size = 0;
  uint64_t version = 0;
  uint64_t reads = 0;   // calls
  uint64_t ranges = 0;  // pieces that they asked for
  uint64_t bytes = 0;   // handed to XRootD
  uint64_t received_bytes = 0;
  uint64_t cached_bytes = 0;
  std::string source;
  int error = 0;  // the errno if it could not be opened
  std::string error_text;
};

// The line, with its end.
std::string line_of(const OpenRecord& record);

// The file of lines. It may be renamed or removed at any time: the next line begins a new one.
class OpenLog {
 public:
  // `path` may be empty: nothing is written.
  explicit OpenLog(std::string path) : path_(std::move(path)) {}
  ~OpenLog();
  OpenLog(const OpenLog&) = delete;
  OpenLog& operator=(const OpenLog&) = delete;

  // Opens the file; an errno if that is impossible, otherwise 0.
  int open();
  bool is_on() const { return !path_.empty(); }
  // Appends a line. Lines that cannot be written are counted.
  void write(const OpenRecord& record);
  uint64_t lost_count() const;

 private:
  int open_locked();

  const std::string path_;
  mutable std::mutex mutex_;
  int fd_ = -1;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  uint64_t lost_count_ = 0;
};

}  // namespace byname::xrd
