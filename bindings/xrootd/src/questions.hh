// The statuses of several names, asked for at the same time.
#pragma once

#include <string>
#include <vector>

#include "byname.h"
#include "errors.hh"
#include "status.hh"

namespace byname::xrd {

class Questions {
 public:
  explicit Questions(byname_session session) : session_(session) {}

  void add(std::string path) { paths_.push_back(std::move(path)); }
  // Asks all, and waits for the last answer. They stand in the order of the questions.
  std::vector<Outcome<Status>> ask() const;

 private:
  byname_session session_;
  std::vector<std::string> paths_;
};

}  // namespace byname::xrd
