package byname.hadoop;

import static org.junit.Assert.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/**
 * {@code ..} behind a symbolic link of a site means what it means behind one of HDFS and of the local
 * file system.
 */
public class PeerLinksTest {
  private static MiniDFSCluster cluster;
  private static java.nio.file.Path scratch;
  /** A directory each on the site, on HDFS and on the local file system. */
  private static Path[] bases;

  @BeforeClass
  public static void begin() throws Exception {
    scratch = Files.createDirectories(SiteContract.site().scratch().resolve("beside"));
    cluster =
        new MiniDFSCluster.Builder(new Configuration(), scratch.resolve("hdfs").toFile())
            .numDataNodes(1)
            .build();
    Path hdfs = new Path(cluster.getFileSystem().getUri().toString() + "/beside");
    bases = new Path[] {RunningSite.path("beside"), hdfs, new Path(scratch.resolve("d").toUri())};
    for (Path base : bases) {
      write(base, "file", "of the directory");
      write(base, "away/file", "of the one above where the link leads to");
      write(base, "away/deep/other", "where the link leads to");
    }
  }

  @AfterClass
  public static void end() {
    if (cluster != null) {
      cluster.shutdown();
    }
  }

  private static FileSystem fs(Path base) throws IOException {
    return base.getFileSystem(SiteContract.site().conf());
  }

  private static void write(Path base, String name, String content) throws IOException {
    try (FSDataOutputStream out = fs(base).create(new Path(base, name))) {
      out.write(content.getBytes(StandardCharsets.UTF_8));
    }
  }

  private static String read(Path path) throws IOException {
    try (FSDataInputStream in = fs(path).open(path)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  /** Hadoop makes it text before it asks anybody. */
  @Test
  public void whatIsAboveALinkIsWhatIsAboveItInTheText() throws Exception {
    SiteContract.site().operator("ln", "-s", "away/deep", "/hadoop/site/beside/link");
    // The cluster has done so, too, in all of this program.
    FileSystem.enableSymlinks();
    for (Path base : new Path[] {bases[1], bases[2]}) {
      fs(base).createSymlink(new Path(base, "away/deep"), new Path(base, "link"), false);
    }
    for (Path base : bases) {
      assertEquals(base.toString(), "where the link leads to", read(new Path(base, "link/other")));
      assertEquals(base.toString(), "of the directory", read(new Path(base, "link/../file")));
      Path relative = new Path(new Path(base, "link"), "../file");
      assertEquals(base.toString(), "of the directory", read(relative));
    }
  }
}
