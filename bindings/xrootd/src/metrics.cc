#include "metrics.hh"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace byname::xrd {
namespace {

void add(std::string& text, const char* name, const char* type, const char* help, uint64_t value) {
  const std::string full = std::string("byname_xrootd_") + name;
  text += "# HELP " + full + " " + help + "\n# TYPE " + full + " " + type + "\n" + full + " " +
          std::to_string(value) + "\n";
}

void add_session(std::string& text, const byname_counters& session) {
  const auto count = [&](const char* name, const char* help, uint64_t value) {
    add(text, name, "counter", help, value);
  };
  count("asked_bytes_total", "Octets that reads asked for and that exist.", session.asked_bytes);
  count("received_bytes_total", "Octets of Data packets that came, hash tree included.",
        session.received_bytes);
  count("requests_total", "Interests sent.", session.requests);
  count("cached_bytes_total", "Octets served from memory.", session.cached_bytes);
  count("prefetched_bytes_total", "Octets read ahead.", session.prefetched_bytes);
  count("prefetch_useful_bytes_total", "Octets read ahead and used.",
        session.prefetch_useful_bytes);
  count("prefetch_wasted_bytes_total", "Octets read ahead and dropped unused.",
        session.prefetch_wasted_bytes);
  add(text, "calls_in_flight", "gauge", "Calls of the session that have not ended.",
      session.calls_in_flight);
}

}  // namespace

std::string metrics_text(const Counters& counters, const std::optional<byname_counters>& session,
                         uint64_t lost_log_lines) {
  std::string text;
  const auto count = [&](const char* name, const char* help, uint64_t value) {
    add(text, name, "counter", help, value);
  };
  count("opens_local_total", "Files that were opened in local storage.", counters.opens_local);
  count("opens_named_total", "Files that were opened by name.", counters.opens_named);
  count("open_failures_total", "Opens that failed.", counters.open_failures);
  add(text, "open_named_files", "gauge", "Files that are open by name.", counters.open_named_files);
  count("stats_total", "Questions for the status of a name.", counters.stats);
  count("listings_total", "Directories that were listed by name.", counters.listings);
  count("reads_total", "Reads of files by name, vector reads counted once.", counters.reads);
  count("ranges_total", "Ranges that these asked for.", counters.ranges);
  count("bytes_total", "Octets handed to XRootD.", counters.bytes);
  count("read_failures_total", "Reads that failed.", counters.read_failures);
  count("refused_writes_total", "Changes that were refused: names are read-only.",
        counters.refused_writes);
  count("lost_log_lines_total", "Lines of the log of opens that could not be written.",
        lost_log_lines);
  add(text, "session_open", "gauge", "1 if there is a session with the names.", session ? 1 : 0);
  if (session) {
    add_session(text, *session);
  }
  return text;
}

int replace_file(const std::string& path, const std::string& text) {
  const std::string unfinished = path + ".new";
  const int fd = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    return errno;
  }
  const ssize_t written = ::write(fd, text.data(), text.size());
  const int error = written < 0 ? errno : static_cast<size_t>(written) < text.size() ? ENOSPC : 0;
  ::close(fd);
  if (error != 0) {
    ::unlink(unfinished.c_str());
    return error;
  }
  return std::rename(unfinished.c_str(), path.c_str()) == 0 ? 0 : errno;
}

}  // namespace byname::xrd
