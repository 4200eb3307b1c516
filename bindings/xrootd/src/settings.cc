#include "settings.hh"

#include <algorithm>

#include "routes.hh"
#include "units.hh"

namespace byname::xrd {
namespace {

using Reason = std::optional<std::string>;

std::optional<Order> parse_order(const std::string& who, const std::string& when) {
  if (who == "local" && when == "first") {
    return Order::kLocalFirst;
  }
  if (who == "name" && when == "first") {
    return Order::kNameFirst;
  }
  if (who == "name" && when == "only") {
    return Order::kNameOnly;
  }
  return std::nullopt;
}

constexpr const char* kOrders = "the order is 'local first', 'name first' or 'name only'";

Reason absolute_file(const std::string& word, std::string& into) {
  if (word.empty() || word[0] != '/') {
    return "'" + word + "' is no absolute path";
  }
  into = word;
  return std::nullopt;
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* one) { return word == one; });
}

}  // namespace

Reason SettingsParser::take(const std::string& directive, const std::vector<std::string>& words) {
  if (words.empty()) {
    return "a value is missing";
  }
  if (directive == "order") {
    return take_order(words);
  }
  if (directive == "prefix") {
    return take_prefix(words);
  }
  if (directive == "metrics") {
    return take_metrics(words);
  }
  if (words.size() > 1) {
    return "one value is expected, '" + words[1] + "' is too much";
  }
  return take_value(directive, words[0]);
}

Reason SettingsParser::take_value(const std::string& directive, const std::string& word) {
  if (directive == "link") {
    settings_.link = word;
    return std::nullopt;
  }
  if (directive == "connect") {
    settings_.connect = word;
    return std::nullopt;
  }
  if (directive == "door") {
    settings_.door = word;
    return std::nullopt;
  }
  if (directive == "table") {
    return absolute_file(word, settings_.table);
  }
  if (directive == "spool") {
    return absolute_file(word, settings_.spool);
  }
  if (directive == "config") {
    return absolute_file(word, settings_.config_file);
  }
  if (directive == "home") {
    return absolute_file(word, settings_.home);
  }
  if (directive == "openlog") {
    return absolute_file(word, settings_.open_log);
  }
  if (is_one_of(directive, {"cache", "nodes", "readahead"})) {
    return take_size(directive, word);
  }
  if (is_one_of(directive, {"timeout", "recheck"})) {
    const auto duration = parse_milliseconds(word);
    if (!duration) {
      return "'" + word + "' is no duration such as 500ms, 4s or 2m";
    }
    (directive == "timeout" ? settings_.timeout_ms : settings_.recheck_ms) = *duration;
    return std::nullopt;
  }
  if (directive == "retries") {
    const auto number = parse_number(word, 1, 1000);
    if (!number) {
      return "'" + word + "' is no number from 1 to 1000";
    }
    settings_.retries = static_cast<uint32_t>(*number);
    return std::nullopt;
  }
  return take_choice(directive, word);
}

Reason SettingsParser::take_size(const std::string& directive, const std::string& word) {
  const auto bytes = word == "none" ? std::optional<uint64_t>(kNoBytes) : parse_bytes(word);
  if (!bytes) {
    return "'" + word + "' is no size such as 4096, 64k, 16m or 2g, nor 'none'";
  }
  if (directive == "cache") {
    settings_.cache_bytes_max = *bytes;
  } else if (directive == "nodes") {
    settings_.node_bytes_max = *bytes;
  } else {
    settings_.readahead_bytes_max = *bytes;
  }
  return std::nullopt;
}

Reason SettingsParser::take_choice(const std::string& directive, const std::string& word) {
  if (directive == "unknown_keys") {
    if (!is_one_of(word, {"refuse", "first-use", "insecure"})) {
      return "'" + word + "' is none of refuse, first-use, insecure";
    }
    settings_.unknown_keys = word == "refuse"      ? UnknownKeys::kRefuse
                             : word == "first-use" ? UnknownKeys::kFirstUse
                                                   : UnknownKeys::kInsecure;
    return std::nullopt;
  }
  if (directive == "freshness") {
    if (!is_one_of(word, {"preferred", "required", "offline"})) {
      return "'" + word + "' is none of preferred, required, offline";
    }
    settings_.freshness = word == "preferred"  ? Freshness::kPreferred
                          : word == "required" ? Freshness::kRequired
                                               : Freshness::kOffline;
    return std::nullopt;
  }
  if (directive == "reads") {
    if (!is_one_of(word, {"users", "open"})) {
      return "'" + word + "' is neither users nor open";
    }
    settings_.reads_are_open = word == "open";
    return std::nullopt;
  }
  return "there is no such parameter";
}

void SettingsParser::take_foreign(const std::vector<std::string>& words) {
  if (words.empty()) {
    return;
  }
  if (words[0] == "ofs.authorize") {
    has_authorization_ = words.size() < 2 || words[1] != "0";
  }
  if (words[0] == "ofs.authlib") {
    const auto names_us = [](const std::string& word) {
      return word.find("libXrdByname") != std::string::npos;
    };
    // XRootD asks the last one, which may grant without asking those before it. This one asks them.
    has_our_authorizer_ = std::any_of(words.begin(), words.end(), names_us);
  }
}

Reason SettingsParser::check_order(Order order) const {
  if (order != Order::kNameOnly && !has_local_) {
    return "there is no local storage to look into: load the plug-in with 'ofs.osslib ++'";
  }
  return std::nullopt;
}

Reason SettingsParser::take_order(const std::vector<std::string>& words) {
  const auto order = words.size() == 2 ? parse_order(words[0], words[1]) : std::nullopt;
  if (!order) {
    return kOrders;
  }
  order_ = *order;
  return check_order(*order);
}

// prefix PATH [NAME] [ORDER]
Reason SettingsParser::take_prefix(const std::vector<std::string>& words) {
  PrefixLine line;
  auto path = normal_path(words[0]);
  if (!path) {
    return "'" + words[0] + "' is no absolute path without '.' and '..'";
  }
  line.path = *path;
  line.name = line.path;
  size_t at = 1;
  if (words.size() == 2 || words.size() == 4) {
    auto name = normal_path(words[at++]);
    if (!name) {
      return "'" + words[1] + "' is no name that begins with '/'";
    }
    line.name = *name;
  }
  if (words.size() - at == 2) {
    line.order = parse_order(words[at], words[at + 1]);
    if (!line.order) {
      return kOrders;
    }
    if (const auto reason = check_order(*line.order)) {
      return reason;
    }
  } else if (words.size() != at) {
    return "expected: PATH [NAME] [local first|name first|name only]";
  }
  const auto is_same = [&](const PrefixLine& other) { return other.path == line.path; };
  if (std::any_of(prefixes_.begin(), prefixes_.end(), is_same)) {
    return "prefix " + line.path + " is given twice";
  }
  if (prefixes_.size() == kPrefixesMax) {
    return "there are more than " + std::to_string(kPrefixesMax) + " prefixes";
  }
  prefixes_.push_back(std::move(line));
  return std::nullopt;
}

// metrics FILE [SECONDS]
Reason SettingsParser::take_metrics(const std::vector<std::string>& words) {
  if (words.size() > 2) {
    return "expected: FILE [SECONDS]";
  }
  if (words.size() == 2) {
    const auto seconds = parse_number(words[1], 1, 86'400);
    if (!seconds) {
      return "'" + words[1] + "' is no number of seconds from 1 to 86400";
    }
    settings_.metrics_seconds = *seconds;
  }
  return absolute_file(words[0], settings_.metrics_file);
}

Settings SettingsParser::finish() const {
  const Order order = order_.value_or(has_local_ ? Order::kLocalFirst : Order::kNameOnly);
  Settings settings = settings_;
  settings.is_authorizer = has_authorization_ && has_our_authorizer_;
  for (const PrefixLine& line : prefixes_) {
    settings.prefixes.push_back(Prefix{line.path, line.name, line.order.value_or(order)});
  }
  if (settings.prefixes.empty()) {
    settings.prefixes.push_back(Prefix{"/", "/", order});
  }
  return settings;
}

}  // namespace byname::xrd
