package byname.hadoop;

import java.io.IOException;
import java.net.URI;
import java.util.EnumSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The file system under test, and a publisher beside it: whatever Hadoop's suites write to prepare
 * their files goes into the published directory on the local disk. All that reads is inherited.
 */
public final class PublishingFileSystem extends NdnFileSystem {
  /** Key of the published directory. */
  static final String FOLDER = "byname.test.folder";

  private final RawLocalFileSystem local = new RawLocalFileSystem();
  private String folder;

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    local.initialize(URI.create("file:///"), conf);
    folder = conf.get(FOLDER);
  }

  private Path local(Path path) {
    return new Path("file", null, folder + makeQualified(path).toUri().getPath());
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
    return local.create(local(path), isOverwrite, bufferSize, replication, blockSize, progress);
  }

  @Override
  public FSDataOutputStream createNonRecursive(
      Path path,
      FsPermission permission,
      EnumSet<CreateFlag> flags,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    return local.createNonRecursive(
        local(path), permission, flags, bufferSize, replication, blockSize, progress);
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    return local.mkdirs(local(path));
  }

  @Override
  public boolean delete(Path path, boolean isRecursive) throws IOException {
    return local.delete(local(path), isRecursive);
  }

  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    local.setPermission(local(path), permission);
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    return local.rename(local(from), local(to));
  }
}
