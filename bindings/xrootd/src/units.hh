// Sizes and durations as people write them: "64m", "500ms", "none".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace byname::xrd {

// "4096", "64k", "16m", "2g": octets. Nothing if it is no number, 0, or too large.
std::optional<uint64_t> parse_bytes(const std::string& text);

// "500ms", "4s", "2m": milliseconds. A number without a unit is refused, as is 0.
std::optional<uint64_t> parse_milliseconds(const std::string& text);

// A plain number from `min` to `max`.
std::optional<uint64_t> parse_number(const std::string& text, uint64_t min, uint64_t max);

}  // namespace byname::xrd
