package byname.hadoop;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.examples.WordCount;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.ToolRunner;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/** {@code hadoop fs} and MapReduce, as their users call them. */
public class JobsTest {
  private static final int LINES = 20_000;

  private static Published published;

  @BeforeClass
  public static void publish() throws IOException {
    published = Published.begin("/hadoop/jobs");
    StringBuilder words = new StringBuilder();
    for (int at = 0; at < LINES; at++) {
      words.append("word").append(at % 7).append(" of many ").append(at % 2).append('\n');
    }
    byte[] text = words.toString().getBytes(StandardCharsets.UTF_8);
    published.write("text/one file.txt", text);
    published.write("text/100% sure.txt", text);
  }

  @AfterClass
  public static void end() {
    published.close();
  }

  private static class Outcome {
    int code;
    String out;
    String err;
  }

  private static synchronized Outcome shell(String... arguments) throws Exception {
    Outcome outcome = new Outcome();
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    PrintStream outBefore = System.out;
    PrintStream errBefore = System.err;
    System.setOut(new PrintStream(out, true, "UTF-8"));
    System.setErr(new PrintStream(err, true, "UTF-8"));
    try {
      outcome.code = ToolRunner.run(published.conf(), new FsShell(), arguments);
    } finally {
      System.setOut(outBefore);
      System.setErr(errBefore);
    }
    outcome.out = out.toString("UTF-8");
    outcome.err = err.toString("UTF-8");
    return outcome;
  }

  @Test
  public void theShellListsShowsAndCopies() throws Exception {
    Outcome listing = shell("-ls", "-R", "ndn://lab/");
    assertEquals(listing.err, 0, listing.code);
    assertTrue(listing.out, listing.out.contains("ndn://lab/text/one file.txt"));
    assertTrue(listing.out, listing.out.contains("ndn://lab/text/100% sure.txt"));

    byte[] wanted = Files.readAllBytes(published.data().resolve("text/100% sure.txt"));
    Outcome shown = shell("-cat", "ndn://lab/text/100% sure.txt");
    assertEquals(shown.err, 0, shown.code);
    assertEquals(new String(wanted, StandardCharsets.UTF_8), shown.out);

    Path copy = published.scratch().resolve("copy");
    Outcome copied = shell("-get", "ndn://lab/text", copy.toUri().toString());
    assertEquals(copied.err, 0, copied.code);
    assertArrayEquals(wanted, Files.readAllBytes(copy.resolve("one file.txt")));
    assertArrayEquals(wanted, Files.readAllBytes(copy.resolve("100% sure.txt")));

    Outcome sum = shell("-checksum", "ndn://lab/text/one file.txt");
    assertEquals(sum.err, 0, sum.code);
    assertTrue(sum.out, sum.out.contains("\tBLAKE3\t"));

    Outcome counted = shell("-count", "ndn://lab/text");
    assertTrue(counted.out, counted.out.trim().startsWith("1            2"));
  }

  @Test
  public void theShellSaysInOneLineWhatCannotBe() throws Exception {
    Outcome put = shell("-put", "/etc/hostname", "ndn://lab/new");
    assertEquals(1, put.code);
    assertTrue(put.err, put.err.contains("is read-only"));
    assertEquals(put.err, 1, put.err.trim().lines().count());
    Outcome removed = shell("-rm", "-skipTrash", "ndn://lab/text/one file.txt");
    assertEquals(1, removed.code);
    assertTrue(removed.err, removed.err.contains("is read-only"));
    Outcome absent = shell("-cat", "ndn://lab/absent");
    assertEquals(1, absent.code);
    assertTrue(absent.err, absent.err.contains("No such file or directory"));
  }

  @Test
  public void wordsAreCountedAsOnTheLocalFileSystem() throws Exception {
    Map<String, Integer> named = count("ndn://lab/text", "named");
    Path folder = published.data().resolve("text");
    Map<String, Integer> local = count(folder.toUri().toString(), "local");
    assertEquals(local, named);
    assertEquals(11, named.size());
    assertEquals(2 * LINES, (int) named.get("many"));
  }

  private static Map<String, Integer> count(String input, String name) throws Exception {
    Configuration conf = published.conf();
    conf.set("mapreduce.framework.name", "local");
    conf.set("hadoop.tmp.dir", published.scratch().resolve("tmp").toString());
    // Several splits for each file.
    conf.setLong("mapreduce.input.fileinputformat.split.maxsize", 100_000);
    Job job = Job.getInstance(conf, name);
    job.setJarByClass(WordCount.class);
    job.setMapperClass(WordCount.TokenizerMapper.class);
    job.setCombinerClass(WordCount.IntSumReducer.class);
    job.setReducerClass(WordCount.IntSumReducer.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(IntWritable.class);
    FileInputFormat.addInputPath(job, new org.apache.hadoop.fs.Path(input));
    Path output = published.scratch().resolve(name);
    FileOutputFormat.setOutputPath(job, new org.apache.hadoop.fs.Path(output.toUri()));
    assertTrue(job.waitForCompletion(false));
    Map<String, Integer> counts = new TreeMap<>();
    for (String line : Files.readAllLines(output.resolve("part-r-00000"))) {
      String[] parts = line.split("\t");
      counts.put(parts[0], Integer.valueOf(parts[1]));
    }
    return counts;
  }
}
