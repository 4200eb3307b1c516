// Text as JSON wants it.
#pragma once

#include <string>

namespace byname::xrd {

// A JSON string, quotes included. Octets that are no UTF-8 become U+FFFD.
std::string json_string(const std::string& text);

}  // namespace byname::xrd
