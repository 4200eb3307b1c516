#include "json.hh"

#include <cstdint>
#include <cstdio>

namespace byname::xrd {
namespace {

// Octets of the well-formed UTF-8 character at `at`, or 0.
size_t character_bytes(const std::string& text, size_t at) {
  const auto octet = [&](size_t index) {
    return index < text.size() ? static_cast<unsigned char>(text[index]) : 0u;
  };
  const unsigned first = octet(at);
  if (first < 0x80) {
    return 1;
  }
  const size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) {
    return 0;
  }
  for (size_t index = 1; index < count; ++index) {
    if ((octet(at + index) & 0xc0) != 0x80) {
      return 0;
    }
  }
  const unsigned second = octet(at + 1);
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_outside = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return is_overlong || is_outside ? 0 : count;
}

std::string escaped(char character) {
  switch (character) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(character);
  if (code >= 0x20 && code != 0x7f) {
    return std::string(1, character);
  }
  char text[7];
  std::snprintf(text, sizeof text, "\\u%04x", code);
  return text;
}

}  // namespace

std::string json_string(const std::string& text) {
  std::string json = "\"";
  size_t at = 0;
  while (at < text.size()) {
    const size_t bytes = character_bytes(text, at);
    if (bytes == 1) {
      json += escaped(text[at]);
    } else if (bytes == 0) {
      json += "\\ufffd";
    } else {
      json.append(text, at, bytes);
    }
    at += bytes == 0 ? 1 : bytes;
  }
  return json + "\"";
}

}  // namespace byname::xrd
