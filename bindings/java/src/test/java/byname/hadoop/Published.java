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
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;

/** A directory that a real {@code byname serve} publishes, until it is closed. */
final class Published implements AutoCloseable {
  /** The authority that stands for the published name. */
  static final String AUTHORITY = "lab";

  private static final int STOP_SECONDS = 20;
  private static final Pattern KEY = Pattern.compile("key=SHA256:[A-Za-z0-9_-]+");

  private final Path folder;
  private final String name;
  private final String endpoint;
  private Process server;
  private String link;

  private Published(Path folder, String name, String endpoint) throws IOException {
    this.folder = folder;
    this.name = name;
    this.endpoint = endpoint;
    Files.createDirectory(data());
    serve();
  }

  /** Publishes a new directory under a name, at a Unix socket. */
  static Published begin(String name) throws IOException {
    Path folder = Files.createTempDirectory("byname-hadoop-test");
    return new Published(folder, name, "unix://" + folder.resolve("socket"));
  }

  /** The same at a port. */
  static Published begin(String name, int port) throws IOException {
    Path folder = Files.createTempDirectory("byname-hadoop-test");
    return new Published(folder, name, "tcp://127.0.0.1:" + port);
  }

  /** A port that nobody listens at. */
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

  String endpoint() {
    return endpoint;
  }

  String link() {
    return link;
  }

  /** The link with a port in place of the server's endpoint. */
  String linkThrough(int port) {
    return link.replace(endpoint, "tcp://127.0.0.1:" + port);
  }

  /** Starts the server; returns when it has printed its link. */
  void serve() throws IOException {
    File log = folder.resolve("serve.log").toFile();
    ProcessBuilder builder =
        new ProcessBuilder(
            System.getProperty("byname.program"), "serve", data().toString(), "--name", name,
            "--listen", endpoint, "--hidden", "--freshness", "100ms",
            "--checksums", "crc32c");
    builder.environment().put("BYNAME_HOME", folder.resolve("server").toString());
    builder.redirectError(ProcessBuilder.Redirect.appendTo(log));
    server = builder.start();
    BufferedReader out =
        new BufferedReader(
            new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8));
    String printed = out.readLine();
    if (printed == null || !printed.startsWith("byname:")) {
      throw new IOException("no link: " + Files.readString(log.toPath()));
    }
    Matcher key = KEY.matcher(printed);
    if (!key.find()) {
      throw new IOException("no key in " + printed);
    }
    link = "byname:" + name + "?via=" + endpoint + "&" + key.group();
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
