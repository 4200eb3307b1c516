package byname.hadoop;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;

/** A directory that a real {@code byname serve} publishes, until it is closed. */
final class Published implements AutoCloseable {
  /** The authority that stands for the published name. */
  static final String AUTHORITY = "lab";

  private static final int STOP_SECONDS = 20;

  private final Path folder;
  private final String name;
  private final int port;
  private Process server;
  private String link;

  private Published(Path folder, String name, int port) {
    this.folder = folder;
    this.name = name;
    this.port = port;
  }

  /** Publishes a new directory under a name. */
  static Published begin(String name) throws IOException {
    Path folder = Files.createTempDirectory("byname-hadoop-test");
    Published made = new Published(folder, name, freePort());
    Files.createDirectory(made.data());
    made.serve();
    return made;
  }

  static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  /** Where to write what is to be published. */
  Path data() {
    return folder.resolve("data");
  }

  /** A place that is not published. */
  Path scratch() {
    return folder;
  }

  Path write(String path, byte[] content) throws IOException {
    Path file = data().resolve(path);
    Files.createDirectories(file.getParent());
    return Files.write(file, content);
  }

  int port() {
    return port;
  }

  String link() {
    return link;
  }

  /** The link with another port in place of the server's. */
  String linkThrough(int other) {
    return link.replace(":" + port, ":" + other);
  }

  /** Starts the server; returns when it has printed its link. */
  void serve() throws IOException {
    File log = folder.resolve("serve.log").toFile();
    ProcessBuilder builder =
        new ProcessBuilder(
            System.getProperty("byname.program"), "serve", data().toString(), "--name", name,
            "--listen", "tcp://127.0.0.1:" + port, "--hidden", "--freshness", "100ms");
    builder.environment().put("BYNAME_HOME", folder.resolve("server").toString());
    builder.redirectError(ProcessBuilder.Redirect.appendTo(log));
    server = builder.start();
    BufferedReader out =
        new BufferedReader(
            new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8));
    link = out.readLine();
    if (link == null || !link.startsWith("byname:")) {
      throw new IOException("no link: " + Files.readString(log.toPath()));
    }
  }

  void kill() {
    server.destroyForcibly();
    try {
      server.waitFor(STOP_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** A configuration that knows nothing but the link. */
  Configuration conf() {
    return conf(link);
  }

  Configuration conf(String with) {
    Configuration conf = new Configuration();
    conf.set("fs.ndn.link." + AUTHORITY, with);
    conf.set("fs.ndn.home", folder.resolve("reader").toString());
    conf.set("fs.AbstractFileSystem.ndn.impl", NdnFs.class.getName());
    return conf;
  }

  /** A URI beneath the published name. */
  static org.apache.hadoop.fs.Path path(String path) {
    return new org.apache.hadoop.fs.Path("ndn", AUTHORITY, "/" + path);
  }

  @Override
  public void close() {
    kill();
    FileUtil.fullyDelete(folder.toFile());
  }
}
