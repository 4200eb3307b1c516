package byname.hadoop;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;

/** The same for {@code FileContext}: {@code fs.AbstractFileSystem.ndn.impl}. */
public final class NdnFs extends DelegateToFileSystem {
  /** Called by Hadoop. */
  public NdnFs(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(uri, new NdnFileSystem(), conf, NdnFileSystem.SCHEME, false);
  }
}
