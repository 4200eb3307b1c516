package byname.hadoop;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.util.List;
import org.apache.hadoop.fs.Path;

/** One version of a directory, read by pages. Closed when it is forgotten, too. */
final class NativeListing implements AutoCloseable {
  private final Path path;
  private final long handle;
  private final Cleaner.Cleanable closing;

  NativeListing(Path path, long handle) {
    this.path = path;
    this.handle = handle;
    this.closing = NativeSession.closeWith(this, handle, Native::listingClose);
  }

  /** Entries from an index on, as many as fit in a page; none at the end. */
  List<Record> page(long next) throws IOException {
    try {
      return Record.page(Native.listingPage(handle, next));
    } catch (NativeException e) {
      throw Failures.of(path, e);
    }
  }

  @Override
  public void close() {
    closing.clean();
  }
}
