// From what a publisher signed to what XRootD wants of stat().
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "byname.h"

namespace byname::xrd {

// A checksum that the publisher has signed: the name that XRootD knows it by, and its octets.
struct Checksum {
  std::string name;
  std::string value;
};

// What stat says, and what its publisher says besides.
struct Status {
  struct stat stat;
  uint64_t version;
  std::vector<Checksum> checksums;
};

// `name` makes the inode number, together with the version.
Status status_of(const byname_attributes& attributes, const std::string& name);

}  // namespace byname::xrd
