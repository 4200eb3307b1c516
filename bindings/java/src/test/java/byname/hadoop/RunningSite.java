package byname.hadoop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.test.LambdaTestUtils;

/**
 * A real site, {@code byname site up}, with a user who may write everywhere in it. It can be taken
 * apart into the processes that a site of several machines has.
 */
final class RunningSite implements AutoCloseable {
  /** The authority that stands for the site. */
  static final String AUTHORITY = "site";

  /** The user whose key is used; nobody who runs the site. */
  static final String USER = "anna";

  private static final int STOP_SECONDS = 20;
  private static final Pattern KEY = Pattern.compile("key=SHA256:[A-Za-z0-9_-]+");

  private final Path folder;
  private final String name;
  private final Map<String, Process> processes = new LinkedHashMap<>();
  private String link;
  /** Where the catalog is, if it is in a database. */
  private String engine;
  /** What the forwarder is told besides its socket. */
  private final List<String> forwarderFlags = new ArrayList<>();

  private RunningSite(Path folder, String name) {
    this.folder = folder;
    this.name = name;
  }

  /** A site with so many disks and replicas, and groups for its user; the first is her own. */
  static RunningSite begin(String name, int disks, int replicas, List<String> groups)
      throws IOException {
    return begin(name, disks, "2G", replicas, groups);
  }

  /** The same with disks that have so much room each. */
  static RunningSite begin(
      String name, int disks, String capacity, int replicas, List<String> groups)
      throws IOException {
    RunningSite site = new RunningSite(Files.createTempDirectory("byname-site-test"), name);
    site.start(disks, capacity, replicas);
    site.addUser(USER, groups);
    site.operator("chmod", "777", name);
    return site;
  }

  /** One more user with a key directory of his own; the first group is that of his files. */
  void addUser(String user, List<String> groups) throws IOException {
    String certificate = run(user, "site", "join", link, "--user", user);
    Path file = Files.writeString(folder.resolve(user + ".cert"), certificate);
    List<String> add = new ArrayList<>(Arrays.asList("site", "user", "add", user));
    for (String group : groups) {
      add.addAll(Arrays.asList("--group", group));
    }
    add.addAll(Arrays.asList("--key", file.toString()));
    operator(add.toArray(new String[0]));
  }

  private void start(int disks, String capacity, int replicas) throws IOException {
    List<String> command = new ArrayList<>(Arrays.asList("site", "up"));
    for (int disk = 0; disk < disks; disk++) {
      command.add(folder.resolve("disk" + disk).toString());
    }
    command.addAll(
        Arrays.asList(
            "--name", name, "--capacity", capacity, "--replicas", Integer.toString(replicas),
            "--listen", endpoint()));
    ProcessBuilder builder = builder("head", command.toArray(new String[0]));
    builder.redirectError(folder.resolve("site.log").toFile());
    Process process = builder.start();
    processes.put("site", process);
    BufferedReader out =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    String printed = out.readLine();
    if (printed == null || !printed.startsWith("byname:")) {
      throw new IOException("no link: " + Files.readString(folder.resolve("site.log")));
    }
    Matcher key = KEY.matcher(printed);
    if (!key.find()) {
      throw new IOException("no key in " + printed);
    }
    link = "byname:" + name + "?via=" + endpoint() + "&" + key.group();
  }

  /** Goes on as a forwarder, a head and so many disks, each a process of its own. */
  void takeApart(int disks) throws IOException {
    kill("site");
    processes.remove("site");
    startPart("forwarder");
    startPart("head");
    startDisks(disks);
  }

  /**
   * The same with its catalog moved to a database and two heads over it, "head", which leads, and
   * "second".
   */
  void takeApart(int disks, Database database) throws Exception {
    kill("site");
    processes.remove("site");
    run("head", "site", "move-engine", name, database.engine());
    engine = database.engine();
    startPart("forwarder");
    startPart("head");
    LambdaTestUtils.await(STOP_SECONDS * 1000, 20, () -> leads("head"));
    startPart("second");
    startDisks(disks);
  }

  /** True if a head has said that it leads, since it was started. */
  boolean leads(String head) throws IOException {
    return Files.readString(folder.resolve(head + ".log")).contains("this head leads");
  }

  private void startDisks(int disks) throws IOException {
    for (int disk = 0; disk < disks; disk++) {
      startPart("disk" + disk);
    }
  }

  /**
   * Has the forwarder, once it is a part, listen at a port too, where it admits a user by the
   * certificate that she gave to the site, and nobody else. Returns where that is. Whoever comes
   * over UDP may be of another machine, also here.
   */
  String admitOverNetwork(String user, int port) {
    String endpoint = "udp://127.0.0.1:" + port;
    String allowed = "ndn:" + name + "/32=user/" + user + "=" + folder.resolve(user + ".cert");
    forwarderFlags.addAll(
        Arrays.asList("--listen", endpoint, "--allow-register", allowed));
    return endpoint;
  }

  /**
   * Has the forwarder, once it is a part, keep no packets: what a disk had when it died has to come
   * from another one.
   */
  void keepNothingInForwarder() {
    forwarderFlags.addAll(Arrays.asList("--cs-entries", "0"));
  }

  /** Starts a part again. It is there when it says so, or somewhat later. */
  void startPart(String part) throws IOException {
    String[] command;
    switch (part) {
      case "forwarder":
        List<String> forward = new ArrayList<>(Arrays.asList("forward", "--listen", endpoint()));
        forward.addAll(forwarderFlags);
        command = forward.toArray(new String[0]);
        break;
      case "head":
      case "second":
        command =
            engine == null
                ? connected("catalog", name)
                : connected("catalog", "--dir", folder.resolve(part).toString(), "--lease", "2s");
        break;
      default:
        command = connected("disk", folder.resolve(part).toString());
    }
    ProcessBuilder builder = builder("head", command);
    Path log = folder.resolve(part + ".log");
    if (engine != null) {
      builder.environment().put("BYNAME_ENGINE", engine);
    }
    builder.redirectErrorStream(true);
    builder.redirectOutput(ProcessBuilder.Redirect.to(log.toFile()));
    processes.put(part, builder.start());
  }

  /** Ends a part at once, as if its machine had lost power. */
  void kill(String part) {
    Process process = processes.get(part);
    process.destroyForcibly();
    try {
      process.waitFor(STOP_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private String endpoint() {
    return "unix://" + folder.resolve("socket");
  }

  private ProcessBuilder builder(String home, String... arguments) {
    List<String> command = new ArrayList<>();
    command.add(System.getProperty("byname.program"));
    command.addAll(Arrays.asList(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("BYNAME_HOME", folder.resolve(home).toString());
    builder.environment().put("USER", "operator");
    return builder;
  }

  private String run(String home, String... arguments) throws IOException {
    ProcessBuilder builder = builder(home, arguments);
    Path log = folder.resolve("command.log");
    builder.redirectError(log.toFile());
    Process command = builder.start();
    String out = new String(command.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    try {
      if (command.waitFor() != 0) {
        throw new IOException(Arrays.toString(arguments) + ": " + Files.readString(log));
      }
    } catch (InterruptedException e) {
      throw new IOException(e);
    }
    return out;
  }

  /** What a command of the operator prints. */
  String operator(String... arguments) throws IOException {
    return run("head", connected(arguments));
  }

  private String[] connected(String... arguments) {
    List<String> all = new ArrayList<>(Arrays.asList(arguments));
    all.addAll(Arrays.asList("--connect", endpoint()));
    return all.toArray(new String[0]);
  }

  Path scratch() {
    return folder;
  }

  /** A configuration of the user's. */
  Configuration conf() {
    return conf(USER);
  }

  /** A configuration with the keys of one of the users. */
  Configuration conf(String user) {
    Configuration conf = new Configuration();
    conf.set("fs.ndn.link." + AUTHORITY, link);
    conf.set("fs.ndn.home", folder.resolve(user).toString());
    conf.set("fs.ndn.connect", endpoint());
    conf.set("fs.AbstractFileSystem.ndn.impl", NdnFs.class.getName());
    return conf;
  }

  /** A URI in the site. */
  static org.apache.hadoop.fs.Path path(String path) {
    return new org.apache.hadoop.fs.Path("ndn", AUTHORITY, "/" + path);
  }

  @Override
  public void close() {
    processes.values().forEach(Process::destroy);
    try {
      for (Process process : processes.values()) {
        if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
          process.destroyForcibly();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    FileUtil.fullyDelete(folder.toFile());
  }
}
