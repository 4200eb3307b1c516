// XrdOucStream does what xrootd itself does with the file: continued lines, if and else, variables.
// It counts no lines, so a refused one is looked for in the text.
#include "settings_file.hh"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "XrdOuc/XrdOucEnv.hh"
#include "XrdOuc/XrdOucStream.hh"

namespace byname::xrd {
namespace {

constexpr const char* kPrefix = "byname.";

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

// "FILE:LINE" of the first line that begins with these words, or FILE if none does: variables.
std::string place_of(const char* file, const std::vector<std::string>& words) {
  std::ifstream stream(file);
  size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (words_of(line) == words) {
      return std::string(file) + ":" + std::to_string(number);
    }
  }
  return file;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

}  // namespace

std::optional<Settings> read_settings(const char* file, bool has_local, XrdSysError& log) {
  SettingsParser parser(has_local);
  if (!file || !*file) {
    return parser.finish();
  }
  const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    log.Emsg("config", errno, "open configuration file", file);
    return std::nullopt;
  }
  XrdOucEnv variables;
  XrdOucStream stream(&log, std::getenv("XRDINSTANCE"), &variables, "=====> ");
  stream.Attach(fd);
  bool is_good = true;
  while (const char* first = stream.GetMyFirstWord()) {
    std::vector<std::string> words{first};
    while (const char* word = stream.GetWord()) {
      words.emplace_back(word);
    }
    if (words[0].compare(0, std::strlen(kPrefix), kPrefix) != 0) {
      parser.take_foreign(words);
      continue;
    }
    const std::vector<std::string> values(words.begin() + 1, words.end());
    const auto reason = parser.take(words[0].substr(std::strlen(kPrefix)), values);
    if (reason) {
      const std::string text = place_of(file, words) + ": " + joined(words) + ": " + *reason;
      log.Emsg("config", text.c_str());
      is_good = false;
    }
  }
  if (const int error = stream.LastError()) {
    log.Emsg("config", error, "read configuration file", file);
    is_good = false;
  }
  stream.Close();
  return is_good ? std::optional<Settings>(parser.finish()) : std::nullopt;
}

}  // namespace byname::xrd
