#include "units.hh"

#include <cctype>

namespace byname::xrd {
namespace {

// The number at the beginning of `text`, and what follows it.
struct Parsed {
  uint64_t number;
  std::string rest;
};

std::optional<Parsed> leading_number(const std::string& text) {
  uint64_t number = 0;
  size_t at = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
    const uint64_t digit = static_cast<uint64_t>(text[at] - '0');
    if (number > (UINT64_MAX - digit) / 10) {
      return std::nullopt;
    }
    number = number * 10 + digit;
    ++at;
  }
  if (at == 0) {
    return std::nullopt;
  }
  return Parsed{number, text.substr(at)};
}

std::optional<uint64_t> times(uint64_t number, uint64_t factor) {
  if (number == 0 || number > UINT64_MAX / factor) {
    return std::nullopt;
  }
  return number * factor;
}

}  // namespace

std::optional<uint64_t> parse_bytes(const std::string& text) {
  const auto parsed = leading_number(text);
  if (!parsed) {
    return std::nullopt;
  }
  if (parsed->rest.empty()) {
    return times(parsed->number, 1);
  }
  if (parsed->rest.size() != 1) {
    return std::nullopt;
  }
  switch (std::tolower(static_cast<unsigned char>(parsed->rest[0]))) {
    case 'k':
      return times(parsed->number, 1ull << 10);
    case 'm':
      return times(parsed->number, 1ull << 20);
    case 'g':
      return times(parsed->number, 1ull << 30);
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> parse_milliseconds(const std::string& text) {
  const auto parsed = leading_number(text);
  if (!parsed) {
    return std::nullopt;
  }
  if (parsed->rest == "ms") {
    return times(parsed->number, 1);
  }
  if (parsed->rest == "s") {
    return times(parsed->number, 1000);
  }
  if (parsed->rest == "m") {
    return times(parsed->number, 60'000);
  }
  return std::nullopt;
}

std::optional<uint64_t> parse_number(const std::string& text, uint64_t min, uint64_t max) {
  const auto parsed = leading_number(text);
  if (!parsed || !parsed->rest.empty() || parsed->number < min || parsed->number > max) {
    return std::nullopt;
  }
  return parsed->number;
}

}  // namespace byname::xrd
