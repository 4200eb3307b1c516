package byname.hadoop;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * Status of the entries of one version of a directory, a page at a time. It ends the listing with
 * its last entry, or when it is closed or forgotten.
 */
final class NdnListing implements RemoteIterator<NdnFileStatus>, Closeable {
  /** The entries of a directory, some at a time; none at the end. */
  interface Pages {
    List<Record> next() throws IOException;

    /** Whether links to directories are shown. */
    default boolean showsFolders() {
      return true;
    }

    default void close() {}
  }

  private static final System.Logger LOG = System.getLogger(NdnListing.class.getName());

  private final NdnFileSystem fileSystem;
  private final Path directory;
  private final Pages pages;
  private Iterator<Record> page = Collections.emptyIterator();
  private boolean isAtEnd;
  private NdnFileStatus found;

  NdnListing(NdnFileSystem fileSystem, Path directory, Pages pages) {
    this.fileSystem = fileSystem;
    this.directory = directory;
    this.pages = pages;
  }

  @Override
  public boolean hasNext() throws IOException {
    while (found == null && hasRecord()) {
      found = status(page.next());
    }
    return found != null;
  }

  @Override
  public NdnFileStatus next() throws IOException {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    NdnFileStatus status = found;
    found = null;
    return status;
  }

  @Override
  public void close() {
    isAtEnd = true;
    page = Collections.emptyIterator();
    pages.close();
  }

  private boolean hasRecord() throws IOException {
    if (page.hasNext()) {
      return true;
    }
    if (isAtEnd) {
      return false;
    }
    List<Record> records = pages.next();
    page = records.iterator();
    if (records.isEmpty()) {
      close();
    }
    return page.hasNext();
  }

  /**
   * Null for an entry that Hadoop has no path for, one that went away meanwhile, and a link that
   * leads nowhere, or where this user may not look.
   */
  private NdnFileStatus status(Record record) throws IOException {
    if (record.name() == null) {
      LOG.log(Level.WARNING, "{0} has an entry whose name is no UTF-8: left out", directory);
      return null;
    }
    Path path = NdnFileSystem.child(directory, record.name());
    try {
      if (record.isSymlink()) {
        NdnFileStatus status = fileSystem.statusBehind(path);
        return status.isFile() || pages.showsFolders() ? status : null;
      }
      return record.isWhole() ? fileSystem.status(path, record) : fileSystem.statusOf(path);
    } catch (IOException e) {
      boolean isGone = e instanceof FileNotFoundException;
      if (!isGone && !(record.isSymlink() && Links.isOfTheLink(e))) {
        throw e;
      }
      LOG.log(Level.DEBUG, "left out of a listing", e);
      return null;
    }
  }
}
