package byname.hadoop;

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

  /** How a path is asked for, without following links. */
  interface Lookup {
    Record stat(Path path) throws IOException;
  }

  /** A link that cannot be followed. */
  static final class BadLinkException extends PathIOException {
    private static final long serialVersionUID = 1L;

    BadLinkException(Path link, String text) {
      super(link.toString(), text + " (ELOOP)");
    }
  }

  private Links() {}

  /** The path that a path leads to. */
  static Path end(Path path, Lookup lookup) throws IOException {
    Path now = path;
    for (int followed = 0; followed <= FOLLOWED_MAX; followed++) {
      Path link = now;
      Record record = find(link, lookup);
      while (record == null && link.getParent() != null) {
        link = link.getParent();
        record = find(link, lookup);
      }
      boolean isLink = record != null && record.isSymlink();
      if (!isLink && link.equals(now)) {
        return now;
      }
      // What is no link by now has changed meanwhile: from the beginning.
      now = isLink ? behind(link, record.linkTarget(), now) : now;
    }
    throw new BadLinkException(path, "leads to more than 40 symbolic links");
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
    return site.list(end(path, site::stat));
  }

  /**
   * Fails if a link leads to a directory that its path goes through, be it by other links: who looks
   * at all that is below would come back to it for ever.
   */
  static void refuseCircle(Path link, Lookup lookup) throws IOException {
    Path end = end(link, lookup);
    for (Path above = link.getParent(); above != null; above = above.getParent()) {
      if (end(above, lookup).equals(end)) {
        throw new BadLinkException(link, "is a symbolic link to a directory that it is in");
      }
    }
  }

  /** Servers that have a file. */
  static List<String> servers(Path path, NativeSite site) throws IOException {
    try {
      return site.servers(path);
    } catch (IOException e) {
      // EINVAL: it is a link, or a directory.
      int errno = NativeSite.errno(e);
      Path end = errno == Errno.ELOOP || errno == Errno.EINVAL ? end(path, site::stat) : path;
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
    return new Path(record.linkTarget());
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

  private static Path behind(Path link, String target, Path path) throws IOException {
    if (target == null || target.startsWith("/")) {
      throw new BadLinkException(link, "is a symbolic link to " + target);
    }
    String above = link.getParent().toUri().getPath();
    String beneath = path.toUri().getPath().substring(link.toUri().getPath().length());
    Deque<String> names = new ArrayDeque<>();
    for (String name : (above + "/" + target + beneath).split("/")) {
      if (name.equals("..") && names.pollLast() == null) {
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
