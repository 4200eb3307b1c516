package byname.hadoop;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.util.List;
import org.apache.hadoop.fs.Path;

/** One version of a directory, read by pages. Closed when it is forgotten, too. */
final class NativeListing implements NdnListing.Pages {
  // Closed when it is forgotten, and not before what was opened with it.
  @SuppressWarnings("unused")
  private final NativeSession session;

  private final Path path;
  private final long handle;
  private final Cleaner.Cleanable closing;
  private long next;

  NativeListing(NativeSession session, Path path, long handle) {
    this.session = session;
    this.path = path;
    this.handle = handle;
    this.closing = NativeSession.closeWith(this, handle, Native::listingClose);
  }

  @Override
  public List<Record> next() throws IOException {
    try {
      List<Record> page = Record.page(Native.listingPage(handle, next));
      next += page.size();
      return page;
    } catch (NativeException e) {
      throw Failures.of(path, e);
    }
  }

  @Override
  public void close() {
    closing.clean();
  }
}
