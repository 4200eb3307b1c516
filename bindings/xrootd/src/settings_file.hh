// Reads the `byname.` lines of xrootd's configuration file.
#pragma once

#include <optional>

#include "XrdSys/XrdSysError.hh"
#include "settings.hh"

namespace byname::xrd {

// Settings of the file. Nothing if it has mistakes: each was said with its line.
std::optional<Settings> read_settings(const char* file, bool has_local, XrdSysError& log);

}  // namespace byname::xrd
