package byname.hadoop;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenRenewer;

/**
 * Says until when tokens of {@code ndn://} are valid, and ends them. A lent key lends none, not
 * itself for longer either: whoever needs more time asks for a longer one at first. Both act with
 * the token's own key, so that no other is needed; the link has to be in the configuration.
 */
public final class NdnTokenRenewer extends TokenRenewer {
  @Override
  public boolean handleKind(Text kind) {
    return NdnTokenIdentifier.KIND.equals(kind);
  }

  @Override
  public boolean isManaged(Token<?> token) {
    return true;
  }

  private interface Ask<T> {
    T of(NativeSite site, Path root) throws IOException;
  }

  private static <T> T ask(Token<?> token, Configuration conf, Ask<T> ask) throws IOException {
    URI uri = LentKey.uri(token);
    Path root = new Path(uri);
    String link = Settings.link(uri.getAuthority(), conf);
    try (NativeSession session = LentKey.of(token).open(root, link, conf);
        NativeSite site = session.site(root, null)) {
      return ask.of(site, root);
    }
  }

  /** The time at which the loan ends, as the site's head has it; a refusal if it has ended. */
  @Override
  public long renew(Token<?> token, Configuration conf) throws IOException {
    long until = ask(token, conf, (site, root) -> site.lentUntil(root));
    if (until == 0) {
      throw new AccessControlException(
          "the delegation token for " + token.getService() + " was cancelled");
    }
    return until;
  }

  /** Ends the loan at the site: what the key signs counts no more. */
  @Override
  public void cancel(Token<?> token, Configuration conf) throws IOException {
    try {
      ask(token, conf, (site, root) -> site.recall(root));
    } catch (AccessControlException e) {
      // There is nothing to end in what is over.
      if (NativeSite.errno(e) != Errno.EKEYEXPIRED && !isOver(e)) {
        throw e;
      }
    }
  }

  private static boolean isOver(IOException refusal) {
    return refusal.getCause() instanceof IOException
        && NativeSite.errno((IOException) refusal.getCause()) == Errno.EKEYEXPIRED;
  }
}
