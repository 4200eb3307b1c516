package byname.hadoop;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.contract.AbstractFSContract;
import org.apache.hadoop.util.Shell;

/** The contract of {@code ndn://} over one site, shared by all suites of a run. */
final class SiteContract extends AbstractFSContract {
  private static RunningSite site;
  private static FileSystem shared;

  SiteContract(Configuration conf) {
    super(conf);
    addConfResource("contract/site.xml");
  }

  static synchronized RunningSite site() throws IOException {
    if (site == null) {
      // The older suites give files to groups of whoever runs them.
      List<String> groups =
          Arrays.asList(Shell.execCommand(Shell.getGroupsCommand()).trim().split("\\s+"));
      RunningSite made = RunningSite.begin("/hadoop/site", 3, 2, groups);
      Runtime.getRuntime().addShutdownHook(new Thread(made::close));
      site = made;
    }
    return site;
  }

  /** A file system of the site's user, of its own. */
  static FileSystem newFileSystem() throws IOException {
    return FileSystem.newInstance(RunningSite.path("").toUri(), site().conf());
  }

  /**
   * The one that all suites share. Each has sessions of the site, of which a user may have so many
   * in ten minutes.
   */
  static synchronized FileSystem fileSystem() throws IOException {
    if (shared == null) {
      shared = newFileSystem();
    }
    return shared;
  }

  @Override
  public FileSystem getTestFileSystem() throws IOException {
    return fileSystem();
  }

  @Override
  public String getScheme() {
    return "ndn";
  }

  @Override
  public Path getTestPath() {
    return new Path("/test");
  }
}
