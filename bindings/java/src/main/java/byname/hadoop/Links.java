package byname.hadoop;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;

/**
 * Follows the symbolic links of a site. Its head follows none: it says that a path is a link, or
 * that one is above it (ELOOP). A target is looked for below the link's own directory; one that
 * begins with a slash means something else on each machine, and is refused.
 */
final class Links {
  /** As in Linux. */
  static final int FOLLOWED_MAX = 40;

  /**
   * A directory that is reached by so many links shows none to further directories: of directories
   * that lead to each other there would be more paths than anybody could look at.
   */
  static final int LISTED_MAX = 2;

  /** Times that what was opened may have become a link meanwhile. */
  private static final int REOPENED_MAX = 8;

  /** How a path is asked for, without following links. */
  interface Lookup {
    Record stat(Path path) throws IOException;
  }

  /** How a path is opened, without following links. */
  interface Opener {
    NativeFile open(Path path) throws IOException;
  }

  /** A link that cannot be followed. */
  static final class BadLinkException extends PathIOException {
    private static final long serialVersionUID = 1L;

    BadLinkException(Path link, String text) {
      super(link.toString(), text + " (ELOOP)");
    }
  }

  private Links() {}

  /** Where a path leads to, by how many links. */
  private static final class End {
    private final Path path;
    private final int followed;

    private End(Path path, int followed) {
      this.path = path;
      this.followed = followed;
    }
  }

  /** The path that a path of a site leads to; of what is no site's if that is null. */
  static Path end(Path path, NativeSite site, Lookup lookup) throws IOException {
    return walk(path, floor(path, site), lookup).path;
  }

  // Names that no link may leave: without an authority those of the site itself.
  private static int floor(Path path, NativeSite site) {
    boolean isWhole = site != null && path.toUri().getAuthority() == null;
    return isWhole ? new Path(site.name()).depth() : 0;
  }

  private static End walk(Path path, int floor, Lookup lookup) throws IOException {
    Path now = path;
    for (int followed = 0; followed <= FOLLOWED_MAX; followed++) {
      Path link = now;
      Record record = find(link, lookup);
      while (record == null && link.depth() > floor && link.getParent() != null) {
        link = link.getParent();
        record = find(link, lookup);
      }
      boolean isLink = record != null && record.isSymlink();
      if (!isLink && link.equals(now)) {
        return new End(now, followed);
      }
      // What is no link by now has changed meanwhile: from the beginning.
      now = isLink ? behind(link, record.linkTarget(), now, floor) : now;
    }
    throw new BadLinkException(path, "leads to more than 40 symbolic links");
  }

  /** Opens what a path leads to. */
  static NativeFile open(Path path, NativeSite site, Lookup lookup, Opener opener)
      throws IOException {
    Path now = path;
    for (int opened = 0; opened <= REOPENED_MAX; opened++) {
      NativeFile file = openFile(now, opener);
      if (file != null) {
        return file;
      }
      now = end(path, site, lookup);
    }
    throw new BadLinkException(path, "is another symbolic link each time");
  }

  // Null if it is a link, or beneath one. Of a site a link is a small file, whose content is where
  // it leads.
  private static NativeFile openFile(Path path, Opener opener) throws IOException {
    NativeFile file = null;
    try {
      file = opener.open(path);
      if (!file.stat().isSymlink()) {
        NativeFile opened = file;
        file = null;
        return opened;
      }
    } catch (IOException e) {
      if (NativeSite.errno(e) != Errno.ELOOP) {
        throw e;
      }
    } finally {
      if (file != null) {
        file.close();
      }
    }
    return null;
  }

  /** Entries of a directory of a site, links followed; null if it is a file. */
  static NdnListing.Pages list(Path path, NativeSite site) throws IOException {
    try {
      NdnListing.Pages pages = site.list(path);
      if (pages != null || !site.stat(path).isSymlink()) {
        return pages;
      }
    } catch (IOException e) {
      if (NativeSite.errno(e) != Errno.ELOOP) {
        throw e;
      }
    }
    End end = walk(path, floor(path, site), site::stat);
    NdnListing.Pages pages = site.list(end.path);
    return pages == null ? null : new Behind(pages, end.followed);
  }

  /** Entries of a directory that was reached by links. */
  private static final class Behind implements NdnListing.Pages {
    private final NdnListing.Pages pages;
    private final int followed;

    private Behind(NdnListing.Pages pages, int followed) {
      this.pages = pages;
      this.followed = followed;
    }

    @Override
    public List<Record> next() throws IOException {
      return pages.next();
    }

    @Override
    public boolean showsFolders() {
      return followed < LISTED_MAX;
    }

    @Override
    public void close() {
      pages.close();
    }
  }

  /**
   * Fails if a link leads to a directory that its path goes through, be it by other links: who looks
   * at all that is below would come back to it for ever.
   */
  static void refuseCircle(Path link, NativeSite site) throws IOException {
    Path end = end(link, site, site::stat);
    int floor = floor(link, site);
    for (Path above = link.getParent();
        above != null && above.depth() >= floor;
        above = above.getParent()) {
      if (end(above, site, site::stat).equals(end)) {
        throw new BadLinkException(link, "is a symbolic link to a directory that it is in");
      }
    }
  }

  /** True if a link leads to what this user may not see, or to what cannot be. */
  static boolean isOfTheLink(IOException failure) {
    int errno = NativeSite.errno(failure);
    return errno == Errno.EACCES
        || errno == Errno.EPERM
        || errno == Errno.EINVAL
        || errno == Errno.ENAMETOOLONG
        || errno == Errno.ENOTDIR
        || errno == Errno.ELOOP
        || failure instanceof BadLinkException
        || failure instanceof FileNotFoundException;
  }

  /** Servers that have a file. */
  static List<String> servers(Path path, NativeSite site) throws IOException {
    try {
      return site.servers(path);
    } catch (IOException e) {
      // EINVAL: it is a link, or a directory.
      int errno = NativeSite.errno(e);
      Path end = errno == Errno.ELOOP || errno == Errno.EINVAL ? end(path, site, site::stat) : path;
      if (end.equals(path)) {
        throw e;
      }
      return site.servers(end);
    }
  }

  /** What a link says. */
  static Path target(Path link, Record record) throws IOException {
    if (record.linkTarget() == null || record.linkTarget().isEmpty()) {
      throw new PathIOException(link.toString(), "is a symbolic link to what is no text");
    }
    try {
      return new Path(record.linkTarget());
    } catch (IllegalArgumentException e) {
      // Such as `a:b`, which Hadoop takes for a scheme.
      throw new PathIOException(link.toString(), "is a symbolic link to " + record.linkTarget());
    }
  }

  // Null if there is a link above.
  private static Record find(Path path, Lookup lookup) throws IOException {
    try {
      return lookup.stat(path);
    } catch (IOException e) {
      if (NativeSite.errno(e) == Errno.ELOOP) {
        return null;
      }
      throw e;
    }
  }

  private static Path behind(Path link, String target, Path path, int floor)
      throws IOException {
    if (target == null || target.startsWith("/")) {
      throw new BadLinkException(link, "is a symbolic link to " + target);
    }
    String above = link.getParent().toUri().getPath();
    String beneath = path.toUri().getPath().substring(link.toUri().getPath().length());
    Deque<String> names = new ArrayDeque<>();
    for (String name : (above + "/" + target + beneath).split("/")) {
      if (name.equals("..") && (names.size() <= floor || names.pollLast() == null)) {
        throw new BadLinkException(link, "is a symbolic link to " + target);
      }
      if (!name.isEmpty() && !name.equals(".") && !name.equals("..")) {
        names.addLast(name);
      }
    }
    return new Path(
        path.toUri().getScheme(), path.toUri().getAuthority(), "/" + String.join("/", names));
  }
}
