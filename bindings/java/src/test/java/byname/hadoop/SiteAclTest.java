package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.AclStatus;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.test.LambdaTestUtils;
import org.apache.hadoop.util.ToolRunner;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/** Access control lists of a site as Hadoop's programs set and show them, and as its head obeys. */
public class SiteAclTest {
  private static final String OTHER = "bert";
  private static final Path BASE = RunningSite.path("lists");

  private static FileSystem fs;
  private static FileSystem of;

  @BeforeClass
  public static void begin() throws IOException {
    fs = SiteContract.fileSystem();
    SiteContract.site().addUser(OTHER, List.of("visitors"));
    of = openAs(OTHER);
    fs.delete(BASE, true);
    fs.mkdirs(BASE);
  }

  @AfterClass
  public static void end() throws IOException {
    of.close();
  }

  private static FileSystem openAs(String user) throws IOException {
    return FileSystem.newInstance(BASE.toUri(), SiteContract.site().conf(user));
  }

  private static Path directory(String name) throws IOException {
    Path made = new Path(BASE, name);
    fs.mkdirs(made);
    fs.setPermission(made, new FsPermission((short) 0750));
    return made;
  }

  private static List<AclEntry> entries(String text) {
    return AclEntry.parseAclSpec(text, true);
  }

  private static String shown(Path path) throws IOException {
    AclStatus status = fs.getAclStatus(path);
    return status.getPermission() + " " + status.getEntries();
  }

  @Test
  public void listsAreChangedEntryByEntryAndAsAWhole() throws Exception {
    Path path = directory("entries");
    assertEquals("rwxr-x--- []", shown(path));
    fs.modifyAclEntries(path, entries("user:bert:rwx,group:cms:r--,default:user:bert:r-x"));
    assertEquals(
        "rwxrwx--- [user:bert:rwx, group::r-x, group:cms:r--, default:user::rwx, "
            + "default:user:bert:r-x, default:group::r-x, default:mask::r-x, default:other::---]",
        shown(path));
    fs.removeAclEntries(path, AclEntry.parseAclSpec("group:cms,default:user:bert", false));
    fs.removeDefaultAcl(path);
    assertEquals("rwxrwx--- [user:bert:rwx, group::r-x]", shown(path));
    fs.setAcl(path, entries("user::rwx,user:carl:r--,group::r--,other::--x"));
    assertEquals("rwxr----x [user:carl:r--, group::r--]", shown(path));
    fs.setAcl(path, entries("default:user::rwx,default:group::---,default:other::---"));
    assertEquals(
        "rwxr----x [user:carl:r--, group::r--, default:user::rwx, default:group::---, "
            + "default:other::---]",
        shown(path));
    fs.removeAcl(path);
    assertEquals("rwxr----x []", shown(path));
    assertTrue(fs.hasPathCapability(path, CommonPathCapabilities.FS_ACLS));
    LambdaTestUtils.intercept(
        IOException.class, () -> fs.modifyAclEntries(new Path(path, "none"), entries("user:b:r--")));
  }

  @Test
  public void theShellSetsAndShowsThem() throws Exception {
    Path path = directory("shell");
    assertEquals(0, shell("-setfacl", "-m", "user:bert:rwx,default:user:bert:r-x", path).code);
    Shown shown = shell("-getfacl", path);
    assertEquals(0, shown.code);
    for (String line :
        new String[] {"# owner: anna", "user:bert:rwx", "group::r-x", "mask::rwx", "other::---",
          "default:user:bert:r-x", "default:mask::r-x"}) {
      assertTrue(line + " in " + shown.text, Arrays.asList(shown.text.split("\n")).contains(line));
    }
    // What is made there begins with the default list.
    Path file = new Path(path, "file");
    try (FSDataOutputStream out = fs.create(file)) {
      out.write(1);
    }
    assertTrue(shown(file), shown(file).contains("user:bert:r-x"));
    String told = SiteContract.site().operator("getfacl", "/hadoop/site/lists/shell");
    assertTrue(told, told.contains("user:bert:rwx"));
    assertEquals(0, shell("-setfacl", "-x", "user:bert", path).code);
    assertEquals(0, shell("-setfacl", "-k", path).code);
    assertEquals(0, shell("-setfacl", "-b", path).code);
    assertFalse(shell("-getfacl", path).text.contains("bert"));
    assertTrue(shell("-ls", path).text.contains("rw-r-----+"));
    assertFalse(shell("-ls", path.getParent()).text.matches("(?s).*\\+ .*shell\n.*"));
    assertEquals(
        0, shell("-setfacl", "--set", "user::rwx,user:bert:r--,group::---,other::---", path).code);
    assertTrue(shell("-getfacl", path).text.contains("user:bert:r--"));
  }

  private static final class Shown {
    private final int code;
    private final String text;

    Shown(int code, String text) {
      this.code = code;
      this.text = text;
    }
  }

  private static Shown shell(Object... arguments) throws Exception {
    PrintStream out = System.out;
    ByteArrayOutputStream octets = new ByteArrayOutputStream();
    System.setOut(new PrintStream(octets, true, StandardCharsets.UTF_8));
    try {
      String[] texts = Arrays.stream(arguments).map(Object::toString).toArray(String[]::new);
      int code = ToolRunner.run(SiteContract.site().conf(), new FsShell(), texts);
      return new Shown(code, octets.toString(StandardCharsets.UTF_8));
    } finally {
      System.setOut(out);
    }
  }

  @Test
  public void theHeadObeysThemWhateverHadoopCallsTheUser() throws Exception {
    Path path = directory("obeyed");
    Path file = new Path(path, "by another");
    Configuration conf = SiteContract.site().conf(OTHER);
    UserGroupInformation forged = UserGroupInformation.createRemoteUser(RunningSite.USER);
    PrivilegedExceptionAction<Void> attempt =
        () -> {
          try (FileSystem named = FileSystem.newInstance(BASE.toUri(), conf)) {
            named.create(file).close();
            return null;
          }
        };
    // HADOOP_USER_NAME makes such a user.
    LambdaTestUtils.intercept(AccessControlException.class, () -> forged.doAs(attempt));
    LambdaTestUtils.intercept(AccessControlException.class, () -> of.create(file).close());
    fs.modifyAclEntries(path, entries("user:bert:rwx"));
    forged.doAs(attempt);
    assertEquals(OTHER, fs.getFileStatus(file).getOwner());
    fs.removeAcl(path);
    LambdaTestUtils.intercept(AccessControlException.class, () -> of.delete(file, false));
    // Whose it is may give it away, a visitor may not.
    LambdaTestUtils.intercept(
        AccessControlException.class, () -> of.modifyAclEntries(path, entries("user:bert:rwx")));
  }
}
