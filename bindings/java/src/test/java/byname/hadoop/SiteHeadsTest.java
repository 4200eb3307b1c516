package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.examples.terasort.TeraGen;
import org.apache.hadoop.examples.terasort.TeraSort;
import org.apache.hadoop.examples.terasort.TeraValidate;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.TestDFSIO;
import org.apache.hadoop.test.LambdaTestUtils;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/**
 * Jobs at a site whose catalog is in PostgreSQL, with two heads: the one that leads is killed while
 * a job writes, and what it leaves is, octet by octet, what a job leaves that nothing happens to.
 */
public class SiteHeadsTest {
  private static final int DISKS = 3;
  private static final int RECORDS = 60_000;
  private static final int RECORD_BYTES = 100;
  private static final int FILES = 3;
  private static final int MIB = 4;
  private static final int PATIENCE_MS = 120_000;

  private Database database;
  private RunningSite site;
  private FileSystem fs;

  @Before
  public void begin() throws Exception {
    database = Database.begin();
    site = RunningSite.begin("/hadoop/heads", DISKS, 2, Arrays.asList("physics"));
    site.takeApart(DISKS, database);
    fs = FileSystem.newInstance(RunningSite.path("").toUri(), site.conf());
    LambdaTestUtils.await(PATIENCE_MS, 100, this::isWell);
  }

  @After
  public void end() throws IOException {
    if (fs != null) {
      fs.close();
    }
    if (site != null) {
      site.close();
    }
    database.close();
  }

  private boolean isWell() {
    try (FSDataOutputStream out = fs.create(RunningSite.path("probe"), true)) {
      out.write(1);
    } catch (IOException e) {
      return false;
    }
    return true;
  }

  private Configuration conf(String name) {
    Configuration conf = site.conf();
    conf.setClass("fs.ndn.impl", WatchedFileSystem.class, FileSystem.class);
    // Each test has a site of its own under the same authority.
    conf.setBoolean("fs.ndn.impl.disable.cache", true);
    conf.set(FileSystem.FS_DEFAULT_NAME_KEY, RunningSite.path("").toString());
    conf.set("test.build.data", RunningSite.path(name).toString());
    conf.set("mapreduce.framework.name", "local");
    conf.set("hadoop.tmp.dir", site.scratch().resolve("tmp").toString());
    conf.setInt("mapreduce.job.reduces", 2);
    conf.setInt("mapreduce.job.maps", 2);
    return conf;
  }

  private void run(Tool tool, String name, String... arguments) throws Exception {
    assertEquals(name, 0, ToolRunner.run(conf(name), tool, arguments));
  }

  private static String uri(String path) {
    return RunningSite.path(path).toString();
  }

  private String octets(String pattern) throws Exception {
    return Octets.of(fs, pattern);
  }

  private String text(String pattern) throws IOException {
    StringBuilder all = new StringBuilder();
    for (FileStatus part : fs.globStatus(RunningSite.path(pattern))) {
      try (FSDataInputStream in = fs.open(part.getPath())) {
        all.append(new String(in.readAllBytes(), StandardCharsets.UTF_8));
      }
    }
    return all.toString();
  }

  private void sort(String name) throws Exception {
    run(new TeraSort(), name, uri("generated"), uri(name));
    run(new TeraValidate(), name, uri(name), uri(name + "-report"));
  }

  private void write(String name) throws Exception {
    String log = site.scratch().resolve(name + ".log").toString();
    run(
        new TestDFSIO(), name,
        "-write", "-nrFiles", Integer.toString(FILES), "-size", MIB + "MB", "-resFile", log);
  }

  @Test
  public void jobsLeaveTheSameOctetsThoughTheHeadThatLeadsIsKilled() throws Exception {
    run(new TeraGen(), "generated", Integer.toString(RECORDS), uri("generated"));
    sort("calm");
    // A task begins to write what it has sorted.
    WatchedFileSystem.onCreate("killed/_temporary/", () -> site.kill("head"));
    sort("killed");
    assertFalse(WatchedFileSystem.isWatching());
    assertTrue("the other head leads", site.leads("second"));
    String calm = octets("calm/part-*");
    assertTrue(calm, calm.startsWith((long) RECORDS * RECORD_BYTES + " "));
    assertEquals(calm, octets("killed/part-*"));
    String report = text("calm-report/part-*");
    assertTrue(report, report.contains("checksum"));
    assertEquals(report, text("killed-report/part-*"));

    site.startPart("head");
    write("files");
    WatchedFileSystem.onCreate("/io_data/", () -> site.kill("second"));
    write("files-killed");
    assertFalse(WatchedFileSystem.isWatching());
    LambdaTestUtils.await(PATIENCE_MS, 100, () -> site.leads("head"));
    String files = octets("files/io_data/*");
    assertTrue(files, files.startsWith(((long) FILES * MIB << 20) + " "));
    assertEquals(files, octets("files-killed/io_data/*"));
  }
}
