package byname.hadoop;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * The sites that paths are in, as the user whose key is here: not as anybody that Hadoop calls the
 * user, which is what a variable of the environment says.
 */
final class Sites {
  private final NativeSession session;
  private final Path root;
  private final boolean isLinked;
  private final String user;
  private final boolean isReader;
  private final List<NativeSite> known = new ArrayList<>();
  private NativeSite linked;
  private boolean isAsked;

  /** Sites below a link, or if there is none, of whole names. */
  Sites(NativeSession session, Path root, boolean isLinked, Configuration conf) {
    this.session = session;
    this.root = root;
    this.isLinked = isLinked;
    String identity = conf.getTrimmed(Keys.IDENTITY);
    isReader = Keys.IDENTITY_NONE.equals(identity);
    user = isReader ? null : identity;
  }

  /** The site above a path; null if there is no key here for one: then it can only be read. */
  NativeSite of(Path path) throws IOException {
    if (isReader) {
      return null;
    }
    return isLinked ? linked() : above(path);
  }

  private synchronized NativeSite linked() throws IOException {
    if (!isAsked) {
      linked = session.site(root, user);
      isAsked = true;
    }
    return linked;
  }

  private NativeSite above(Path path) throws IOException {
    String name = path.toUri().getRawPath() + "/";
    synchronized (this) {
      for (NativeSite site : known) {
        if (name.startsWith(site.name() + "/")) {
          return site;
        }
      }
    }
    NativeSite found = session.site(path, user);
    if (found != null) {
      synchronized (this) {
        known.add(found);
      }
    }
    return found;
  }
}
