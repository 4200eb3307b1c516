// ETIMEDOUT and EBUSY must never reach XRootD: from a read it would deliver that many seconds as
// that many octets of garbage, from an open it lets the client wait and try for ever. EINPROGRESS,
// EALREADY and EDESTADDRREQ are promises as well. So only numbers that are listed here go through.
#include "errors.hh"

#include <cerrno>

namespace byname::xrd {

byname_error no_error() {
  return byname_init<byname_error>();
}

Failure failure_of(const byname_error& error) {
  return Failure{errno_for_xrootd(error.code), error.message};
}

int errno_for_xrootd(int error) {
  switch (error) {
    // XRootD has codes for these.
    case ENOENT:
    case EACCES:
    case EINVAL:
    case EISDIR:
    case ENAMETOOLONG:
    case ENOMEM:
    case ENOTSUP:
    case EROFS:
    case EIO:
    case ECANCELED:
    case EEXIST:
    case ENOTEMPTY:
    case ENOSPC:
    case EDQUOT:
    // These arrive as kXR_FSError with their text.
    case ENOTDIR:
    case ELOOP:
    case EMFILE:
    case EFBIG:
    case ESTALE:
    case ESPIPE:
    case EXDEV:
    case EMLINK:
    case ENOKEY:
    case EKEYEXPIRED:
    case EKEYREJECTED:
    case EKEYREVOKED:
      return error;
    // Nobody who could answer is reachable: kXR_noserver.
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case EPIPE:
      return ENETUNREACH;
    // "Timer expired", kXR_FSError.
    case ETIMEDOUT:
      return ETIME;
    // The file is being written: kXR_inProgress.
    case EBUSY:
      return ETXTBSY;
    // Too many calls at the same time: kXR_Overloaded.
    case EAGAIN:
    case ENFILE:
      return EUSERS;
    case EINTR:
      return ECANCELED;
    case EPERM:
      return EACCES;
    default:
      return EIO;
  }
}

bool means_elsewhere(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENETUNREACH:
    case ETIME:
      return true;
    default:
      return false;
  }
}

}  // namespace byname::xrd
