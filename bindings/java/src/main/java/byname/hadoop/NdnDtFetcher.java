package byname.hadoop;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.token.DtFetcher;
import org.apache.hadoop.security.token.Token;

/** {@code hadoop dtutil get ndn://lab FILE}: a token in a file, also where there is no Kerberos. */
public final class NdnDtFetcher implements DtFetcher {
  @Override
  public Text getServiceName() {
    return new Text(NdnFileSystem.SCHEME);
  }

  /** Always: whether Hadoop knows its users is nothing to a site. */
  @Override
  public boolean isTokenRequired() {
    return true;
  }

  @Override
  public Token<?> addDelegationTokens(
      Configuration conf, Credentials credentials, String renewer, String url) throws IOException {
    URI uri = url == null ? FileSystem.getDefaultUri(conf) : URI.create(url);
    try (FileSystem fs = FileSystem.newInstance(uri, conf)) {
      Token<?> token = fs.getDelegationToken(renewer);
      if (token == null) {
        throw new IOException(
            uri + ": there is no key here for a site that a link leads to; ndn://LINK has tokens");
      }
      credentials.addToken(token.getService(), token);
      return token;
    }
  }
}
