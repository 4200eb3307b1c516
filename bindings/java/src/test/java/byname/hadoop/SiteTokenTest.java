package byname.hadoop;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.security.TokenCache;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.DtUtilShell;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.util.ToolRunner;
import org.junit.BeforeClass;
import org.junit.Test;

/** Delegation tokens: who has one acts as the user who has lent the key in it, and nobody else. */
public class SiteTokenTest {
  private static final Path ROOT = RunningSite.path("");
  private static final Path BASE = RunningSite.path("tokens");
  private static final Text SERVICE = new Text("ndn://site");
  private static final long DAY_MS = 24 * 60 * 60 * 1000L;

  private static RunningSite site;

  @BeforeClass
  public static void begin() throws IOException {
    site = SiteContract.site();
    site.addUser("tokenbert", Arrays.asList("tokenberts"));
    SiteContract.fileSystem().mkdirs(BASE);
  }

  /** A configuration of a machine that has no keys. */
  private static Configuration keyless() {
    return site.conf("nobody");
  }

  private static Token<?> token(Configuration conf) throws IOException {
    try (FileSystem fs = FileSystem.newInstance(ROOT.toUri(), conf)) {
      return fs.getDelegationToken("yarn");
    }
  }

  private static <T> T as(
      String user, Token<?> token, Configuration conf, Action<T> action) throws Exception {
    UserGroupInformation who = UserGroupInformation.createRemoteUser(user);
    if (token != null) {
      who.addToken(token);
    }
    return who.doAs(
        (PrivilegedExceptionAction<T>)
            () -> {
              try (FileSystem fs = FileSystem.newInstance(ROOT.toUri(), conf)) {
                return action.of(fs);
              }
            });
  }

  private interface Action<T> {
    T of(FileSystem fs) throws Exception;
  }

  private static String write(FileSystem fs, Path path) throws IOException {
    try (FSDataOutputStream out = fs.create(path)) {
      out.write("octets".getBytes(StandardCharsets.UTF_8));
    }
    return fs.getFileStatus(path).getOwner();
  }

  private static NdnTokenIdentifier identifier(Token<?> token) throws IOException {
    return (NdnTokenIdentifier) token.decodeIdentifier();
  }

  @Test
  public void whoHasOnlyTheTokenWritesAsTheSubmitter() throws Exception {
    Token<?> token = token(site.conf());
    Path path = new Path(BASE, "by token");
    assertEquals(RunningSite.USER, as("worker", token, keyless(), fs -> write(fs, path)));
    Exception refused =
        assertThrows(
            AccessControlException.class,
            () -> as("worker", null, keyless(), fs -> write(fs, new Path(BASE, "none"))));
    assertTrue(refused.getMessage(), refused.getMessage().contains("read-only"));
  }

  @Test
  public void aTokenSaysWhoseItIsAndShowsNoKey() throws Exception {
    long before = System.currentTimeMillis();
    Token<?> token = token(site.conf());
    assertEquals(SERVICE, token.getService());
    NdnTokenIdentifier identifier = identifier(token);
    assertEquals(RunningSite.USER, identifier.getOwner().toString());
    assertEquals(RunningSite.USER, identifier.getUser().getUserName());
    assertEquals("yarn", identifier.getRenewer().toString());
    assertEquals("/hadoop/site", identifier.getSite());
    assertTrue(identifier.getMaxDate() >= before + DAY_MS);
    assertTrue(identifier.getMaxDate() <= System.currentTimeMillis() + DAY_MS);
    String loan = new String(token.getPassword(), StandardCharsets.UTF_8);
    String[] fields = loan.split(" ");
    String printed = token + " " + identifier;
    assertFalse(printed, printed.contains(fields[6]));
    assertTrue(printed, printed.contains(identifier.getKey()));
    // A key of its own, not that of the user.
    assertTrue(site.operator("site", "user", "loans", "--as", RunningSite.USER)
        .contains(identifier.getKey()));
  }

  @Test
  public void theTokenCountsAndNoOtherKeyDoes() throws Exception {
    Token<?> token = token(site.conf());
    Path path = new Path(BASE, "whose");
    String owner = as("tokenbert", token, site.conf("tokenbert"), fs -> write(fs, path));
    assertEquals(RunningSite.USER, owner);
    Configuration wanted = site.conf("tokenbert");
    wanted.set("fs.ndn.identity", "tokenbert");
    Exception refused =
        assertThrows(
            AccessControlException.class,
            () -> as("tokenbert", token, wanted, fs -> write(fs, path)));
    assertTrue(refused.getMessage(), refused.getMessage().contains("anna's, and not tokenbert's"));
  }

  /** The key in the link is the site that the user means, whatever the token says. */
  @Test
  public void aTokenIsRefusedWhereTheLinkSaysAnotherKey() throws Exception {
    Token<?> token = token(site.conf());
    Configuration other = keyless();
    String key = "fs.ndn.link." + RunningSite.AUTHORITY;
    String link = other.get(key);
    int at = link.indexOf("SHA256:") + 7;
    char letter = link.charAt(at) == 'A' ? 'B' : 'A';
    other.set(key, link.substring(0, at) + letter + link.substring(at + 1));
    Exception refused =
        assertThrows(
            AccessControlException.class,
            () -> as("worker", token, other, fs -> write(fs, new Path(BASE, "elsewhere"))));
    assertTrue(refused.getMessage(), refused.getMessage().contains("and the link says"));
  }

  /** HADOOP_USER_NAME makes such users: no owner and no right comes of the name. */
  @Test
  public void aForgedNameChangesNeitherOwnerNorRights() throws Exception {
    Token<?> token = token(site.conf());
    Path hers = RunningSite.path("of tokenbert");
    as(
        "x",
        null,
        site.conf("tokenbert"),
        fs -> {
          fs.mkdirs(hers, new FsPermission((short) 0700));
          fs.setPermission(hers, new FsPermission((short) 0700));
          return null;
        });
    for (String forged : new String[] {"tokenbert", "operator", "root"}) {
      Path path = new Path(BASE, "forged " + forged);
      assertEquals(RunningSite.USER, as(forged, token, keyless(), fs -> write(fs, path)));
      assertThrows(
          AccessControlException.class,
          () -> as(forged, token, keyless(), fs -> write(fs, new Path(hers, forged))));
      assertThrows(
          AccessControlException.class,
          () -> as(forged, null, keyless(), fs -> write(fs, new Path(BASE, "no token"))));
    }
    assertTrue(as("x", null, site.conf("tokenbert"), fs -> fs.delete(hers, true)));
  }

  @Test
  public void aTokenIsRenewedByNameOnlyAndEndsWhenItIsCancelled() throws Exception {
    Token<?> token = token(site.conf());
    Configuration conf = keyless();
    assertEquals(identifier(token).getMaxDate(), token.renew(conf));
    assertTrue(token.isManaged());
    // A file system that is open is told, too.
    as(
        "worker",
        token,
        conf,
        fs -> {
          write(fs, new Path(BASE, "before"));
          token.cancel(conf);
          IOException late =
              assertThrows(IOException.class, () -> write(fs, new Path(BASE, "late")));
          assertTrue(late.getMessage(), late.getMessage().contains("does not know the key"));
          return null;
        });
    assertThrows(IOException.class, () -> token.renew(conf));
    assertFalse(
        site.operator("site", "user", "loans", "--as", RunningSite.USER)
            .contains(identifier(token).getKey()));
  }

  @Test
  public void aTokenLendsNone() throws Exception {
    Token<?> token = token(site.conf());
    Token<?> again = as("worker", token, keyless(), fs -> fs.getDelegationToken("other"));
    assertArrayEquals(token.getIdentifier(), again.getIdentifier());
    String service = as("w", token, keyless(), FileSystem::getCanonicalServiceName);
    assertEquals(SERVICE.toString(), service);
    assertNull(as("w", null, keyless(), FileSystem::getCanonicalServiceName));
    assertNull(as("w", null, keyless(), fs -> fs.getDelegationToken("yarn")));
  }

  private static void refused(Token<?> token, Configuration conf, String... why) {
    Exception refused =
        assertThrows(
            AccessControlException.class,
            () -> as("worker", token, conf, fs -> write(fs, new Path(BASE, "refused"))));
    for (String part : why) {
      assertTrue(refused.getMessage(), refused.getMessage().contains(part));
    }
    assertTrue(refused.getMessage(), refused.getMessage().contains("for ndn://site"));
    String key = new String(token.getPassword(), StandardCharsets.UTF_8);
    assertFalse(refused.getMessage(), key.length() > 9 && refused.getMessage().contains(key));
  }

  private static Token<?> token(byte[] identifier, byte[] password) {
    return new Token<>(identifier, password, NdnTokenIdentifier.KIND, SERVICE);
  }

  @Test
  public void whatWasAlteredOrCutIsRefused() throws Exception {
    Token<?> token = token(site.conf());
    byte[] ours = token.getIdentifier();
    byte[] key = token.getPassword();
    for (int octets : new int[] {0, 1, 11, key.length / 2, key.length - 1}) {
      refused(token(ours, Arrays.copyOf(key, octets)), keyless(), "lent key");
    }
    for (int octets : new int[] {0, 1, ours.length / 2, ours.length - 1}) {
      refused(token(Arrays.copyOf(ours, octets), key), keyless(), "altered, or is not whole");
    }
    byte[] changed = key.clone();
    changed[key.length / 2] ^= 1;
    refused(token(ours, changed), keyless(), "anna at /hadoop/site", "altered");
    NdnTokenIdentifier real = identifier(token);
    NdnTokenIdentifier forged =
        new NdnTokenIdentifier("operator", "yarn", real.getSite(), real.getKey());
    forged.setMaxDate(real.getMaxDate());
    refused(token(forged.getBytes(), key), keyless(), "operator at", "altered", "that of anna");
  }

  @Test
  public void aTokenForAnotherSiteIsRefused() throws Exception {
    Configuration elsewhere = keyless();
    String link = elsewhere.get("fs.ndn.link.site");
    elsewhere.set("fs.ndn.link.site", link.replace("/hadoop/site", "/hadoop/elsewhere"));
    refused(token(site.conf()), elsewhere, "anna at /hadoop/site", "/hadoop/elsewhere");
  }

  @Test
  public void aTokenThatIsOverIsRefused() throws Exception {
    Configuration brief = site.conf();
    brief.set("fs.ndn.token.lifetime", "1s");
    Token<?> token = token(brief);
    long end = identifier(token).getMaxDate();
    while (System.currentTimeMillis() <= end) {
      Thread.sleep(50);
    }
    refused(token, keyless(), "anna at /hadoop/site", "was lent until");
    assertThrows(AccessControlException.class, () -> token.renew(keyless()));
    token.cancel(keyless());
    brief.set("fs.ndn.token.lifetime", "8d");
    assertThrows(IOException.class, () -> token(brief));
  }

  @Test
  public void aFileCarriesItWhereThereIsNoKerberos() throws Exception {
    java.nio.file.Path file = site.scratch().resolve("token-file");
    Configuration conf = site.conf();
    String[] get = {"get", "ndn://site", file.toString()};
    assertEquals(0, ToolRunner.run(conf, new DtUtilShell(), get));
    Credentials read = Credentials.readTokenStorageFile(file.toFile(), conf);
    Token<?> token = read.getToken(SERVICE);
    Path path = new Path(BASE, "by file");
    assertEquals(RunningSite.USER, as("worker", token, keyless(), fs -> write(fs, path)));
    String[] cancel = {"cancel", "-alias", SERVICE.toString(), file.toString()};
    assertEquals(0, ToolRunner.run(conf, new DtUtilShell(), cancel));
    assertThrows(
        IOException.class,
        () -> as("worker", token, keyless(), fs -> write(fs, new Path(BASE, "late file"))));
  }

  private static ProcessBuilder program(Class<?> main, String... arguments) throws IOException {
    java.nio.file.Path folder = Files.createDirectories(site.scratch().resolve("etc"));
    Configuration core = new Configuration(false);
    for (String key : new String[] {"fs.ndn.link.site", "fs.ndn.connect"}) {
      core.set(key, site.conf().get(key));
    }
    try (OutputStream out = Files.newOutputStream(folder.resolve("core-site.xml"))) {
      core.writeXml(out);
    }
    List<String> command = new ArrayList<>();
    command.add(Paths.get(System.getProperty("java.home"), "bin", "java").toString());
    String classes = folder + ":" + System.getProperty("surefire.test.class.path");
    command.addAll(Arrays.asList("-Xmx512m", "-cp", classes, main.getName()));
    command.addAll(Arrays.asList(arguments));
    ProcessBuilder program = new ProcessBuilder(command).redirectErrorStream(true);
    program.redirectOutput(site.scratch().resolve("program.log").toFile());
    program.environment().put("BYNAME_HOME", site.scratch().resolve("machine").toString());
    program.environment().put("HADOOP_USER_NAME", "operator");
    return program;
  }

  private static int run(ProcessBuilder program, String... said) throws Exception {
    int outcome = program.start().waitFor();
    String log = Files.readString(site.scratch().resolve("program.log"));
    for (String part : said) {
      assertTrue(log, log.contains(part));
    }
    return outcome;
  }

  /** As users do it: processes of their own, the token in a file, a name that is not true. */
  @Test
  public void aProgramHasItByTheEnvironment() throws Exception {
    java.nio.file.Path file = site.scratch().resolve("job.tokens");
    ProcessBuilder get =
        program(
            DtUtilShell.class,
            "-D", "fs.permissions.umask-mode=077",
            "-D", "fs.ndn.home=" + site.conf().get("fs.ndn.home"),
            "get", "ndn://site", file.toString());
    assertEquals(0, run(get));
    String mode = PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
    assertEquals("rw-------", mode);
    java.nio.file.Path local = Files.writeString(site.scratch().resolve("put"), "octets");
    Path path = new Path(BASE, "by environment");
    ProcessBuilder put =
        program(FsShell.class, "-put", "-f", local.toUri().toString(), path.toString());
    assertFalse("without the token", run(put, "read-only") == 0);
    put.environment().put("HADOOP_TOKEN_FILE_LOCATION", file.toString());
    assertEquals(0, run(put));
    FileStatus made = SiteContract.fileSystem().getFileStatus(path);
    assertEquals(RunningSite.USER, made.getOwner());
  }

  /** With security on Hadoop fetches them by itself: one for each link, and once. */
  @Test
  public void jobsCollectTokensBySecurity() throws Exception {
    Configuration conf = site.conf();
    conf.set("hadoop.security.authentication", "kerberos");
    conf.set("yarn.resourcemanager.principal", "rm/localhost@EXAMPLE");
    conf.set("hadoop.security.auth_to_local", "RULE:[2:$1](rm)s/.*/rm/\nDEFAULT");
    UserGroupInformation.setConfiguration(conf);
    try {
      Credentials collected = new Credentials();
      UserGroupInformation.createRemoteUser("anna")
          .doAs(
              (PrivilegedExceptionAction<Void>)
                  () -> {
                    Path[] paths = {new Path(BASE, "a"), new Path(BASE, "b")};
                    TokenCache.obtainTokensForNamenodes(collected, paths, conf);
                    return null;
                  });
      assertEquals(1, collected.numberOfTokens());
      Token<?> token = collected.getToken(SERVICE);
      assertNotNull(token);
      assertEquals("rm", identifier(token).getRenewer().toString());
    } finally {
      UserGroupInformation.setConfiguration(new Configuration());
    }
  }
}
