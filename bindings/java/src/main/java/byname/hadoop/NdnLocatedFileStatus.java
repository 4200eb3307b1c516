package byname.hadoop;

import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.LocatedFileStatus;

/** The same with block locations. */
final class NdnLocatedFileStatus extends LocatedFileStatus implements EtagSource {
  private static final long serialVersionUID = 1L;

  private final String etag;

  NdnLocatedFileStatus(NdnFileStatus status, BlockLocation[] locations) {
    // Nobody is asked for access control lists here: jobs are planned by these.
    super(
        status.getLen(),
        status.isDirectory(),
        status.getReplication(),
        status.getBlockSize(),
        status.getModificationTime(),
        status.getAccessTime(),
        status.getPermission(),
        status.getOwner(),
        status.getGroup(),
        null,
        status.getPath(),
        false,
        false,
        false,
        locations);
    etag = status.getEtag();
  }

  @Override
  public String getEtag() {
    return etag;
  }
}
