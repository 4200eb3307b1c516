// A version of a file that is open by name.
//
// Every function may be called from any thread. Nothing here knows xrootd.
#pragma once

#include <string>
#include <vector>

#include "byname.h"
#include "errors.hh"
#include "status.hh"

namespace byname::xrd {

// One version of a file, open. Closed when it goes.
class NamedFile {
 public:
  NamedFile(byname_file file, std::string name) : file_(file), name_(std::move(name)) {}
  ~NamedFile();
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;

  Outcome<Status> status() const;
  // Octets read; fewer than `bytes` only at the end of the file.
  Outcome<uint64_t> read(void* buffer, uint64_t bytes, uint64_t offset) const;
  // All ranges in one call.
  Outcome<uint64_t> read_ranges(std::vector<byname_range>& ranges) const;
  byname_counters counters() const;
  const std::string& name() const { return name_; }

 private:
  byname_file file_;
  std::string name_;
};

}  // namespace byname::xrd
