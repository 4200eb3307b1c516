// From what a publisher signed to what XRootD wants of stat().
#pragma once

#include <string>

#include "session.hh"

namespace byname::xrd {

// `name` makes the inode number, together with the version.
Status status_of(const byname_attributes& attributes, const std::string& name);

}  // namespace byname::xrd
