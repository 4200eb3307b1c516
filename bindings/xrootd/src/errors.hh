// Errors on their way from byname to XRootD.
#pragma once

#include <string>
#include <variant>

#include "byname.h"

namespace byname::xrd {

// An error: the number that XRootD is given, and for the log what happened.
struct Failure {
  int error = 0;  // an errno, never 0, ETIMEDOUT, EBUSY or another that XRootD takes for a promise
  std::string text;
};

// A value, or why there is none.
template <class T>
using Outcome = std::variant<T, Failure>;

// Room for an error of libbyname, and what it is then.
byname_error no_error();
Failure failure_of(const byname_error& error);

// The errno for XRootD in place of one of byname's. XRootD 5 gives its clients the errno's text and
// a code of its own made of it, nothing else, so the number has to say what is wrong.
int errno_for_xrootd(int error);

// True if another place may be asked: there is no such file here, or nobody answers.
bool means_elsewhere(int error);

}  // namespace byname::xrd
