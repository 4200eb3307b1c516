package byname.hadoop;

import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/** Status of one version of a file or directory. Its etag is the version. */
final class NdnFileStatus extends FileStatus implements EtagSource {
  private static final long serialVersionUID = 1L;

  private final String etag;
  // Of a site: asked for when somebody wants to know, since few do. Does not travel.
  private final transient NativeSite site;
  private Boolean hasAcl;
  private transient boolean isBehindLink;

  NdnFileStatus(Path path, Record record, long blockBytes, NativeSite site) {
    super(
        record.length(),
        record.isDirectory(),
        record.isDirectory() ? 0 : record.replicas(),
        record.isDirectory() ? 0 : blockBytes,
        record.modificationMillis(),
        0,
        new FsPermission((short) record.permissions()),
        record.owner(),
        record.group(),
        path);
    etag = etag(record.version());
    this.site = site;
  }

  /** Asks the head, once; false also if it does not say, as for what is gone by now. */
  @Override
  public synchronized boolean hasAcl() {
    if (hasAcl == null) {
      hasAcl = site != null && AclTexts.isBeyondMode(site, getPath());
    }
    return hasAcl;
  }

  /** Notes that the entry is a symbolic link, and this what it leads to. */
  void setBehindLink() {
    isBehindLink = true;
  }

  /** True if the entry of a listing is a symbolic link, and this what it leads to. */
  boolean isBehindLink() {
    return isBehindLink;
  }

  static String etag(long version) {
    return Long.toUnsignedString(version);
  }

  @Override
  public String getEtag() {
    return etag;
  }
}
