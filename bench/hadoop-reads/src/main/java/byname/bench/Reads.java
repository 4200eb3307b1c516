package byname.bench;

import static org.apache.hadoop.fs.statistics.IOStatisticsLogging.ioStatisticsToString;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * One positioned read of a file that its servers have in memory, at a random place: of a published
 * file from the session's memory and without it, of HDFS without short circuit, and of a
 * {@code FileChannel}.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class Reads {
  private static final int FILE_BYTES = 32 << 20;
  private static final int START_MS = 20_000;

  @Param({"channel", "ndn-memory", "ndn", "hdfs"})
  public String source;

  @Param({"4096", "65536", "1048576"})
  public int bytes;

  private final Random random = new Random(7);
  private Path folder;
  private Process publisher;
  private MiniDFSCluster cluster;
  private FileSystem fs;
  private FSDataInputStream stream;
  private FileChannel channel;
  private byte[] array;
  private ByteBuffer buffer;

  @Setup(Level.Trial)
  public void open() throws Exception {
    folder = Files.createTempDirectory("byname-reads");
    array = new byte[bytes];
    buffer = ByteBuffer.wrap(array);
    byte[] content = new byte[FILE_BYTES];
    random.nextBytes(content);
    Path file = Files.createDirectories(folder.resolve("data")).resolve("file");
    Files.write(file, content);
    switch (source) {
      case "channel":
        channel = FileChannel.open(file);
        break;
      case "hdfs":
        openHdfs(content);
        break;
      default:
        openNamed(source.equals("ndn-memory"));
    }
  }

  private void openHdfs(byte[] content) throws IOException {
    Configuration conf = new Configuration();
    conf.setBoolean("dfs.client.read.shortcircuit", false);
    cluster = new MiniDFSCluster.Builder(conf, folder.resolve("hdfs").toFile()).build();
    cluster.waitActive();
    fs = cluster.getFileSystem();
    org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path("/file");
    try (FSDataOutputStream out = fs.create(path)) {
      out.write(content);
    }
    stream = fs.open(path);
  }

  private void openNamed(boolean isInMemory) throws Exception {
    Path socket = folder.resolve("socket");
    ProcessBuilder builder =
        new ProcessBuilder(
            System.getProperty("byname.program"), "up", folder.resolve("data").toString(),
            "--name", "/reads", "--listen", "unix://" + socket);
    builder.environment().put("BYNAME_HOME", folder.resolve("home").toString());
    builder.redirectError(ProcessBuilder.Redirect.DISCARD);
    publisher = builder.start();
    String link = publisher.inputReader().readLine();
    for (int waited = 0; !Files.exists(socket) && waited < START_MS; waited += 50) {
      Thread.sleep(50);
    }
    Configuration conf = new Configuration();
    conf.set("fs.ndn.link.reads", link);
    conf.set("fs.ndn.connect", "unix://" + socket);
    conf.set("fs.ndn.home", folder.resolve("reader").toString());
    conf.set("fs.ndn.cache", isInMemory ? "128m" : "none");
    conf.set("fs.ndn.readahead", "none");
    fs = FileSystem.newInstance(java.net.URI.create("ndn://reads/"), conf);
    stream = fs.open(new org.apache.hadoop.fs.Path("ndn://reads/file"));
    if (isInMemory) {
      for (int at = 0; at + bytes <= FILE_BYTES; at += bytes) {
        stream.readFully(at, array);
      }
    }
  }

  @Benchmark
  public int read() throws IOException {
    long at = (long) random.nextInt(FILE_BYTES / bytes) * bytes;
    if (channel != null) {
      buffer.clear();
      return channel.read(buffer, at);
    }
    stream.readFully(at, array, 0, bytes);
    return bytes;
  }

  @TearDown(Level.Trial)
  public void close() throws Exception {
    if (channel != null) {
      channel.close();
    }
    if (stream != null) {
      // Whether what should come from memory did.
      System.out.println(source + ": " + ioStatisticsToString(stream.getIOStatistics()));
      stream.close();
      fs.close();
    }
    if (cluster != null) {
      cluster.shutdown();
    }
    if (publisher != null) {
      publisher.destroy();
      publisher.waitFor();
    }
    FileUtil.fullyDelete(folder.toFile());
  }
}
