package byname.hadoop;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.hadoop.fs.Path;

/**
 * Files that this file system is writing and that nobody else sees yet. Who has created one may
 * change its permission before it is there: {@code FileSystem.create(fs, path, permission)} does.
 */
final class Drafts {
  private final ConcurrentMap<Path, NdnOutputStream> open = new ConcurrentHashMap<>();

  /** The latest to be written under a path. */
  void put(Path path, NdnOutputStream stream) {
    open.put(path, stream);
  }

  void remove(Path path, NdnOutputStream stream) {
    open.remove(path, stream);
  }

  /** Sets the permission bits of one; false if there is none. */
  boolean setMode(Path path, int mode) {
    NdnOutputStream stream = open.get(path);
    return stream != null && stream.setMode(mode);
  }
}
