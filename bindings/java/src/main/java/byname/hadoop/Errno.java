package byname.hadoop;

/** Numbers of Linux that {@code byname.h} answers with, and their names. */
final class Errno {
  static final int EPERM = 1;
  static final int ENOENT = 2;
  static final int EINTR = 4;
  static final int EIO = 5;
  static final int EBADF = 9;
  static final int EAGAIN = 11;
  static final int ENOMEM = 12;
  static final int EACCES = 13;
  static final int EBUSY = 16;
  static final int EEXIST = 17;
  static final int EXDEV = 18;
  static final int ENOTDIR = 20;
  static final int EISDIR = 21;
  static final int EINVAL = 22;
  static final int EMFILE = 24;
  static final int EFBIG = 27;
  static final int ENOSPC = 28;
  static final int ERANGE = 34;
  static final int ENAMETOOLONG = 36;
  static final int ENOTEMPTY = 39;
  static final int ELOOP = 40;
  static final int ENODATA = 61;
  static final int EPROTO = 71;
  static final int ENOTSUP = 95;
  static final int ENETUNREACH = 101;
  static final int ECONNRESET = 104;
  static final int ETIMEDOUT = 110;
  static final int ECONNREFUSED = 111;
  static final int EHOSTUNREACH = 113;
  static final int ESTALE = 116;
  static final int EUCLEAN = 117;
  static final int EREMOTEIO = 121;
  static final int EDQUOT = 122;
  static final int ECANCELED = 125;
  static final int ENOKEY = 126;
  static final int EKEYEXPIRED = 127;
  static final int EKEYREVOKED = 128;
  static final int EKEYREJECTED = 129;

  private Errno() {}

  /** Returns the symbol of a number, or the number itself. */
  static String name(int errno) {
    switch (errno) {
      case EPERM: return "EPERM";
      case ENOENT: return "ENOENT";
      case EINTR: return "EINTR";
      case EIO: return "EIO";
      case EBADF: return "EBADF";
      case EAGAIN: return "EAGAIN";
      case ENOMEM: return "ENOMEM";
      case EACCES: return "EACCES";
      case EBUSY: return "EBUSY";
      case EEXIST: return "EEXIST";
      case EXDEV: return "EXDEV";
      case ENOTDIR: return "ENOTDIR";
      case EISDIR: return "EISDIR";
      case EINVAL: return "EINVAL";
      case EMFILE: return "EMFILE";
      case EFBIG: return "EFBIG";
      case ENOSPC: return "ENOSPC";
      case ERANGE: return "ERANGE";
      case ENAMETOOLONG: return "ENAMETOOLONG";
      case ENOTEMPTY: return "ENOTEMPTY";
      case ELOOP: return "ELOOP";
      case ENODATA: return "ENODATA";
      case EPROTO: return "EPROTO";
      case ENOTSUP: return "ENOTSUP";
      case ENETUNREACH: return "ENETUNREACH";
      case ECONNRESET: return "ECONNRESET";
      case ETIMEDOUT: return "ETIMEDOUT";
      case ECONNREFUSED: return "ECONNREFUSED";
      case EHOSTUNREACH: return "EHOSTUNREACH";
      case ESTALE: return "ESTALE";
      case EUCLEAN: return "EUCLEAN";
      case EREMOTEIO: return "EREMOTEIO";
      case EDQUOT: return "EDQUOT";
      case ECANCELED: return "ECANCELED";
      case ENOKEY: return "ENOKEY";
      case EKEYEXPIRED: return "EKEYEXPIRED";
      case EKEYREVOKED: return "EKEYREVOKED";
      case EKEYREJECTED: return "EKEYREJECTED";
      default: return "error " + errno;
    }
  }
}
