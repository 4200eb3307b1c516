package byname.hadoop;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** Lets something happen when a program begins a file, once: so that it happens during a job. */
public final class WatchedFileSystem extends NdnFileSystem {
  private static final AtomicReference<Watch> WATCH = new AtomicReference<>();

  private static final class Watch {
    private final String part;
    private final Runnable action;

    Watch(String part, Runnable action) {
      this.part = part;
      this.action = action;
    }
  }

  /** Does this when a file is made that has such a part in its path. */
  static void onCreate(String part, Runnable action) {
    WATCH.set(new Watch(part, action));
  }

  /** True if what was to happen has not. */
  static boolean isWatching() {
    return WATCH.get() != null;
  }

  @Override
  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean isOverwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    Watch watch = WATCH.get();
    if (watch != null
        && path.toString().contains(watch.part)
        && WATCH.compareAndSet(watch, null)) {
      watch.action.run();
    }
    return super.create(
        path, permission, isOverwrite, bufferSize, replication, blockSize, progress);
  }
}
