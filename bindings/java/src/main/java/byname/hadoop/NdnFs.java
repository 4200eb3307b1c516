package byname.hadoop;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.Path;

/** The same for {@code FileContext}: {@code fs.AbstractFileSystem.ndn.impl}. */
public final class NdnFs extends DelegateToFileSystem {
  /** Called by Hadoop. */
  public NdnFs(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(uri, new NdnFileSystem(), conf, NdnFileSystem.SCHEME, false);
  }

  /** In one step, where Hadoop would remove the target first. */
  @Override
  public void renameInternal(Path from, Path to, boolean isOverwrite) throws IOException {
    ((NdnFileSystem) fsImpl).renameTo(from, to, isOverwrite);
  }
}
