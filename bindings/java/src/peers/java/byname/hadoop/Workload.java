package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.examples.WordCount;
import org.apache.hadoop.examples.terasort.TeraGen;
import org.apache.hadoop.examples.terasort.TeraSort;
import org.apache.hadoop.examples.terasort.TeraValidate;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.TestDFSIO;
import org.apache.hadoop.hdfs.NNBench;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** Hadoop's own jobs and benchmarks below one directory, and what they find, without times. */
final class Workload {
  private static final int RECORDS = 50_000;
  private static final int RECORD_BYTES = 100;
  private static final int LINES = 5_000;
  private static final int FILES = 4;
  private static final int MIB = 4;
  private static final int MAPS = 2;
  private static final int NAMES = 40;
  private static final String[] NAME_OPERATIONS = {
    "create_write", "open_read", "delete", "create_write", "rename"
  };
  private static final Pattern RAW_COUNT = Pattern.compile("l:(numOfExceptions|successfulFileOps)\t(\\d+)");
  private static final Pattern DFSIO = Pattern.compile("(Number of files|Total MBytes processed): *(\\d+)");

  private final Configuration conf;
  private final Path base;
  private final java.nio.file.Path scratch;
  private final FileSystem fs;
  private final Map<String, String> found = new TreeMap<>();

  /** Jobs with this configuration, whose own file system is the one of the directory. */
  Workload(Configuration conf, Path base, java.nio.file.Path scratch) throws IOException {
    this.conf = new Configuration(conf);
    this.base = base;
    this.scratch = scratch;
    fs = base.getFileSystem(conf);
    // Everywhere the same splits and partitions.
    this.conf.setInt("mapreduce.job.reduces", 2);
    this.conf.setInt("mapreduce.job.maps", MAPS);
    this.conf.setLong("mapreduce.input.fileinputformat.split.minsize", 1 << 20);
    this.conf.setLong("mapreduce.input.fileinputformat.split.maxsize", 1 << 20);
    this.conf.setInt("mapreduce.fileoutputcommitter.algorithm.version", 1);
    this.conf.set("test.build.data", new Path(base, "dfsio").toString());
  }

  /** What each job found. */
  Map<String, String> run() throws Exception {
    words();
    records();
    // TestDFSIO knows one file system alone.
    if (FileSystem.getDefaultUri(conf).getScheme().equals(fs.getScheme())) {
      files();
    }
    names();
    return found;
  }

  private void tool(Tool tool, String... arguments) throws Exception {
    int code = ToolRunner.run(new Configuration(conf), tool, arguments);
    assertEquals(tool.getClass().getSimpleName() + " " + String.join(" ", arguments), 0, code);
  }

  private void words() throws Exception {
    for (String name : new String[] {"one file.txt", "100% sure.txt"}) {
      try (FSDataOutputStream out = fs.create(new Path(base, "text/" + name))) {
        for (int at = 0; at < LINES; at++) {
          String line = "word" + at % 7 + " of many " + at % 2 + "\n";
          out.write(line.getBytes(StandardCharsets.UTF_8));
        }
      }
    }
    Path output = new Path(base, "counted");
    Job job = Job.getInstance(new Configuration(conf), "words");
    job.setJarByClass(WordCount.class);
    job.setMapperClass(WordCount.TokenizerMapper.class);
    job.setCombinerClass(WordCount.IntSumReducer.class);
    job.setReducerClass(WordCount.IntSumReducer.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(IntWritable.class);
    FileInputFormat.addInputPath(job, new Path(base, "text"));
    FileOutputFormat.setOutputPath(job, output);
    assertTrue("words", job.waitForCompletion(false));
    assertTrue(fs.exists(new Path(output, "_SUCCESS")));
    List<String> lines = lines("counted/part-r-*");
    Collections.sort(lines);
    found.put("words", lines.toString());
  }

  private void records() throws Exception {
    String generated = new Path(base, "generated").toString();
    String sorted = new Path(base, "sorted").toString();
    String report = new Path(base, "report").toString();
    tool(new TeraGen(), Integer.toString(RECORDS), generated);
    tool(new TeraSort(), generated, sorted);
    tool(new TeraValidate(), sorted, report);
    found.put("generated", digest("generated/part-*"));
    found.put("sorted", digest("sorted/part-*"));
    found.put("validated", lines("report/part-*").toString());
  }

  private void files() throws Exception {
    for (String what : new String[] {"-write", "-read"}) {
      java.nio.file.Path log = Files.createTempFile(scratch, "dfsio", ".log");
      tool(
          new TestDFSIO(),
          what, "-nrFiles", Integer.toString(FILES), "-size", MIB + "MB", "-resFile", log.toString());
      found.put("TestDFSIO " + what, matches(DFSIO, Files.readString(log)));
    }
    long bytes = 0;
    for (FileStatus file : fs.globStatus(new Path(base, "dfsio/io_data/*"))) {
      bytes += file.getLen();
    }
    found.put("TestDFSIO, octets", Long.toString(bytes));
    assertEquals((long) FILES * MIB << 20, bytes);
  }

  private void names() throws Exception {
    Path benchmark = new Path(base, "nnbench");
    for (String operation : NAME_OPERATIONS) {
      // Each writes there, and none removes it.
      fs.delete(new Path(benchmark, "output"), true);
      fs.delete(new Path(benchmark, "control"), true);
      tool(
          new NNBench(),
          "-operation", operation,
          "-maps", Integer.toString(MAPS),
          "-reduces", "1",
          "-startTime", Long.toString(System.currentTimeMillis() / 1000),
          "-blockSize", "1048576",
          "-bytesToWrite", "100",
          "-numberOfFiles", Integer.toString(NAMES),
          "-replicationFactorPerFile", "1",
          "-readFileAfterOpen", "true",
          "-baseDir", benchmark.toString());
      String counts = matches(RAW_COUNT, String.join("\n", lines("nnbench/output/part-*")));
      found.put("NNBench " + operation, counts);
      assertTrue(operation + ": " + counts, counts.contains("numOfExceptions 0"));
      assertTrue(operation + ": " + counts, counts.contains("FileOps " + MAPS * NAMES));
    }
  }

  private static String matches(Pattern pattern, String text) {
    List<String> all = new ArrayList<>();
    for (Matcher matcher = pattern.matcher(text); matcher.find(); ) {
      all.add(matcher.group(1) + " " + matcher.group(2));
    }
    assertTrue("counts are in " + text, !all.isEmpty());
    return all.toString();
  }

  private List<String> lines(String pattern) throws IOException {
    List<String> lines = new ArrayList<>();
    for (FileStatus part : fs.globStatus(new Path(base, pattern))) {
      try (BufferedReader in =
          new BufferedReader(
              new InputStreamReader(fs.open(part.getPath()), StandardCharsets.UTF_8))) {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
          lines.add(line);
        }
      }
    }
    return lines;
  }

  // Of all parts, one behind the other.
  private String digest(String pattern) throws IOException, NoSuchAlgorithmException {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    long bytes = 0;
    for (FileStatus part : fs.globStatus(new Path(base, pattern))) {
      byte[] content = new byte[Math.toIntExact(part.getLen())];
      try (org.apache.hadoop.fs.FSDataInputStream in = fs.open(part.getPath())) {
        in.readFully(0, content);
      }
      digest.update(content);
      bytes += content.length;
    }
    assertEquals(pattern, (long) RECORDS * RECORD_BYTES, bytes);
    return new java.math.BigInteger(1, digest.digest()).toString(16);
  }
}
