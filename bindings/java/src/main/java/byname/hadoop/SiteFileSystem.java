package byname.hadoop;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.EnumSet;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FsStatus;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.fs.statistics.StoreStatisticNames;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.util.Progressable;

/**
 * Changes of a site, as the user whose key is here. Each is one step at the site's head, or several
 * of which each happens whole or not at all. Where there is no key, everything is refused.
 *
 * <p>What programs rely on is what HDFS does: a rename moves into a directory that is there, replaces
 * nothing, and says false where it cannot be.
 */
abstract class SiteFileSystem extends AttributeFileSystem {
  private static final int PERMISSIONS = 01777;
  private static final int PIECE_BYTES = 1 << 20;
  private static final long NANOS_IN_MILLI = 1_000_000;

  private static final String SET_REPLICATION = "op_set_replication";

  /** Changes that are counted. */
  static final String[] OPERATIONS = {
    StoreStatisticNames.OP_CREATE,
    StoreStatisticNames.OP_CREATE_NON_RECURSIVE,
    StoreStatisticNames.OP_APPEND,
    StoreStatisticNames.OP_MKDIRS,
    StoreStatisticNames.OP_DELETE,
    StoreStatisticNames.OP_RENAME,
    StoreStatisticNames.OP_TRUNCATE,
    StoreStatisticNames.OP_SET_PERMISSION,
    StoreStatisticNames.OP_SET_OWNER,
    StoreStatisticNames.OP_SET_TIMES,
    StoreStatisticNames.OP_MODIFY_ACL_ENTRIES,
    StoreStatisticNames.OP_REMOVE_ACL_ENTRIES,
    StoreStatisticNames.OP_REMOVE_DEFAULT_ACL,
    StoreStatisticNames.OP_REMOVE_ACL,
    StoreStatisticNames.OP_SET_ACL,
    SET_REPLICATION,
    SET_XATTR,
    REMOVE_XATTR,
  };

  private final Drafts drafts = new Drafts();

  /** Octets of the buffer of a stream. */
  abstract int bufferBytes();

  /** What is known of a path, links followed. */
  abstract Record record(Path name) throws IOException;

  private int mode(FsPermission permission) {
    return permission.applyUMask(FsPermission.getUMask(getConf())).toShort() & PERMISSIONS;
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
    NativeSite site = site(path);
    if (site == null) {
      return super.create(
          path, permission, isOverwrite, bufferSize, replication, blockSize, progress);
    }
    Path name = beginWrite(StoreStatisticNames.OP_CREATE, path);
    return create(site, name, permission, isOverwrite, true);
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
    NativeSite site = site(path);
    if (site == null) {
      return super.createNonRecursive(
          path, permission, flags, bufferSize, replication, blockSize, progress);
    }
    if (flags.contains(CreateFlag.APPEND)) {
      return append(path, bufferSize, progress);
    }
    Path name = beginWrite(StoreStatisticNames.OP_CREATE_NON_RECURSIVE, path);
    return create(site, name, permission, flags.contains(CreateFlag.OVERWRITE), false);
  }

  // The head would say so as well, when all has been written.
  private static void refuseLink(Path name, Record there) throws IOException {
    if (there != null && there.isSymlink()) {
      throw new Links.BadLinkException(name, "is a symbolic link, and changes follow none");
    }
  }

  private FSDataOutputStream create(
      NativeSite site, Path name, FsPermission permission, boolean isOverwrite, boolean makesPath)
      throws IOException {
    Record there = find(site, name);
    if (there != null && there.isDirectory()) {
      throw new FileAlreadyExistsException(name + ": is a directory");
    }
    if (there != null && !isOverwrite) {
      throw new FileAlreadyExistsException(name + ": there is something of this name");
    }
    refuseLink(name, there);
    if (there == null) {
      prepareParent(site, name, makesPath);
    }
    int replicas = Settings.number(getConf(), Keys.REPLICATION, 0);
    NdnOutputStream.WriteOptions options =
        NdnOutputStream.WriteOptions.create(
            mode(permission), replicas, !isOverwrite, bufferBytes(),
            NdnOutputStream.Flush.of(getConf()));
    NdnOutputStream stream = new NdnOutputStream(name, site, options, spool(name), drafts);
    drafts.put(name, stream);
    return new FSDataOutputStream(stream, statistics);
  }

  private Spool spool(Path name) throws IOException {
    return new Spool(name, getConf().get(Keys.SPOOL, System.getProperty("java.io.tmpdir")));
  }

  private void prepareParent(NativeSite site, Path name, boolean makesPath) throws IOException {
    Path parent = name.getParent();
    if (parent == null) {
      return;
    }
    if (makesPath) {
      makePath(site, parent, FsPermission.getDirDefault());
      return;
    }
    if (!site.stat(parent).isDirectory()) {
      throw new ParentNotDirectoryException(parent + ": is not a directory");
    }
  }

  // Nothing is beneath a file, and that is said as such.
  private static Record find(NativeSite site, Path name) throws IOException {
    try {
      return site.stat(name);
    } catch (IOException e) {
      switch (NativeSite.errno(e)) {
        case Errno.ENOENT:
          return null;
        case Errno.ENOTDIR:
          throw new ParentNotDirectoryException(name + ": there is a file above it");
        default:
          throw e;
      }
    }
  }

  @Override
  public FSDataOutputStream append(Path path, int bufferSize, Progressable progress)
      throws IOException {
    if (site(path) == null) {
      return super.append(path, bufferSize, progress);
    }
    NativeSite site = site(path);
    Path name = beginWrite(StoreStatisticNames.OP_APPEND, path);
    Record there = site.stat(name);
    if (there.isDirectory()) {
      throw new FileNotFoundException(name + ": is a directory");
    }
    refuseLink(name, there);
    NdnOutputStream.WriteOptions options =
        NdnOutputStream.WriteOptions.after(
            there.version(), there.permissions(), bufferBytes(),
            NdnOutputStream.Flush.of(getConf()));
    Spool spool = spool(name);
    try {
      fetch(site, name, there, spool);
    } catch (IOException | RuntimeException e) {
      spool.close();
      throw e;
    }
    return new FSDataOutputStream(
        new NdnOutputStream(name, site, options, spool, drafts), statistics, there.length());
  }

  // What is there already, verified: the next version is written as a whole.
  private static void fetch(NativeSite site, Path name, Record there, Spool spool)
      throws IOException {
    try (NativeFile file = site.open(name)) {
      byte[] piece = new byte[PIECE_BYTES];
      long at = 0;
      while (at < there.length()) {
        int count = file.read(at, piece, 0, (int) Math.min(piece.length, there.length() - at));
        if (count <= 0) {
          throw new EOFException(name + ": ends at " + at + " of " + there.length() + " octets");
        }
        spool.write(piece, 0, count);
        at += count;
      }
    }
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      return super.mkdirs(path, permission);
    }
    makePath(site, beginWrite(StoreStatisticNames.OP_MKDIRS, path), permission);
    return true;
  }

  private void makePath(NativeSite site, Path name, FsPermission permission) throws IOException {
    try {
      site.makePath(name, mode(permission));
    } catch (IOException e) {
      if (NativeSite.errno(e) == Errno.ENOTDIR) {
        throw new ParentNotDirectoryException(name + ": there is a file above it");
      }
      throw e;
    }
  }

  @Override
  public boolean delete(Path path, boolean isRecursive) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      return super.delete(path, isRecursive);
    }
    Path name = beginWrite(StoreStatisticNames.OP_DELETE, path);
    if (name.isRoot()) {
      // As in HDFS: the root stays, with all that is in it.
      if (!isRecursive && listStatusIterator(name).hasNext()) {
        throw new PathIsNotEmptyDirectoryException(name.toString());
      }
      return false;
    }
    try {
      site.remove(name, isRecursive);
      return true;
    } catch (IOException e) {
      int errno = NativeSite.errno(e);
      if (errno == Errno.ENOENT || errno == Errno.ENOTDIR) {
        return false;
      }
      throw e;
    }
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    NativeSite site = site(from);
    if (site == null) {
      return super.rename(from, to);
    }
    Path source = beginWrite(StoreStatisticNames.OP_RENAME, from);
    Path target = makeQualified(to);
    Record moved = source.isRoot() ? null : site.find(source);
    if (moved == null) {
      return false;
    }
    Record there = site.find(target);
    if (there != null && there.isDirectory()) {
      target = NdnFileSystem.child(target, source.getName());
      there = site.find(target);
    }
    if (source.equals(target)) {
      return !moved.isDirectory();
    }
    if (there != null) {
      return false;
    }
    try {
      site.rename(source, target, true);
      return true;
    } catch (IOException e) {
      switch (NativeSite.errno(e)) {
        case Errno.ENOENT:
        case Errno.ENOTDIR:
        case Errno.EEXIST:
        case Errno.EINVAL:
          return false;
        default:
          throw e;
      }
    }
  }

  /** The rename of {@code FileContext}: exactly to that path, with a reason where it cannot be. */
  @Override
  @SuppressWarnings("deprecation")
  protected void rename(Path from, Path to, Options.Rename... options) throws IOException {
    if (site(from) == null) {
      super.rename(from, to, options);
      return;
    }
    boolean isOverwrite = false;
    for (Options.Rename option : options) {
      isOverwrite |= option == Options.Rename.OVERWRITE;
    }
    renameTo(from, to, isOverwrite);
  }

  final void renameTo(Path from, Path to, boolean isOverwrite) throws IOException {
    NativeSite site = site(from);
    if (site == null) {
      rename(from, to);
      return;
    }
    Path source = beginWrite(StoreStatisticNames.OP_RENAME, from);
    Path target = makeQualified(to);
    Record moved = site.stat(source);
    Record there = site.find(target);
    if (there == null) {
      Path parent = target.getParent();
      if (parent != null && !site.stat(parent).isDirectory()) {
        throw new ParentNotDirectoryException(parent + ": is not a directory");
      }
    } else if (source.equals(target)) {
      throw new FileAlreadyExistsException(source + ": is the same as its new name");
    } else if (moved.isDirectory() != there.isDirectory()) {
      throw new IOException(
          source + " and " + target + " must both be directories, or none of them");
    } else if (!isOverwrite) {
      throw new FileAlreadyExistsException(target + ": there is something of this name");
    }
    site.rename(source, target, !isOverwrite);
  }

  @Override
  public boolean truncate(Path path, long size) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      return super.truncate(path, size);
    }
    Path name = beginWrite(StoreStatisticNames.OP_TRUNCATE, path);
    Record there = site.stat(name);
    if (there.isDirectory()) {
      throw new FileNotFoundException(name + ": is a directory");
    }
    refuseLink(name, there);
    if (size < 0 || size > there.length()) {
      throw new IllegalArgumentException(
          "cannot truncate " + name + " of " + there.length() + " octets to " + size);
    }
    site.truncate(name, size);
    return true;
  }

  /**
   * Takes effect when the file is written again. False also where the site lets only its operators
   * decide: whoever submits a job asks for more replicas of its jar, and can do without.
   */
  @Override
  public boolean setReplication(Path path, short replication) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      return super.setReplication(path, replication);
    }
    Path name = beginWrite(SET_REPLICATION, path);
    Record there = site.find(name);
    if (there == null || there.isDirectory()) {
      return false;
    }
    try {
      site.setReplicas(name, replication);
      return true;
    } catch (IOException e) {
      if (NativeSite.errno(e) == Errno.EPERM) {
        return false;
      }
      throw e;
    }
  }

  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.setPermission(path, permission);
      return;
    }
    Path name = beginWrite(StoreStatisticNames.OP_SET_PERMISSION, path);
    int mode = permission.toShort() & PERMISSIONS;
    try {
      site.setMode(name, mode);
    } catch (IOException e) {
      if (NativeSite.errno(e) != Errno.ENOENT || !drafts.setMode(name, mode)) {
        throw e;
      }
    }
  }

  @Override
  public void setOwner(Path path, String owner, String group) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.setOwner(path, owner, group);
      return;
    }
    site.setOwner(beginWrite(StoreStatisticNames.OP_SET_OWNER, path), owner, group);
  }

  /** Sets the time of modification; there is none of access. */
  @Override
  public void setTimes(Path path, long modification, long access) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.setTimes(path, modification, access);
      return;
    }
    Path name = beginWrite(StoreStatisticNames.OP_SET_TIMES, path);
    if (modification < 0) {
      site.stat(name);
      return;
    }
    site.setTime(name, Math.multiplyExact(modification, NANOS_IN_MILLI));
  }

  /** Decides by what the status says; the head decides by itself. */
  @Override
  public void access(Path path, FsAction action) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.access(path, action);
      return;
    }
    Path name = makeQualified(path);
    Record there = record(name);
    FsPermission permission = new FsPermission((short) there.permissions());
    boolean isAllowed =
        there.owner().equals(site.user())
            ? permission.getUserAction().implies(action)
            // Groups of a user are the head's affair.
            : permission.getGroupAction().or(permission.getOtherAction()).implies(action);
    if (!isAllowed) {
      throw new AccessControlException(
          site.user() + " may not " + action + " " + name + " of " + there.owner());
    }
  }

  @Override
  public FsStatus getStatus(Path path) throws IOException {
    Path name = path == null ? new Path(getUri()) : makeQualified(path);
    NativeSite site = site(name);
    if (site == null) {
      return super.getStatus(path);
    }
    long[] room = site.room(name);
    return new FsStatus(room[0], room[1], room[2]);
  }

  /** Links are made by the site's own command: what Hadoop makes of a path may be another scheme's. */
  @Override
  public void createSymlink(Path target, Path link, boolean createParent) throws IOException {
    throw new UnsupportedOperationException(
        makeQualified(link) + ": ndn:// makes no symbolic links; byname ln -s does");
  }
}
