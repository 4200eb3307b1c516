package byname.hadoop;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.contract.AbstractFSContract;

/** The contract of {@code ndn://} over one published directory, shared by all suites of a run. */
final class NdnContract extends AbstractFSContract {
  private static Published published;

  NdnContract(Configuration conf) {
    super(conf);
    addConfResource("contract/ndn.xml");
  }

  private static synchronized Published published() throws IOException {
    if (published == null) {
      Published made = Published.begin("/hadoop/contract");
      Runtime.getRuntime().addShutdownHook(new Thread(made::close));
      published = made;
    }
    return published;
  }

  @Override
  public FileSystem getTestFileSystem() throws IOException {
    Configuration conf = new Configuration(getConf());
    Published to = published();
    to.conf().forEach(
        entry -> {
          if (entry.getKey().startsWith("fs.ndn.")) {
            conf.set(entry.getKey(), entry.getValue());
          }
        });
    conf.set("fs.ndn.impl", PublishingFileSystem.class.getName());
    conf.set(PublishingFileSystem.FOLDER, to.data().toString());
    return FileSystem.newInstance(Published.path("").toUri(), conf);
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
