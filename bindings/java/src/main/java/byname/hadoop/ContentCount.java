package byname.hadoop;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** Counts of all that is in a directory, by one listing of each directory. */
final class ContentCount {
  /** How a directory is listed. */
  interface Lister {
    RemoteIterator<NdnFileStatus> list(Path directory) throws IOException;
  }

  private final Deque<Path> directories = new ArrayDeque<>();
  private long bytes;
  private long stored;
  private long files;
  private long folders;

  private ContentCount() {}

  /** The counts of a file, or of a directory with all that is in it. */
  static ContentSummary of(NdnFileStatus top, Lister lister) throws IOException {
    ContentCount count = new ContentCount();
    count.add(top);
    while (!count.directories.isEmpty()) {
      RemoteIterator<NdnFileStatus> entries = lister.list(count.directories.pop());
      while (entries.hasNext()) {
        count.add(entries.next());
      }
    }
    return new ContentSummary.Builder()
        .length(count.bytes)
        .fileCount(count.files)
        .directoryCount(count.folders)
        .spaceConsumed(count.stored)
        .build();
  }

  private void add(NdnFileStatus status) {
    if (status.isDirectory() && status.isBehindLink()) {
      // Counted where it is, if that is here; it may also be a directory above this one.
      return;
    }
    if (status.isDirectory()) {
      folders++;
      directories.push(status.getPath());
      return;
    }
    files++;
    bytes += status.getLen();
    stored += status.getLen() * status.getReplication();
  }
}
