package byname.hadoop;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * Lets something happen when a program begins a file, or a task of a job opens one, once: so that it
 * happens during a job.
 */
public final class WatchedFileSystem extends NdnFileSystem {
  private static final AtomicReference<Watch> WATCH = new AtomicReference<>();

  private static final class Watch {
    private final boolean isOfCreate;
    private final String part;
    private final Runnable action;

    Watch(boolean isOfCreate, String part, Runnable action) {
      this.isOfCreate = isOfCreate;
      this.part = part;
      this.action = action;
    }
  }

  /** Does this when a file is made that has such a part in its path. */
  static void onCreate(String part, Runnable action) {
    WATCH.set(new Watch(true, part, action));
  }

  /** Does this when a task, and not who submits its job, opens such a file. */
  static void onTaskOpen(String part, Runnable action) {
    WATCH.set(new Watch(false, part, action));
  }

  /** True if what was to happen has not. */
  static boolean isWatching() {
    return WATCH.get() != null;
  }

  private static void pass(boolean isCreate, Path path) {
    Watch watch = WATCH.get();
    if (watch != null
        && watch.isOfCreate == isCreate
        && path.toString().contains(watch.part)
        && WATCH.compareAndSet(watch, null)) {
      watch.action.run();
    }
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    if (getConf().get("mapreduce.task.attempt.id") != null) {
      pass(false, path);
    }
    return super.open(path, bufferSize);
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
    pass(true, path);
    return super.create(
        path, permission, isOverwrite, bufferSize, replication, blockSize, progress);
  }
}
