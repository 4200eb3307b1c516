package byname.hadoop;

import static org.junit.Assert.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.security.PrivilegedExceptionAction;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.mapreduce.v2.MiniMRYarnCluster;
import org.apache.hadoop.security.UserGroupInformation;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/**
 * Hadoop's jobs and benchmarks find at a site what they find on the local file system and on HDFS,
 * with a runner in one process and on YARN. Too long for CI; {@code scripts/test-hadoop-jobs}.
 */
public class PeerJobsTest {
  private static final String MODULES = "--add-opens=java.base/java.lang=ALL-UNNAMED";

  private static RunningSite site;
  private static java.nio.file.Path scratch;
  private static Map<String, String> expected;

  /** Everything that is compared with: on the local file system, in one process. */
  @BeforeClass
  public static void begin() throws Exception {
    site = SiteContract.site();
    scratch = Files.createDirectories(site.scratch().resolve("jobs"));
    expected = run(local(new Configuration()), localBase("local"));
  }

  @AfterClass
  public static void end() throws IOException {
    FileSystem.closeAll();
  }

  private static Configuration local(Configuration conf) {
    conf.set("mapreduce.framework.name", "local");
    conf.set("hadoop.tmp.dir", scratch.resolve("tmp").toString());
    return conf;
  }

  private static Path localBase(String name) {
    return new Path(scratch.resolve(name).toUri());
  }

  private static Map<String, String> run(Configuration conf, Path base) throws Exception {
    return new Workload(conf, base, scratch).run();
  }

  @Test
  public void jobsInOneProcessFindAtASiteWhatTheyFindLocally() throws Exception {
    Configuration conf = site.conf();
    conf.set(FileSystem.FS_DEFAULT_NAME_KEY, RunningSite.path("").toString());
    assertEquals(expected, run(local(conf), RunningSite.path("one-process")));
  }

  @Test
  public void hdfsHasTheSame() throws Exception {
    Configuration conf = new Configuration();
    conf.setBoolean("dfs.namenode.redundancy.considerLoad", false);
    java.io.File folder = scratch.resolve("hdfs").toFile();
    try (MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(conf, folder).numDataNodes(2).build()) {
      Configuration client = new Configuration(cluster.getConfiguration(0));
      Path base = new Path(cluster.getFileSystem().getUri().toString() + "/jobs");
      assertEquals(expected, run(local(client), base));
    }
  }

  /**
   * Two machines run the tasks. The site is the cluster's own file system, too, with the staging
   * directories and the history of jobs, which is flushed while it is written.
   */
  @Test
  public void jobsOnYarnFindAtASiteWhatTheyFindLocally() throws Exception {
    Configuration conf = site.conf();
    conf.set("yarn.app.mapreduce.am.command-opts", "-Xmx384m " + MODULES);
    conf.set("mapreduce.map.java.opts", "-Xmx256m " + MODULES);
    conf.set("mapreduce.reduce.java.opts", "-Xmx256m " + MODULES);
    conf.setFloat("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", 99);
    conf.setInt("mapreduce.task.io.sort.mb", 32);
    java.nio.file.Path machines = CoreSite.write(site.conf(), "fs.ndn.");
    conf.set(FileSystem.FS_DEFAULT_NAME_KEY, RunningSite.path("").toString());
    try (MiniMRYarnCluster cluster = new MiniMRYarnCluster("jobs", 2)) {
      cluster.init(conf);
      cluster.start();
      Configuration client = new Configuration(cluster.getConfig());
      // Staging directories have to be of whom Hadoop calls the user: the one at the site.
      UserGroupInformation anna = UserGroupInformation.createRemoteUser("anna");
      PrivilegedExceptionAction<Map<String, String>> jobs =
          () -> run(client, RunningSite.path("yarn"));
      assertEquals(expected, anna.doAs(jobs));
    } finally {
      Files.delete(machines);
    }
  }
}
