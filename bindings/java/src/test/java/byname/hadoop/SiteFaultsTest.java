package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.examples.terasort.TeraGen;
import org.apache.hadoop.examples.terasort.TeraSort;
import org.apache.hadoop.examples.terasort.TeraValidate;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.TestDFSIO;
import org.apache.hadoop.test.LambdaTestUtils;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;
import org.junit.After;
import org.junit.Test;

/** Jobs at a site of which parts die, rot or are full: they end right, or fail and say why. */
public class SiteFaultsTest {
  private static final int DISKS = 3;
  private static final int RECORDS = 20_000;
  private static final int RECORD_BYTES = 100;
  private static final String FILES = "3";
  private static final int PATIENCE_MS = 120_000;
  /** Long enough that whatever a job does next finds the part gone. */
  private static final int OUTAGE_MS = 2_500;
  private static final List<String> GROUPS = Arrays.asList("physics");

  // Files of which one replica was changed, the other one not.
  private final Set<String> rottenNames = new HashSet<>();
  private RunningSite site;

  @After
  public void end() {
    site.close();
  }

  private Configuration conf() {
    Configuration conf = site.conf();
    // Each test has a site of its own under the same authority.
    conf.setBoolean("fs.ndn.impl.disable.cache", true);
    conf.setClass("fs.ndn.impl", WatchedFileSystem.class, FileSystem.class);
    conf.set("mapreduce.framework.name", "local");
    conf.set("hadoop.tmp.dir", site.scratch().resolve("tmp").toString());
    conf.setInt("mapreduce.job.reduces", 2);
    conf.setInt("mapreduce.job.maps", 2);
    return conf;
  }

  private int run(Tool tool, String... arguments) throws Exception {
    return ToolRunner.run(conf(), tool, arguments);
  }

  private FileSystem open() throws IOException {
    return FileSystem.newInstance(RunningSite.path("").toUri(), site.conf());
  }

  private static long bytes(FileSystem fs, String pattern) throws IOException {
    long bytes = 0;
    for (FileStatus part : fs.globStatus(RunningSite.path(pattern))) {
      bytes += part.getLen();
    }
    return bytes;
  }

  private static String uri(String path) {
    return RunningSite.path(path).toString();
  }

  @Test
  public void jobsEndRightWhileHeadForwarderAndDisksAreKilled() throws Exception {
    site = RunningSite.begin("/hadoop/parts", DISKS, 2, GROUPS);
    site.keepNothingInForwarder();
    site.takeApart(DISKS);
    try (FileSystem fs = open()) {
      LambdaTestUtils.await(PATIENCE_MS, 100, () -> isWell(fs));
      assertEquals(0, run(new TeraGen(), Integer.toString(RECORDS), uri("calm")));
      String calm = Octets.of(fs, "calm/part-*");
      for (String part : new String[] {"head", "forwarder", "disk2"}) {
        // When a task begins to write.
        WatchedFileSystem.onCreate("gen-" + part + "/_temporary/", () -> site.kill(part));
        endsWell(
            part, () -> run(new TeraGen(), Integer.toString(RECORDS), uri("gen-" + part)));
        LambdaTestUtils.await(PATIENCE_MS, 100, () -> isWell(fs));
        assertEquals((long) RECORDS * RECORD_BYTES, bytes(fs, "gen-" + part + "/part-*"));
        assertEquals(part, calm, Octets.of(fs, "gen-" + part + "/part-*"));
      }
      // The third disk stays dead.
      assertEquals(0, run(new TeraSort(), uri("gen-disk2"), uri("sorted")));
      assertEquals(0, run(new TeraValidate(), uri("sorted"), uri("report")));
      assertEquals((long) RECORDS * RECORD_BYTES, bytes(fs, "sorted/part-*"));
    }
  }

  /** A job ends well though a part dies meanwhile, which, but for a disk, is started again. */
  private void endsWell(String part, Callable<Integer> job) throws Exception {
    ExecutorService thread = Executors.newSingleThreadExecutor();
    try {
      Future<Integer> running = thread.submit(job);
      LambdaTestUtils.await(
          PATIENCE_MS, 10, () -> running.isDone() || !WatchedFileSystem.isWatching());
      assertFalse(part, WatchedFileSystem.isWatching());
      if (!part.startsWith("disk")) {
        Thread.sleep(OUTAGE_MS);
        site.startPart(part);
      }
      assertEquals(part, 0, (int) running.get());
    } finally {
      thread.shutdownNow();
    }
  }

  private int files(String what, String below) throws Exception {
    Configuration conf = conf();
    conf.set(FileSystem.FS_DEFAULT_NAME_KEY, uri(""));
    conf.set("test.build.data", uri(below));
    java.nio.file.Path log = Files.createTempFile(site.scratch(), "dfsio", ".log");
    String[] words = {what, "-nrFiles", FILES, "-size", "4MB", "-resFile", log.toString()};
    int code = ToolRunner.run(conf, new TestDFSIO(), words);
    // Of a file of which it reads less it says so here alone.
    String said = Files.readString(log);
    assertTrue(said, said.contains("Number of files: " + FILES));
    assertTrue(said, said.contains("Total MBytes processed: 12"));
    return code;
  }

  @Test
  public void whatIsSortedAndReadIsTheSameThoughForwarderAndDisksAreKilled() throws Exception {
    site = RunningSite.begin("/hadoop/sorts", DISKS, 2, GROUPS);
    site.keepNothingInForwarder();
    site.takeApart(DISKS);
    try (FileSystem fs = open()) {
      LambdaTestUtils.await(PATIENCE_MS, 100, () -> isWell(fs));
      assertEquals(0, run(new TeraGen(), Integer.toString(RECORDS), uri("generated")));
      assertEquals(0, run(new TeraSort(), uri("generated"), uri("calm")));
      assertEquals(0, run(new TeraValidate(), uri("calm"), uri("report")));
      assertEquals(0, files("-write", "files"));
      String sorted = Octets.of(fs, "calm/part-*");
      String written = Octets.of(fs, "files/io_data/*");
      assertTrue(sorted, sorted.startsWith((long) RECORDS * RECORD_BYTES + " "));
      for (String part : new String[] {"forwarder", "disk0", "disk1"}) {
        String output = "sorted-" + part;
        // When a map begins to read; then when a reducer begins to write.
        for (String moment : new String[] {"map", "reduce"}) {
          if (moment.equals("map")) {
            WatchedFileSystem.onTaskOpen("generated/part-", () -> site.kill(part));
          } else {
            WatchedFileSystem.onCreate(output + moment + "/_temporary/", () -> site.kill(part));
          }
          endsWell(part, () -> run(new TeraSort(), uri("generated"), uri(output + moment)));
          assertEquals(part + moment, sorted, Octets.of(fs, output + moment + "/part-*"));
          recover(part, fs);
        }
        WatchedFileSystem.onCreate("files-" + part + "/io_data/", () -> site.kill(part));
        endsWell(part, () -> files("-write", "files-" + part));
        assertEquals(part, written, Octets.of(fs, "files-" + part + "/io_data/*"));
        recover(part, fs);
        WatchedFileSystem.onTaskOpen("files/io_data/", () -> site.kill(part));
        endsWell(part, () -> files("-read", "files"));
        recover(part, fs);
      }
    }
  }

  /** Everything that was killed is there again. */
  private void recover(String part, FileSystem fs) throws Exception {
    if (part.startsWith("disk")) {
      site.startPart(part);
    }
    LambdaTestUtils.await(PATIENCE_MS, 100, () -> isWell(fs));
  }

  // What was asked before a part was back may still fail.
  private static boolean isWell(FileSystem fs) {
    Path path = RunningSite.path("probe");
    try (FSDataOutputStream out = fs.create(path, true)) {
      out.write(1);
    } catch (IOException e) {
      return false;
    }
    return true;
  }

  @Test
  public void jobsReadTheOtherReplicaOfWhatHasRotted() throws Exception {
    site = RunningSite.begin("/hadoop/rotten", DISKS, 2, GROUPS);
    assertEquals(0, run(new TeraGen(), Integer.toString(RECORDS), uri("generated")));
    // The other replica of each is on another disk.
    assertTrue("something is on the first two of three", rot("disk0") + rot("disk1") > 0);
    assertEquals(0, run(new TeraSort(), uri("generated"), uri("sorted")));
    assertEquals(0, run(new TeraValidate(), uri("sorted"), uri("report")));
    try (FileSystem fs = open()) {
      assertEquals((long) RECORDS * RECORD_BYTES, bytes(fs, "sorted/part-*"));
    }
  }

  private int rot(String disk) throws IOException {
    int rotten = 0;
    for (java.nio.file.Path object : objects(disk)) {
      boolean isRotten = !rottenNames.add(object.getFileName().toString());
      if (!isRotten && Files.size(object) > RECORD_BYTES) {
        try (RandomAccessFile file = new RandomAccessFile(object.toFile(), "rw")) {
          file.seek(file.length() / 2);
          int octet = file.read();
          file.seek(file.length() / 2);
          file.write(octet ^ 1);
        }
        rotten++;
      }
    }
    return rotten;
  }

  private List<java.nio.file.Path> objects(String disk) throws IOException {
    try (Stream<java.nio.file.Path> below =
        Files.walk(site.scratch().resolve(disk).resolve("objects"))) {
      return below.filter(Files::isRegularFile).collect(Collectors.toList());
    }
  }

  @Test
  public void aJobForWhichThereIsNoRoomFailsAndLeavesNothingThatLooksWhole() throws Exception {
    site = RunningSite.begin("/hadoop/full", 2, "8M", 2, GROUPS);
    boolean hasFailed;
    try {
      hasFailed = run(new TeraGen(), "200000", uri("generated")) != 0;
    } catch (IOException e) {
      hasFailed = true;
    }
    assertTrue("20 MB do not fit", hasFailed);
    try (FileSystem fs = open()) {
      assertFalse(fs.exists(RunningSite.path("generated/_SUCCESS")));
      FSDataOutputStream out = fs.create(RunningSite.path("large"));
      out.write(new byte[16 << 20]);
      LambdaTestUtils.intercept(IOException.class, "ENOSPC", out::close);
      assertFalse(fs.exists(RunningSite.path("large")));
      // What fits is written all the same.
      fs.delete(RunningSite.path("generated"), true);
      assertTrue(isWell(fs));
    }
  }
}
