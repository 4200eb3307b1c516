package byname.hadoop;

import java.io.IOException;
import java.lang.ref.Cleaner;
import org.apache.hadoop.fs.FSExceptionMessages;
import org.apache.hadoop.fs.Path;

/**
 * A local file that nobody else sees: what a stream has written, until it is put. It goes with its
 * descriptor, so nothing of it is left when the process dies.
 */
final class Spool implements AutoCloseable {
  private final Path path;
  private final int descriptor;
  private final Cleaner.Cleanable closing;
  private boolean isClosed;

  Spool(Path path, String directory) throws IOException {
    this.path = path;
    try {
      descriptor = Native.spoolOpen(NativeSession.octets(path, directory));
    } catch (NativeException e) {
      throw new IOException("cannot make a file in " + directory + ": " + e.getMessage(), e);
    }
    closing =
        NativeSession.closeWith(this, descriptor, number -> Native.spoolClose((int) number));
  }

  int descriptor() throws IOException {
    if (isClosed) {
      throw new IOException(FSExceptionMessages.STREAM_IS_CLOSED + ": " + path);
    }
    return descriptor;
  }

  void write(byte[] from, int position, int length) throws IOException {
    try {
      Native.spoolWrite(descriptor(), from, position, length);
    } catch (NativeException e) {
      throw new IOException(path + ": cannot keep it here: " + e.getMessage(), e);
    }
  }

  @Override
  public void close() {
    isClosed = true;
    closing.clean();
  }
}
