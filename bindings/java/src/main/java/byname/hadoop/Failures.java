package byname.hadoop;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.hadoop.fs.FSExceptionMessages;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.apache.hadoop.security.AccessControlException;

/**
 * Exceptions that Hadoop's programs tell apart, with path, cause and errno in the text.
 *
 * <p>What is not there is a {@link FileNotFoundException}, whom nobody has said to trust an {@link
 * AccessControlException}, what does not verify a {@link ChecksumException}, who does not answer
 * one of {@code java.net}'s, which retry policies know.
 */
final class Failures {
  private Failures() {}

  /** A failure to look at or open a path. */
  static IOException of(Path path, NativeException failure) {
    return of(path, -1, failure);
  }

  /** A failure to read at an offset of an open file. */
  static IOException of(Path path, long offset, NativeException failure) {
    IOException made = make(path, offset, failure);
    if (made.getCause() == null) {
      made.initCause(failure);
    }
    return made;
  }

  private static IOException make(Path path, long offset, NativeException failure) {
    String text = path + ": " + failure.getMessage() + " (" + Errno.name(failure.errno()) + ")";
    switch (failure.errno()) {
      case Errno.ENOENT:
      // Beneath a file there is nothing; a directory has no content to open.
      case Errno.ENOTDIR:
      case Errno.EISDIR:
        return new FileNotFoundException(text);
      case Errno.EEXIST:
        return new FileAlreadyExistsException(text);
      case Errno.ENOTEMPTY:
        return new PathIsNotEmptyDirectoryException(path.toString());
      case Errno.EACCES:
      case Errno.EPERM:
      case Errno.ENOKEY:
      case Errno.EKEYEXPIRED:
      case Errno.EKEYREJECTED:
      case Errno.EKEYREVOKED:
        return new AccessControlException(text);
      case Errno.ETIMEDOUT:
        return new SocketTimeoutException(text);
      case Errno.ENETUNREACH:
      case Errno.EHOSTUNREACH:
        return new NoRouteToHostException(text);
      case Errno.ECONNREFUSED:
        return new ConnectException(text);
      case Errno.ECONNRESET:
        return new SocketException(text);
      case Errno.EINTR:
        return new InterruptedIOException(text);
      case Errno.EBADF:
      case Errno.ECANCELED:
        return new IOException(FSExceptionMessages.STREAM_IS_CLOSED + ": " + text);
      default:
        return failure.isCorrupt()
            ? new ChecksumException(text, offset)
            : new PathIOException(path.toString(), text);
    }
  }
}
