package byname.hadoop;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.fs.Path;

/** A user at a site. Safe for threads. Its calls end when its session is closed. */
final class NativeSite implements AutoCloseable {
  private static final int ONLY_NEW = 1;
  private static final int ONLY_OLD = 2;
  private static final long NANOS_IN_MILLI = 1_000_000;

  // Closed when it is forgotten, and not before what was opened with it.
  @SuppressWarnings("unused")
  private final NativeSession session;

  private final long handle;
  private final Cleaner.Cleanable closing;
  private final String user;
  private final String name;

  NativeSite(NativeSession session, long handle) throws NativeException {
    this.session = session;
    this.handle = handle;
    this.closing = NativeSession.closeWith(this, handle, Native::siteClose);
    List<String> names = texts(Native.siteNames(handle));
    user = names.get(0);
    name = names.get(1);
  }

  /** Who acts. */
  String user() {
    return user;
  }

  /** The site's name as a URI. */
  String name() {
    return name;
  }

  private interface Call<T> {
    T run() throws NativeException, IOException;
  }

  private interface Action {
    void run() throws NativeException, IOException;
  }

  private static <T> T call(Path path, Call<T> call) throws IOException {
    try {
      return call.run();
    } catch (NativeException e) {
      throw Failures.of(path, e);
    }
  }

  private static void act(Path path, Action action) throws IOException {
    call(
        path,
        () -> {
          action.run();
          return null;
        });
  }

  /** The number of a failure, 0 if there was none. */
  static int errno(IOException failure) {
    Throwable cause = failure instanceof NativeException ? failure : failure.getCause();
    return cause instanceof NativeException ? ((NativeException) cause).errno() : 0;
  }

  private static byte[] octets(Path path) throws IOException {
    return NativeSession.octets(path);
  }

  private static byte[] octets(Path path, String text) throws IOException {
    return NativeSession.octets(path, text);
  }

  // Texts with a NUL behind each.
  static List<String> texts(byte[] octets) {
    List<String> found = new ArrayList<>();
    int from = 0;
    for (int at = 0; at < octets.length; at++) {
      if (octets[at] == 0) {
        found.add(new String(octets, from, at - from, StandardCharsets.UTF_8));
        from = at + 1;
      }
    }
    return found;
  }

  Record stat(Path path) throws IOException {
    return call(path, () -> Record.one(Native.siteStat(handle, octets(path))));
  }

  /** The same; null if there is nothing, or nothing can be. */
  Record find(Path path) throws IOException {
    try {
      return stat(path);
    } catch (IOException e) {
      int errno = errno(e);
      if (errno == Errno.ENOENT || errno == Errno.ENOTDIR) {
        return null;
      }
      throw e;
    }
  }

  /** Entries of a directory; null if it is a file. */
  NdnListing.Pages list(Path path) throws IOException {
    Entries entries = new Entries(path);
    try {
      entries.fetch();
    } catch (IOException e) {
      if (errno(e) == Errno.ENOTDIR && find(path) != null) {
        return null;
      }
      throw e;
    }
    return entries;
  }

  private final class Entries implements NdnListing.Pages {
    private final Path path;
    private List<Record> fetched = Collections.emptyList();
    private byte[] after = new byte[0];
    private boolean isLast;

    Entries(Path path) {
      this.path = path;
    }

    void fetch() throws IOException {
      long[] more = new long[1];
      byte[] behind = after;
      fetched =
          call(path, () -> Record.page(Native.siteEntries(handle, octets(path), behind, more)));
      isLast = more[0] == 0;
      if (!fetched.isEmpty()) {
        after = fetched.get(fetched.size() - 1).nameOctets();
      }
    }

    @Override
    public List<Record> next() throws IOException {
      if (fetched.isEmpty() && !isLast) {
        fetch();
      }
      List<Record> page = fetched;
      fetched = Collections.emptyList();
      return page;
    }
  }

  NativeFile open(Path path) throws IOException {
    return call(path, () -> new NativeFile(this, path, Native.siteOpenFile(handle, octets(path))));
  }

  void makePath(Path path, int mode) throws IOException {
    act(path, () -> Native.siteMakePath(handle, octets(path), mode));
  }

  void rename(Path from, Path to, boolean isExclusive) throws IOException {
    act(from, () -> Native.siteRename(handle, octets(from), octets(to), isExclusive));
  }

  void remove(Path path, boolean isRecursive) throws IOException {
    act(path, () -> Native.siteRemove(handle, octets(path), isRecursive));
  }

  void setMode(Path path, int mode) throws IOException {
    act(path, () -> Native.siteChange(handle, octets(path), mode, -1, null, null));
  }

  void setTime(Path path, long nanos) throws IOException {
    act(path, () -> Native.siteChange(handle, octets(path), -1, nanos, null, null));
  }

  void setOwner(Path path, String owner, String group) throws IOException {
    byte[] ownerOctets = octets(path, owner);
    byte[] groupOctets = octets(path, group);
    act(path, () -> Native.siteChange(handle, octets(path), -1, -1, ownerOctets, groupOctets));
  }

  void setReplicas(Path path, int replicas) throws IOException {
    act(path, () -> Native.siteSetReplicas(handle, octets(path), replicas));
  }

  void setXattr(Path path, String key, byte[] value, boolean mayCreate, boolean mayReplace)
      throws IOException {
    int when = !mayReplace ? ONLY_NEW : !mayCreate ? ONLY_OLD : 0;
    byte[] name = octets(path, key);
    act(path, () -> Native.siteSetXattr(handle, octets(path), name, value, when));
  }

  byte[] xattr(Path path, String key) throws IOException {
    byte[] name = octets(path, key);
    return call(path, () -> Native.siteGetXattr(handle, octets(path), name));
  }

  List<String> xattrs(Path path) throws IOException {
    return call(path, () -> texts(Native.siteListXattrs(handle, octets(path))));
  }

  void removeXattr(Path path, String key) throws IOException {
    byte[] name = octets(path, key);
    act(path, () -> Native.siteRemoveXattr(handle, octets(path), name));
  }

  /** The list of a file or directory, and that of what is made in it, empty if there is none. */
  List<String> acl(Path path) throws IOException {
    return call(path, () -> texts(Native.siteGetAcl(handle, octets(path))));
  }

  /** Changes one of the lists; {@link AclTexts} has the flags and the form of entries. */
  void changeAcl(Path path, String set, String remove, int flags) throws IOException {
    byte[] added = octets(path, set);
    byte[] removed = octets(path, remove);
    act(path, () -> Native.siteChangeAcl(handle, octets(path), added, removed, flags));
  }

  /** Octets that there can be, are, and are left. */
  long[] room(Path path) throws IOException {
    return call(path, () -> Native.siteRoom(handle, octets(path)));
  }

  List<String> servers(Path path) throws IOException {
    return call(path, () -> texts(Native.siteServers(handle, octets(path))));
  }

  void truncate(Path path, long size) throws IOException {
    act(path, () -> Native.siteTruncate(handle, octets(path), size));
  }

  /** Returns the new version, which has taken the place of {@code base} unless that is 0. */
  long put(
      Path path,
      Spool spool,
      int mode,
      int replicas,
      boolean isExclusive,
      long base,
      boolean isGrown)
      throws IOException {
    return call(
        path,
        () ->
            Native.sitePut(
                handle,
                octets(path),
                spool.descriptor(),
                mode,
                replicas,
                isExclusive,
                base,
                isGrown));
  }

  /** Makes a key that signs for the user for so many seconds; whoever has the text has the key. */
  byte[] lend(Path path, long seconds) throws IOException {
    return call(path, () -> Native.siteLend(handle, seconds));
  }

  /** Until when the key that signs is lent, in milliseconds; 0 if it is not. */
  long lentUntil(Path path) throws IOException {
    return call(path, () -> Native.siteLentUntil(handle)) / NANOS_IN_MILLI;
  }

  /** Ends the loan of the key that signs; false if it is lent no more. */
  boolean recall(Path path) throws IOException {
    return call(path, () -> Native.siteRecall(handle));
  }

  @Override
  public void close() {
    closing.clean();
  }
}
