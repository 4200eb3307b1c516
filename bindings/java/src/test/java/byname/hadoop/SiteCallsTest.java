package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** What calls fetch, ask and count. */
public class SiteCallsTest {
  private static final String POLICY = "fs.option.openfile.read.policy";
  private static final String LENGTH = "fs.option.openfile.length";
  private static final int FILE_BYTES = 3 << 20;
  private static final Path FOLDER = RunningSite.path("calls");
  private static final Path FILE = new Path(FOLDER, "file");

  private FileSystem fs;

  @Before
  public void begin() throws IOException {
    fs = open();
    fs.delete(FOLDER, true);
    try (FSDataOutputStream out = fs.create(FILE)) {
      out.write(NdnFileSystemTest.pattern(FILE_BYTES));
    }
  }

  @After
  public void end() throws IOException {
    fs.close();
  }

  /** One that remembers nothing of what others have read. */
  private static FileSystem open() throws IOException {
    Configuration conf = SiteContract.site().conf();
    conf.set("fs.ndn.cache", "none");
    return FileSystem.newInstance(RunningSite.path("").toUri(), conf);
  }

  private long count(String name) {
    Map<String, Long> counters = ((IOStatisticsSource) fs).getIOStatistics().counters();
    assertTrue(name, counters.containsKey(name));
    return counters.get(name);
  }

  /** Octets that come for one octet that is read at an offset. */
  private long received(String policy, long offset) throws Exception {
    FutureDataInputStreamBuilder builder = fs.openFile(FILE);
    if (policy != null) {
      builder = builder.must(POLICY, policy).opt(LENGTH, Integer.toString(FILE_BYTES));
    }
    try (FSDataInputStream in = builder.build().get()) {
      in.seek(offset);
      assertEquals(NdnFileSystemTest.pattern(FILE_BYTES)[(int) offset] & 0xff, in.read());
      return in.getIOStatistics().counters().get("ndn_received_bytes");
    }
  }

  @Test
  public void whatIsSaidOfReadingDecidesHowMuchIsFetched() throws Exception {
    long offset = 1_000_001;
    long usual = received(null, offset);
    assertTrue("a buffer: " + usual, usual >= 64 << 10 && usual < 256 << 10);
    for (String policy : Arrays.asList("random", "vector", "parquet", "mine, ORC,sequential")) {
      long octets = received(policy, offset);
      assertTrue(policy + ": " + octets, octets >= 8 << 10 && octets < 48 << 10);
    }
    for (String policy : Arrays.asList("sequential", "whole-file", "csv")) {
      long octets = received(policy, offset);
      assertTrue(policy + ": " + octets, octets >= 1 << 20);
    }
    for (String policy : Arrays.asList("adaptive", "default", "somebody's")) {
      long octets = received(policy, offset);
      assertTrue(policy + ": " + octets, octets >= 64 << 10 && octets < 256 << 10);
    }
    LambdaTestUtils.intercept(
        IllegalArgumentException.class,
        () -> fs.openFile(FILE).must("fs.option.openfile.unheard-of", "x").build().get());
  }

  @Test
  public void aSequentialReaderIsGivenEveryOctetOnce() throws Exception {
    byte[] expected = NdnFileSystemTest.pattern(FILE_BYTES);
    for (String policy : Arrays.asList("sequential", "random")) {
      try (FSDataInputStream in = fs.openFile(FILE).opt(POLICY, policy).build().get()) {
        for (int at = 0; at < 40_000; at++) {
          assertEquals(expected[at] & 0xff, in.read());
        }
        byte[] rest = in.readAllBytes();
        assertTrue(Arrays.equals(Arrays.copyOfRange(expected, 40_000, FILE_BYTES), rest));
      }
    }
  }

  /** The head says how often it was asked in two seconds, in which files are opened all the time. */
  @Test
  public void toOpenAFileIsOneQuestion() throws Exception {
    ExecutorService thread = Executors.newSingleThreadExecutor();
    try {
      Future<String> look =
          thread.submit(
              () -> SiteContract.site().operator("site", "top", "--count", "1", "--json"));
      int opened = 0;
      while (!look.isDone()) {
        fs.openFile(FILE).opt(LENGTH, Integer.toString(FILE_BYTES)).build().get().close();
        opened++;
      }
      double seconds = number(look.get(), "\"seconds\":");
      double asked = seconds * number(look.get(), "\"name\":\"query describe\",\"per_s\":");
      assertTrue(asked + " of " + opened, asked >= 1 && asked < 1.5 * opened + 5);
    } finally {
      thread.shutdownNow();
    }
  }

  private static double number(String text, String key) {
    Matcher matcher = Pattern.compile(Pattern.quote(key) + "([0-9.]+)").matcher(text);
    assertTrue(text, matcher.find());
    return Double.parseDouble(matcher.group(1));
  }

  @Test
  public void changesAreCounted() throws Exception {
    Path folder = new Path(FOLDER, "counted");
    assertTrue(fs.mkdirs(folder));
    fs.create(new Path(folder, "a")).close();
    fs.createNonRecursive(new Path(folder, "b"), true, 4096, (short) 1, 1 << 20, null).close();
    fs.append(new Path(folder, "a")).close();
    fs.rename(new Path(folder, "a"), new Path(folder, "c"));
    fs.setPermission(folder, new FsPermission((short) 0750));
    fs.setTimes(folder, 1_000, -1);
    fs.delete(folder, true);
    assertEquals(1, count("op_mkdirs"));
    // That of begin(), too.
    assertEquals(2, count("op_create"));
    assertEquals(1, count("op_create_non_recursive"));
    assertEquals(1, count("op_append"));
    assertEquals(1, count("op_rename"));
    assertEquals(1, count("op_set_permission"));
    assertEquals(1, count("op_set_times"));
    assertEquals(2, count("op_delete"));
  }

  @Test
  public void aSummaryListsEachDirectoryOnceAndAsksForNothingElse() throws Exception {
    for (String name : Arrays.asList("a/b/1", "a/b/2", "a/3", "c/4")) {
      fs.create(new Path(FOLDER, name)).close();
    }
    long listed = count("op_list_status");
    long asked = count("op_get_file_status");
    assertEquals(4, fs.getContentSummary(FOLDER).getDirectoryCount());
    assertEquals(5, fs.getContentSummary(FOLDER).getFileCount());
    assertEquals(8, count("op_list_status") - listed);
    assertEquals(2, count("op_get_file_status") - asked);
  }
}
