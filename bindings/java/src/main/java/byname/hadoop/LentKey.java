package byname.hadoop;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;

/**
 * A delegation token: a key that a user of a site has lent for a while. The key is the token's
 * password and stays in memory. A file system for which there is one acts with it and no other.
 */
final class LentKey {
  private static final long NANOS_IN_MILLI = 1_000_000;

  private final Token<NdnTokenIdentifier> token;
  private final NdnTokenIdentifier identifier;

  private LentKey(Token<NdnTokenIdentifier> token, NdnTokenIdentifier identifier) {
    this.token = token;
    this.identifier = identifier;
  }

  /** The service that tokens for an authority are for. */
  static Text service(String authority) {
    return new Text(NdnFileSystem.SCHEME + "://" + authority.toLowerCase(Locale.ROOT));
  }

  /** The key that the current user of Hadoop has for an authority; null if there is none. */
  static LentKey find(String authority, Configuration conf) throws IOException {
    boolean isReader = Keys.IDENTITY_NONE.equals(conf.getTrimmed(Keys.IDENTITY));
    if (authority == null || isReader) {
      return null;
    }
    Text service = service(authority);
    for (Token<?> token : UserGroupInformation.getCurrentUser().getCredentials().getAllTokens()) {
      if (token.getKind().equals(NdnTokenIdentifier.KIND) && token.getService().equals(service)) {
        return of(token);
      }
    }
    return null;
  }

  /** The key in a token, whose two parts say the same. */
  @SuppressWarnings("unchecked")
  static LentKey of(Token<?> token) throws IOException {
    NativeLibrary.load();
    NdnTokenIdentifier identifier = new NdnTokenIdentifier();
    try {
      identifier.readFields(new DataInputStream(new ByteArrayInputStream(token.getIdentifier())));
    } catch (IOException | IllegalArgumentException e) {
      throw refuse(token, "which was altered, or is not whole", e);
    }
    LentKey key = new LentKey((Token<NdnTokenIdentifier>) token, identifier);
    NdnTokenIdentifier lent;
    try {
      lent = identify(token.getPassword(), identifier.getRenewer().toString());
    } catch (NativeException e) {
      throw key.refused(e.getMessage(), e);
    }
    boolean isSame =
        lent.getOwner().equals(identifier.getOwner())
            && lent.getSite().equals(identifier.getSite())
            && lent.getKey().equals(identifier.getKey())
            && lent.getMaxDate() == identifier.getMaxDate();
    if (!isSame) {
      throw key.refused("it was altered: its key is that of " + lent, null);
    }
    return key;
  }

  // What the octets of a lent key say.
  private static NdnTokenIdentifier identify(byte[] loan, String renewer) throws NativeException {
    List<String> texts = NativeSite.texts(Native.loanTexts(loan));
    NdnTokenIdentifier made =
        new NdnTokenIdentifier(texts.get(0), renewer, texts.get(1), texts.get(2));
    made.setMaxDate(Long.parseLong(texts.get(3)) / NANOS_IN_MILLI);
    return made;
  }

  /** Lends a key of the user's to whoever has the token. */
  static LentKey lend(NativeSite site, Path root, String renewer, Configuration conf)
      throws IOException {
    long seconds =
        Settings.time(
            conf, Keys.TOKEN_LIFETIME, Keys.TOKEN_LIFETIME_DEFAULT, TimeUnit.SECONDS);
    if (seconds <= 0) {
      throw new IOException(Keys.TOKEN_LIFETIME + " must be above 0");
    }
    byte[] loan = site.lend(root, seconds);
    NdnTokenIdentifier identifier;
    try {
      identifier = identify(loan, renewer);
    } catch (NativeException e) {
      throw Failures.of(root, e);
    }
    identifier.setIssueDate(System.currentTimeMillis());
    Text service = service(root.toUri().getAuthority());
    byte[] octets = identifier.getBytes();
    return new LentKey(
        new Token<>(octets, loan, NdnTokenIdentifier.KIND, service), identifier);
  }

  /** A copy of the token. */
  Token<NdnTokenIdentifier> token() {
    return token.copyToken();
  }

  /** A session that acts with the key. */
  NativeSession open(Path root, String link, Configuration conf) throws IOException {
    try {
      return NativeSession.open(root, link, token.getPassword(), conf);
    } catch (IOException e) {
      switch (NativeSite.errno(e)) {
        case Errno.EKEYEXPIRED:
        case Errno.EKEYREJECTED:
        case Errno.EXDEV:
          throw refused(e.getCause().getMessage(), e);
        default:
          throw e;
      }
    }
  }

  private IOException refused(String why, Exception cause) {
    return refuse(token, identifier + ": " + why, cause);
  }

  private static IOException refuse(Token<?> token, String why, Exception cause) {
    IOException made =
        new AccessControlException(
            "the delegation token " + token.getKind() + " for " + token.getService() + ", " + why);
    made.initCause(cause);
    return made;
  }

  /** The file system that a token is for. */
  static URI uri(Token<?> token) {
    return URI.create(token.getService() + "/");
  }
}
