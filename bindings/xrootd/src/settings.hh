// Settings of the plug-in: the `byname.` lines of xrootd's configuration file.
//
// Knows nothing of xrootd and of files: a line comes as words, a mistake goes back as a reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace byname::xrd {

// Who is asked first for a path.
enum class Order { kLocalFirst, kNameFirst, kNameOnly };

// Paths that are served by name.
struct Prefix {
  std::string path;  // normal form, see routes.hh: "/" or "/store"
  std::string name;  // what stands for `path` below the link's name, in the same form
  Order order;
};

// What to do with keys that nobody has said to trust.
enum class UnknownKeys { kRefuse, kFirstUse, kInsecure };
// Whether the publisher has to be asked what is current.
enum class Freshness { kPreferred, kRequired, kOffline };

// Settings with their defaults. A 0 means the library's default, "" none.
struct Settings {
  std::string link;
  std::string config_file;
  std::string home;
  std::string connect;
  UnknownKeys unknown_keys = UnknownKeys::kRefuse;
  Freshness freshness = Freshness::kPreferred;
  uint64_t timeout_ms = 0;
  uint32_t retries = 0;
  // More than the library's: a door has few sessions, and a copy over 100 ms needs 16 MiB under
  // way for 160 MB/s. Twice that is the least for a file; more files share.
  uint64_t cache_bytes_max = 64 << 20;
  uint64_t node_bytes_max = 0;
  uint64_t readahead_bytes_max = 16 << 20;
  std::vector<Prefix> prefixes;
  // The door's name and its table; both or neither. Without them nothing can be changed.
  std::string door;
  std::string table;
  // Behind a door: clients read whatever everybody can, not only what their users may.
  bool reads_are_open = false;
  // XRootD asks this plug-in whether a client may: lines of ofs, not ours.
  bool is_authorizer = false;
  // Where uploads are kept until they are whole.
  std::string spool = "/var/tmp";
  std::string open_log;
  std::string metrics_file;
  uint64_t metrics_seconds = 15;
  uint64_t recheck_ms = 60'000;
};

// For sizes: nothing at all, where 0 means the default.
constexpr uint64_t kNoBytes = UINT64_MAX;
// Prefixes in one configuration.
constexpr size_t kPrefixesMax = 256;

// Takes the lines one after the other.
class SettingsParser {
 public:
  // `has_local`: there is other storage below, so files can be local.
  explicit SettingsParser(bool has_local) : has_local_(has_local) {}

  // Takes a line: `directive` without "byname.", and the words after it. Returns the reason why it
  // is refused, or nothing.
  std::optional<std::string> take(const std::string& directive,
                                  const std::vector<std::string>& words);

  // Takes a line of XRootD's own, beginning with its directive; most say nothing to us.
  void take_foreign(const std::vector<std::string>& words);

  // Settings when all lines were taken.
  Settings finish() const;

 private:
  std::optional<std::string> take_order(const std::vector<std::string>& words);
  std::optional<std::string> take_prefix(const std::vector<std::string>& words);
  std::optional<std::string> take_metrics(const std::vector<std::string>& words);
  std::optional<std::string> take_value(const std::string& directive, const std::string& word);
  std::optional<std::string> take_size(const std::string& directive, const std::string& word);
  std::optional<std::string> take_choice(const std::string& directive, const std::string& word);
  std::optional<std::string> check_order(Order order) const;

  struct PrefixLine {
    std::string path;
    std::string name;
    std::optional<Order> order;
  };

  bool has_local_;
  Settings settings_;
  bool has_authorization_ = false;
  bool has_our_authorizer_ = false;
  std::optional<Order> order_;
  std::vector<PrefixLine> prefixes_;
};

}  // namespace byname::xrd
