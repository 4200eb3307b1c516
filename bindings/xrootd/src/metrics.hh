// Counters of the plug-in, and their text for Prometheus.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "byname.h"

namespace byname::xrd {

// Counts since the start. Only ever added to, by any thread.
struct Counters {
  std::atomic<uint64_t> opens_local{0};
  std::atomic<uint64_t> opens_named{0};
  std::atomic<uint64_t> open_failures{0};
  std::atomic<uint64_t> open_named_files{0};  // now
  std::atomic<uint64_t> stats{0};
  std::atomic<uint64_t> listings{0};
  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> ranges{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> read_failures{0};
  std::atomic<uint64_t> refused_writes{0};
};

// Prometheus text format. Without a session its part is left out.
std::string metrics_text(const Counters& counters, const std::optional<byname_counters>& session,
                         uint64_t lost_log_lines);

// Writes a file that readers never see half. Returns an errno or 0.
int replace_file(const std::string& path, const std::string& text);

}  // namespace byname::xrd
