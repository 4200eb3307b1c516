package byname.hadoop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileUtil;

/**
 * A PostgreSQL server of a test's own, in a temporary directory, on a Unix socket. It ends with the
 * test, also with one that is killed.
 */
final class Database implements AutoCloseable {
  private static final Path PROGRAMS = Path.of("/usr/lib/postgresql");
  /** The user that is the server's, where the tests are run by root: it refuses to be root. */
  private static final String SERVER_USER = "postgres";

  private final Path folder;
  /** Ends the server when its input ends. */
  private final Process keeper;

  private Database(Path folder, Process keeper) {
    this.folder = folder;
    this.keeper = keeper;
  }

  /** A new server with an empty database. */
  static Database begin() throws IOException {
    Path folder = Files.createTempDirectory("byname-pg");
    if (isRoot()) {
      run("chown", SERVER_USER, folder.toString());
    }
    String data = folder.resolve("data").toString();
    String stop = "read line; '" + program("pg_ctl") + "' -D '" + data + "' -m immediate stop";
    Process keeper =
        builder("sh", "-c", stop)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    Database database = new Database(folder, keeper);
    try {
      run(
          program("initdb"), "-D", data, "-A", "trust", "-U", "byname", "-E", "UTF8", "--locale=C",
          "--no-sync");
      String options =
          "-c listen_addresses= -c shared_buffers=32MB -c unix_socket_directories=" + folder;
      String log = folder.resolve("log").toString();
      run(program("pg_ctl"), "-D", data, "-l", log, "-w", "-o", options, "start");
      run(
          program("createdb"), "-h", folder.toString(), "-U", "byname", "-T", "template0", "site");
      return database;
    } catch (IOException e) {
      database.close();
      throw e;
    }
  }

  /** Where it is, as a site is told. */
  String engine() {
    return "postgres:host=" + folder + " user=byname dbname=site";
  }

  private static boolean isRoot() {
    return System.getProperty("user.name").equals("root");
  }

  // The latest of this machine's servers.
  private static String program(String name) throws IOException {
    try (Stream<Path> versions = Files.list(PROGRAMS)) {
      return versions
          .map(version -> version.resolve("bin").resolve(name))
          .filter(Files::exists)
          .sorted()
          .reduce((one, later) -> later)
          .orElseThrow(() -> new IOException("PostgreSQL: scripts/setup has it"))
          .toString();
    }
  }

  private static ProcessBuilder builder(String... words) {
    List<String> command = new ArrayList<>();
    if (isRoot()) {
      command.addAll(
          Arrays.asList(
              "setpriv", "--reuid", SERVER_USER, "--regid", SERVER_USER, "--init-groups", "--"));
    }
    command.addAll(Arrays.asList(words));
    return new ProcessBuilder(command).directory(new java.io.File("/"));
  }

  private static void run(String... words) throws IOException {
    // Into a file: the server inherits it, and a pipe would not end.
    Path log = Files.createTempFile("byname-pg", ".log");
    ProcessBuilder builder =
        words[0].equals("chown") ? new ProcessBuilder(words) : builder(words);
    builder.redirectErrorStream(true).redirectOutput(log.toFile());
    try {
      if (builder.start().waitFor() != 0) {
        throw new IOException(Arrays.toString(words) + ": " + Files.readString(log));
      }
    } catch (InterruptedException e) {
      throw new IOException(e);
    } finally {
      Files.delete(log);
    }
  }

  @Override
  public void close() {
    try {
      keeper.getOutputStream().close();
      keeper.waitFor();
    } catch (IOException e) {
      keeper.destroy();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    FileUtil.fullyDelete(folder.toFile());
  }
}
