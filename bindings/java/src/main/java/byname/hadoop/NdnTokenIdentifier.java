package byname.hadoop;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.token.delegation.AbstractDelegationTokenIdentifier;

/**
 * What a delegation token of {@code ndn://} says of itself: whose it is, at which site, by which
 * lent key, until when. The key is not in it: that is the token's password.
 */
public final class NdnTokenIdentifier extends AbstractDelegationTokenIdentifier {
  /** The kind of these tokens. */
  public static final Text KIND = new Text("NDN_DELEGATION_TOKEN");

  private String site = "";
  private String key = "";

  /** An identifier to be read. */
  public NdnTokenIdentifier() {}

  NdnTokenIdentifier(String user, String renewer, String site, String key) {
    super(new Text(user), new Text(renewer == null ? "" : renewer), new Text(""));
    this.site = site;
    this.key = key;
  }

  @Override
  public Text getKind() {
    return KIND;
  }

  /** The URI of the site's name. */
  public String getSite() {
    return site;
  }

  /** The digest of the lent key. */
  public String getKey() {
    return key;
  }

  @Override
  public void write(DataOutput out) throws IOException {
    super.write(out);
    out.writeUTF(site);
    out.writeUTF(key);
  }

  @Override
  public void readFields(DataInput in) throws IOException {
    super.readFields(in);
    site = in.readUTF();
    key = in.readUTF();
  }

  @Override
  public boolean equals(Object other) {
    return super.equals(other)
        && site.equals(((NdnTokenIdentifier) other).site)
        && key.equals(((NdnTokenIdentifier) other).key);
  }

  @Override
  public int hashCode() {
    return 31 * super.hashCode() + key.hashCode();
  }

  @Override
  public String toString() {
    return getOwner() + " at " + site + " by " + key;
  }
}
