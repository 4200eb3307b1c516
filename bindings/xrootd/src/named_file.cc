#include "named_file.hh"

namespace byname::xrd {

NamedFile::~NamedFile() {
  byname_file_close(file_, nullptr);
}

Outcome<Status> NamedFile::status() const {
  auto attributes = byname_init<byname_attributes>();
  auto error = no_error();
  if (byname_file_attributes(file_, &attributes, &error) < 0) {
    return failure_of(error);
  }
  return status_of(attributes, name_);
}

Outcome<uint64_t> NamedFile::read(void* buffer, uint64_t bytes, uint64_t offset) const {
  auto error = no_error();
  const int64_t filled = byname_read(file_, buffer, bytes, offset, &error);
  if (filled < 0) {
    return failure_of(error);
  }
  return static_cast<uint64_t>(filled);
}

Outcome<uint64_t> NamedFile::read_ranges(std::vector<byname_range>& ranges) const {
  auto error = no_error();
  const int64_t filled = byname_read_ranges(file_, ranges.data(), ranges.size(), &error);
  if (filled < 0) {
    return failure_of(error);
  }
  return static_cast<uint64_t>(filled);
}

byname_counters NamedFile::counters() const {
  auto counters = byname_init<byname_counters>();
  byname_file_counters(file_, &counters, nullptr);
  return counters;
}

}  // namespace byname::xrd
