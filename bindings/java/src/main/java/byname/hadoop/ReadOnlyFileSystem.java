package byname.hadoop;

import java.io.IOException;
import java.util.EnumSet;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.util.Progressable;

/**
 * A file system that refuses every change, with an {@link AccessControlException}: programs print
 * that as one line. What {@link FileSystem} would pass over without doing it (owner, permission,
 * times, replication) is refused, too. What it refuses itself, as not supported, stays so.
 */
abstract class ReadOnlyFileSystem extends FileSystem {
  private AccessControlException refuse(String change, Path path) {
    return new AccessControlException(
        "cannot " + change + " " + makeQualified(path) + ": " + getScheme()
            + ":// is read-only here: there is no key of a user for a site above it"
            + " (byname site join, a delegation token, or " + Keys.HOME + ")");
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
    throw refuse("create", path);
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
    throw refuse("create", path);
  }

  @Override
  public FSDataOutputStream append(Path path, int bufferSize, Progressable progress)
      throws IOException {
    throw refuse("append to", path);
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    throw refuse("rename", from);
  }

  @Override
  public boolean delete(Path path, boolean isRecursive) throws IOException {
    throw refuse("delete", path);
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    throw refuse("make directory", path);
  }

  @Override
  public boolean setReplication(Path path, short replication) throws IOException {
    throw refuse("set replication of", path);
  }

  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    throw refuse("set permission of", path);
  }

  @Override
  public void setOwner(Path path, String owner, String group) throws IOException {
    throw refuse("set owner of", path);
  }

  @Override
  public void setTimes(Path path, long modification, long access) throws IOException {
    throw refuse("set times of", path);
  }

  /** Says that nobody may write. Who may read is the publisher's affair, and shows when reading. */
  @Override
  public void access(Path path, FsAction action) throws IOException {
    getFileStatus(path);
    if (action.implies(FsAction.WRITE)) {
      throw refuse("write to", path);
    }
  }
}
