package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.PrivilegedExceptionAction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.examples.WordCount;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.v2.MiniMRYarnCluster;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.DtUtilShell;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.util.ToolRunner;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/**
 * A job on YARN whose containers have a delegation token, and no key directory: what it writes is
 * the submitter's, whatever Hadoop calls the user.
 */
public class PeerTokensTest {
  private static final String MODULES = "--add-opens=java.base/java.lang=ALL-UNNAMED";
  private static final int LINES = 2_000;

  private static RunningSite site;
  private static java.nio.file.Path scratch;
  private static java.nio.file.Path machines;
  private static MiniMRYarnCluster cluster;
  private static Configuration client;

  @BeforeClass
  public static void begin() throws Exception {
    site = SiteContract.site();
    scratch = Files.createDirectories(site.scratch().resolve("token-jobs"));
    try (FileSystem fs = SiteContract.newFileSystem();
        FSDataOutputStream out = fs.create(RunningSite.path("token-text/a"))) {
      for (int at = 0; at < LINES; at++) {
        out.write(("word" + at % 7 + " of many\n").getBytes(StandardCharsets.UTF_8));
      }
    }
    // Links, and nothing of keys.
    machines = CoreSite.write(site.conf(), Keys.LINK_PREFIX, Keys.CONNECT);
    Configuration conf = new Configuration();
    conf.set("yarn.app.mapreduce.am.command-opts", "-Xmx384m " + MODULES);
    conf.set("mapreduce.map.java.opts", "-Xmx256m " + MODULES);
    conf.set("mapreduce.reduce.java.opts", "-Xmx256m " + MODULES);
    conf.setFloat("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", 99);
    conf.setInt("mapreduce.task.io.sort.mb", 32);
    conf.setInt("mapreduce.map.maxattempts", 1);
    conf.setInt("mapreduce.reduce.maxattempts", 1);
    conf.setInt("mapreduce.am.max-attempts", 1);
    cluster = new MiniMRYarnCluster("tokens", 1);
    cluster.init(conf);
    cluster.start();
    client = new Configuration(cluster.getConfig());
    assertEquals("no key directory", null, client.get(Keys.HOME));
  }

  @AfterClass
  public static void end() throws Exception {
    if (cluster != null) {
      cluster.close();
    }
    Files.deleteIfExists(machines);
    FileSystem.closeAll();
  }

  private static Job job(Configuration conf, Path output) throws Exception {
    Job job = Job.getInstance(conf, output.getName());
    job.setJarByClass(WordCount.class);
    job.setMapperClass(WordCount.TokenizerMapper.class);
    job.setReducerClass(WordCount.IntSumReducer.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(IntWritable.class);
    FileInputFormat.addInputPath(job, RunningSite.path("token-text"));
    FileOutputFormat.setOutputPath(job, output);
    return job;
  }

  private static Token<?> fetch(java.nio.file.Path file) throws Exception {
    String[] get = {"get", "ndn://site", file.toString()};
    assertEquals(0, ToolRunner.run(site.conf(), new DtUtilShell(), get));
    Credentials read = Credentials.readTokenStorageFile(file.toFile(), new Configuration());
    return read.getToken(new Text("ndn://site"));
  }

  @Test
  public void containersThatHaveOnlyTheTokenWriteAsTheSubmitter() throws Exception {
    java.nio.file.Path file = scratch.resolve("tokens");
    Token<?> token = fetch(file);
    Configuration conf = new Configuration(client);
    conf.set("mapreduce.job.credentials.binary", file.toUri().toString());
    // Another user than the one at the site: whoever runs this, who has no key there.
    UserGroupInformation submitter =
        UserGroupInformation.createRemoteUser(System.getProperty("user.name"));
    submitter.addToken(token);
    Path output = RunningSite.path("token-counts");
    assertTrue(submitter.doAs(run(conf, output)));
    try (FileSystem fs = SiteContract.newFileSystem()) {
      FileStatus[] made = fs.listStatus(output);
      assertEquals("a part and _SUCCESS", 2, made.length);
      for (FileStatus one : made) {
        assertEquals(RunningSite.USER, one.getOwner());
      }
    }
    // Cancelled, it is of no use to a job that is submitted with it.
    Path late = RunningSite.path("token-late");
    Job job = submitter.doAs((PrivilegedExceptionAction<Job>) () -> job(conf, late));
    token.cancel(client);
    boolean isDone;
    try {
      PrivilegedExceptionAction<Boolean> wait = () -> job.waitForCompletion(false);
      isDone = submitter.doAs(wait);
    } catch (java.io.IOException e) {
      isDone = false;
    }
    assertFalse(isDone);
    try (FileSystem fs = SiteContract.newFileSystem()) {
      assertFalse(fs.exists(new Path(late, "_SUCCESS")));
    }
  }

  private static PrivilegedExceptionAction<Boolean> run(Configuration conf, Path output) {
    return () -> job(conf, output).waitForCompletion(false);
  }
}
