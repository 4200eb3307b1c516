package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.examples.WordCount;
import org.apache.hadoop.examples.terasort.TeraGen;
import org.apache.hadoop.examples.terasort.TeraSort;
import org.apache.hadoop.examples.terasort.TeraValidate;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/** {@code hadoop fs} and MapReduce jobs that write to a site. */
public class SiteJobsTest {
  private static final int LINES = 5_000;
  private static final int RECORDS = 20_000;

  private static FileSystem fs;

  @BeforeClass
  public static void write() throws IOException {
    fs = SiteContract.fileSystem();
    fs.delete(RunningSite.path("jobs"), true);
    for (String name : new String[] {"one file.txt", "100% sure.txt"}) {
      try (FSDataOutputStream out = fs.create(RunningSite.path("jobs/text/" + name))) {
        for (int at = 0; at < LINES; at++) {
          String line = "word" + at % 7 + " of many " + at % 2 + "\n";
          out.write(line.getBytes(StandardCharsets.UTF_8));
        }
      }
    }
  }

  @AfterClass
  public static void end() throws IOException {
    fs.delete(RunningSite.path("jobs"), true);
  }

  private static Configuration conf() throws IOException {
    Configuration conf = SiteContract.site().conf();
    conf.set("mapreduce.framework.name", "local");
    conf.set("hadoop.tmp.dir", SiteContract.site().scratch().resolve("tmp").toString());
    return conf;
  }

  private static void count(Configuration conf, Path output) throws Exception {
    // Several splits for each file.
    conf.setLong("mapreduce.input.fileinputformat.split.maxsize", 60_000);
    Job job = Job.getInstance(conf, output.getName());
    job.setJarByClass(WordCount.class);
    job.setMapperClass(WordCount.TokenizerMapper.class);
    job.setCombinerClass(WordCount.IntSumReducer.class);
    job.setReducerClass(WordCount.IntSumReducer.class);
    job.setNumReduceTasks(2);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(IntWritable.class);
    FileInputFormat.addInputPath(job, RunningSite.path("jobs/text"));
    FileOutputFormat.setOutputPath(job, output);
    assertTrue(job.waitForCompletion(false));
    Map<String, Integer> counts = new TreeMap<>();
    for (FileStatus part : fs.globStatus(new Path(output, "part-r-*"))) {
      try (BufferedReader in =
          new BufferedReader(
              new InputStreamReader(fs.open(part.getPath()), StandardCharsets.UTF_8))) {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
          String[] words = line.split("\t");
          counts.put(words[0], Integer.valueOf(words[1]));
        }
      }
    }
    assertEquals(11, counts.size());
    assertEquals(2 * LINES, (int) counts.get("many"));
    assertTrue(fs.exists(new Path(output, "_SUCCESS")));
    assertFalse(fs.exists(new Path(output, "_temporary")));
  }

  @Test
  public void wordsAreCountedAndCommittedByRenames() throws Exception {
    Configuration conf = conf();
    conf.setInt("mapreduce.fileoutputcommitter.algorithm.version", 1);
    count(conf, RunningSite.path("jobs/counted"));
  }

  @Test
  public void theManifestCommitterCommitsToo() throws Exception {
    Configuration conf = conf();
    conf.set(
        "mapreduce.outputcommitter.factory.scheme.ndn",
        "org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitterFactory");
    Path output = RunningSite.path("jobs/manifest");
    count(conf, output);
    assertTrue("it says what it did", fs.getFileStatus(new Path(output, "_SUCCESS")).getLen() > 0);
  }

  private static void run(Tool tool, String... arguments) throws Exception {
    Configuration conf = conf();
    // A job of two partitions, sampled from its input.
    conf.setInt("mapreduce.job.reduces", 2);
    conf.setInt("mapreduce.job.maps", 2);
    assertEquals(0, ToolRunner.run(conf, tool, arguments));
  }

  @Test
  public void recordsAreGeneratedSortedAndFoundToBeInOrder() throws Exception {
    String base = RunningSite.path("jobs/tera").toString();
    run(new TeraGen(), Integer.toString(RECORDS), base + "-generated");
    run(new TeraSort(), base + "-generated", base + "-sorted");
    run(new TeraValidate(), base + "-sorted", base + "-report");
    long bytes = 0;
    for (FileStatus part : fs.globStatus(new Path(base + "-sorted/part-*"))) {
      bytes += part.getLen();
    }
    assertEquals(100L * RECORDS, bytes);
  }

  @Test
  public void theShellPutsRenamesAndRemoves() throws Exception {
    java.nio.file.Path local = SiteContract.site().scratch().resolve("local file");
    java.nio.file.Files.writeString(local, "from here");
    String target = RunningSite.path("jobs/shell/a b").toString();
    shell("-mkdir", "-p", RunningSite.path("jobs/shell").toString());
    shell("-put", local.toUri().toString(), target);
    shell("-chmod", "600", target);
    shell("-mv", target, target + "2");
    assertEquals(9, fs.getFileStatus(new Path(target + "2")).getLen());
    assertEquals("rw-------", fs.getFileStatus(new Path(target + "2")).getPermission().toString());
    shell("-cp", target + "2", target);
    shell("-rm", "-r", "-skipTrash", RunningSite.path("jobs/shell").toString());
    assertFalse(fs.exists(RunningSite.path("jobs/shell")));
  }

  private static void shell(String... arguments) throws Exception {
    assertEquals(0, ToolRunner.run(SiteContract.site().conf(), new FsShell(), arguments));
  }
}
