package byname.hadoop;

import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.LocatedFileStatus;

/** The same with block locations. */
final class NdnLocatedFileStatus extends LocatedFileStatus implements EtagSource {
  private static final long serialVersionUID = 1L;

  private final String etag;

  NdnLocatedFileStatus(NdnFileStatus status, BlockLocation[] locations) {
    super(status, locations);
    etag = status.getEtag();
  }

  @Override
  public String getEtag() {
    return etag;
  }
}
