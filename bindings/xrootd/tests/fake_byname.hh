// A library that does as the test says, in place of libbyname.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace byname::xrd::test {

struct FakeEntry {
  std::string name;
  uint32_t kind;
  bool has_size;
  std::string target = "";  // of a link
  uint64_t bytes = 0;
};

struct Fake {
  int open_error = 0;       // errno of byname_session_open
  int sessions_opened = 0;  // attempts
  int sessions_closed = 0;
  int call_error = 0;  // errno of everything else
  std::string link;    // as it was given
  std::vector<FakeEntry> entries;
  std::set<std::string> known_users;            // whom the door's table knows
  int sites_closed = 0;                         // users that were given back
  uint32_t stat_kind = 0;                       // kind of everything at the site
  std::vector<std::string> removed;             // paths
  std::map<std::string, std::string> written;   // the beginning of what was put, by path
  size_t stats_together = 1;  // calls of byname_stat_start that are answered when they are so many
  std::vector<std::string> stats;  // what they asked for
  int stat_failing = -1;           // of these, the number of one that fails with ENOENT
};

// State of the fake, the same for all tests: begin with `fake() = Fake{}`.
Fake& fake();

}  // namespace byname::xrd::test
