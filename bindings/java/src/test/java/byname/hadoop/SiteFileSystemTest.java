package byname.hadoop;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.PrivilegedExceptionAction;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.BeforeClass;
import org.junit.Test;

/** What users see of a site that they write to, beyond what Hadoop's suites look at. */
public class SiteFileSystemTest {
  private static FileSystem fs;

  @BeforeClass
  public static void open() throws IOException {
    fs = SiteContract.fileSystem();
  }

  /** A directory of a test's own. */
  private static Path directory(String name) throws IOException {
    Path made = RunningSite.path("own/" + name);
    fs.delete(made, true);
    assertTrue(fs.mkdirs(made));
    return made;
  }

  private static Path below(Path directory, String name) {
    return NdnFileSystem.child(directory, name);
  }

  private static void write(FileSystem to, Path path, String text) throws IOException {
    try (FSDataOutputStream out = to.create(path, true)) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }
  }

  private static String read(Path path) throws IOException {
    try (FSDataInputStream in = fs.open(path)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  private static List<String> names(Path directory) throws IOException {
    return Arrays.stream(fs.listStatus(directory))
        .map(status -> status.getPath().getName())
        .collect(Collectors.toList());
  }

  @Test
  public void aFileIsThereWholeWhenItIsClosedAndNotBefore() throws Exception {
    Path directory = directory("whole");
    Path path = below(directory, "a");
    byte[] content = NdnFileSystemTest.pattern(3_000_001);
    FSDataOutputStream out = fs.create(path);
    out.write(content, 0, 2_000_000);
    out.flush();
    assertFalse(fs.exists(path));
    assertEquals(List.of(), names(directory));
    assertEquals(2_000_000, out.getPos());
    out.write(content, 2_000_000, 1_000_001);
    out.close();
    out.close();
    try (FSDataInputStream in = fs.open(path)) {
      assertArrayEquals(content, in.readAllBytes());
    }
    assertEquals(List.of("a"), names(directory));
    LambdaTestUtils.intercept(IOException.class, () -> out.write(1));
  }

  @Test
  public void whatIsRewrittenRenamedAndRemovedIsSeenAtOnce() throws IOException {
    Path directory = directory("at-once");
    Path path = below(directory, "a");
    Path other = below(directory, "b");
    for (int round = 0; round < 20; round++) {
      write(fs, path, "round " + round);
      assertEquals("round " + round, read(path));
      assertTrue(fs.rename(path, other));
      assertEquals("round " + round, read(other));
      assertEquals(List.of("b"), names(directory));
      assertTrue(fs.delete(other, false));
      assertFalse(fs.exists(other));
    }
  }

  @Test
  public void aStreamKeepsTheVersionThatItOpened() throws IOException {
    Path path = below(directory("versions"), "a");
    write(fs, path, "first");
    try (FSDataInputStream in = fs.open(path)) {
      write(fs, path, "second, and longer");
      assertEquals("first", new String(in.readAllBytes(), StandardCharsets.UTF_8));
    }
    assertEquals("second, and longer", read(path));
  }

  @Test
  public void namesMayHaveWhatTheyLike() throws IOException {
    Path directory = directory("names");
    List<String> wanted =
        Arrays.asList("100% sure", "%41", "a:b", "Größe", " x ", "A", "a", "q?#*[1]{2}", "v=1");
    for (String name : wanted) {
      write(fs, below(directory, name), "content of " + name);
    }
    assertEquals(new HashSet<>(wanted), new HashSet<>(names(directory)));
    for (String name : wanted) {
      assertEquals("content of " + name, read(below(directory, name)));
      assertTrue(fs.rename(below(directory, name), below(directory, name + "~")));
      assertTrue(fs.delete(below(directory, name + "~"), false));
    }
    assertEquals(List.of(), names(directory));
  }

  @Test
  public void threeSlashesBeginAWholeName() throws Exception {
    Configuration conf = SiteContract.site().conf();
    try (FileSystem whole = FileSystem.newInstance(URI.create("ndn:///"), conf)) {
      Path path = new Path("ndn:///hadoop/site/own/whole-names/a");
      write(whole, path, "by its whole name");
      assertEquals("by its whole name", read(RunningSite.path("own/whole-names/a")));
      assertTrue(whole.delete(path.getParent(), true));
      // Nobody has a key here for what is above.
      LambdaTestUtils.intercept(
          AccessControlException.class, () -> whole.mkdirs(new Path("ndn:///elsewhere/x")));
    }
  }

  @Test
  public void whoWritesFollowsFromTheKeyAndNotFromWhatHadoopIsTold() throws Exception {
    Path directory = directory("identity");
    UserGroupInformation forged = UserGroupInformation.createRemoteUser("operator");
    forged.doAs(
        (PrivilegedExceptionAction<Void>)
            () -> {
              try (FileSystem other = SiteContract.newFileSystem()) {
                write(other, below(directory, "a"), "x");
                // As the operator this could be done.
                LambdaTestUtils.intercept(
                    AccessControlException.class,
                    () -> other.setOwner(below(directory, "a"), "operator", null));
              }
              return null;
            });
    assertEquals(RunningSite.USER, fs.getFileStatus(below(directory, "a")).getOwner());

    Configuration conf = SiteContract.site().conf();
    conf.set("fs.ndn.identity", "operator");
    try (FileSystem other = FileSystem.newInstance(RunningSite.path("").toUri(), conf)) {
      LambdaTestUtils.intercept(
          AccessControlException.class,
          "there is no key of operator",
          () -> other.mkdirs(below(directory, "b")));
    }
    conf.set("fs.ndn.identity", "none");
    try (FileSystem other = FileSystem.newInstance(RunningSite.path("").toUri(), conf)) {
      LambdaTestUtils.intercept(
          AccessControlException.class,
          "is read-only",
          () -> other.mkdirs(below(directory, "b")));
    }
  }

  @Test
  public void whatCannotBeIsRefusedInSoManyWords() throws Exception {
    Path path = below(directory("refused"), "a");
    write(fs, path, "x");
    LambdaTestUtils.intercept(
        UnsupportedOperationException.class, () -> fs.concat(path, new Path[] {path}));
    assertFalse(fs.hasPathCapability(path, CommonPathCapabilities.FS_CONCAT));
    assertFalse(fs.hasPathCapability(path, CommonPathCapabilities.FS_READ_ONLY_CONNECTOR));
    assertTrue(fs.hasPathCapability(path, CommonPathCapabilities.FS_PERMISSIONS));
    assertTrue(fs.hasPathCapability(path, CommonPathCapabilities.FS_XATTRS));
    LambdaTestUtils.intercept(
        FileAlreadyExistsException.class, () -> fs.create(path, false).close());
    LambdaTestUtils.intercept(
        FileNotFoundException.class, () -> fs.setTimes(below(path.getParent(), "none"), 1, -1));
  }

  @Test
  public void aStreamOutlivesTheFileSystemThatNobodyHasAnyMore() throws Exception {
    Path path = below(directory("forgotten"), "a");
    // Hadoop's cache would remember it.
    Configuration conf = SiteContract.site().conf();
    conf.setBoolean("fs.ndn.impl.disable.cache", true);
    FileSystem own = FileSystem.get(path.toUri(), conf);
    write(own, path, "first");
    FSDataInputStream in = own.open(path);
    FSDataOutputStream out = own.create(path, true);
    WeakReference<FileSystem> forgotten = new WeakReference<>(own);
    own = null;
    LambdaTestUtils.await(
        60_000,
        50,
        () -> {
          System.gc();
          return forgotten.get() == null;
        });
    out.writeBytes("second");
    out.close();
    assertEquals("second", read(path));
    assertEquals("first", new String(in.readAllBytes(), StandardCharsets.UTF_8));
    in.close();
  }

  @Test
  public void whatIsSyncedIsThereForOthersBeforeTheStreamIsClosed() throws Exception {
    Path path = below(directory("synced"), "a");
    try (FSDataOutputStream out = fs.create(path, false)) {
      assertTrue(out.hasCapability("hsync"));
      out.writeBytes("one ");
      assertFalse(fs.exists(path));
      out.hsync();
      assertEquals("one ", read(path));
      out.writeBytes("two");
      assertEquals("one ", read(path));
      out.hsync();
      long synced = fs.getFileStatus(path).getModificationTime();
      out.hsync();
      assertEquals("nothing new", synced, fs.getFileStatus(path).getModificationTime());
      assertEquals("one two", read(path));
    }
    assertEquals("one two", read(path));
  }

  @Test
  public void whoWritesAFileAnewMakesThoseFailThatGoOnWithTheOldOne() throws Exception {
    Path path = below(directory("overtaken"), "a");
    FSDataOutputStream out = fs.create(path, false);
    out.writeBytes("mine");
    out.hsync();
    write(fs, path, "theirs");
    out.writeBytes(" and more");
    LambdaTestUtils.intercept(IOException.class, path.toString(), out::hsync);
    LambdaTestUtils.intercept(IOException.class, path.toString(), out::close);
    assertEquals("theirs", read(path));
  }

  @Test
  public void whatIsAppendedComesBehindAllThatWasThere() throws Exception {
    Path path = below(directory("appended"), "a");
    byte[] content = NdnFileSystemTest.pattern(3_000_001);
    try (FSDataOutputStream out = fs.create(path)) {
      out.write(content, 0, 2_500_000);
    }
    try (FSDataOutputStream out = fs.append(path)) {
      assertEquals(2_500_000, out.getPos());
      out.write(content, 2_500_000, 500_001);
      assertEquals(2_500_000, fs.getFileStatus(path).getLen());
    }
    try (FSDataInputStream in = fs.open(path)) {
      assertArrayEquals(content, in.readAllBytes());
    }
    assertTrue(fs.hasPathCapability(path, CommonPathCapabilities.FS_APPEND));
  }

  @Test
  public void ofTwoWhoAppendOneIsToldThatTheOtherWasFaster() throws Exception {
    Path path = below(directory("appended by two"), "a");
    write(fs, path, "0");
    FSDataOutputStream slow = fs.append(path);
    slow.writeBytes("slow");
    try (FSDataOutputStream fast = fs.append(path)) {
      fast.writeBytes("fast");
    }
    LambdaTestUtils.intercept(IOException.class, path.toString(), slow::close);
    assertEquals("0fast", read(path));
  }

  @Test
  public void whoeverIsFasterIsNotReplacedByWhoWantedANewFile() throws Exception {
    Path path = below(directory("race"), "a");
    FSDataOutputStream slow = fs.create(path, false);
    slow.write(1);
    write(fs, path, "faster");
    LambdaTestUtils.intercept(FileAlreadyExistsException.class, slow::close);
    assertEquals("faster", read(path));
  }

  @Test
  public void filesAreTruncatedInOneStep() throws Exception {
    Path path = below(directory("truncated"), "a");
    byte[] content = NdnFileSystemTest.pattern(100_000);
    try (FSDataOutputStream out = fs.create(path)) {
      out.write(content);
    }
    assertTrue(fs.truncate(path, 50_001));
    try (FSDataInputStream in = fs.open(path)) {
      assertArrayEquals(Arrays.copyOf(content, 50_001), in.readAllBytes());
    }
    assertTrue(fs.truncate(path, 0));
    assertEquals(0, fs.getFileStatus(path).getLen());
    LambdaTestUtils.intercept(IllegalArgumentException.class, () -> fs.truncate(path, 1));
  }

  @Test
  public void attributesComeBackAsTheyWereSet() throws Exception {
    Path path = below(directory("attributes"), "a");
    write(fs, path, "x");
    fs.setTimes(path, 1_234_567_890_123L, -1);
    assertEquals(1_234_567_890_123L, fs.getFileStatus(path).getModificationTime());
    assertEquals(2, fs.getFileStatus(path).getReplication());
    byte[] value = {0, 1, (byte) 0xff};
    fs.setXAttr(path, "user.a", value);
    assertArrayEquals(value, fs.getXAttr(path, "user.a"));
    LambdaTestUtils.intercept(
        IOException.class,
        () -> fs.setXAttr(path, "user.a", value, java.util.EnumSet.of(XAttrSetFlag.CREATE)));
    LambdaTestUtils.intercept(
        IOException.class,
        () -> fs.setXAttr(path, "user.b", value, java.util.EnumSet.of(XAttrSetFlag.REPLACE)));
    assertEquals(List.of("user.a"), fs.listXAttrs(path));
    assertEquals(new HashSet<>(List.of("user.a")), fs.getXAttrs(path).keySet());
    fs.removeXAttr(path, "user.a");
    assertEquals(List.of(), fs.listXAttrs(path));
    fs.access(path, FsAction.READ_WRITE);
    assertTrue(fs.getStatus(path).getRemaining() > 0);
    // Policies are the operators' affair.
    assertFalse(fs.setReplication(path, (short) 1));
    assertEquals(2, fs.getFileStatus(path).getReplication());
  }

  @Test
  public void aFlushIsWhatTheConfigurationSays() throws Exception {
    Path path = below(directory("flush"), "a");
    for (String kind : new String[] {"refuse", "ignore", "HSync", "what"}) {
      Configuration conf = SiteContract.site().conf();
      conf.set("fs.ndn.hflush", kind);
      try (FileSystem own = FileSystem.newInstance(path.toUri(), conf)) {
        own.delete(path, false);
        if (kind.equals("what")) {
          LambdaTestUtils.intercept(IOException.class, "fs.ndn.hflush", () -> own.create(path));
          continue;
        }
        try (FSDataOutputStream out = own.create(path)) {
          out.write(1);
          if (kind.equals("refuse")) {
            LambdaTestUtils.intercept(UnsupportedOperationException.class, out::hflush);
          } else {
            out.hflush();
          }
          boolean isSeen = kind.equals("HSync");
          assertEquals(kind, isSeen, fs.exists(path));
          assertEquals(kind, isSeen, out.hasCapability("hflush"));
        }
        assertEquals(1, fs.getFileStatus(path).getLen());
      }
    }
  }

  /** As {@code FileSystem.create(fs, path, permission)} does, with which jobs are submitted. */
  @Test
  public void thePermissionOfAFileCanBeChangedBeforeItIsThere() throws Exception {
    Path path = below(directory("drafts"), "a");
    FsPermission permission = new FsPermission((short) 0640);
    try (FSDataOutputStream out = FileSystem.create(fs, path, permission)) {
      out.write(1);
      assertFalse(fs.exists(path));
    }
    assertEquals(permission, fs.getFileStatus(path).getPermission());
    fs.delete(path, false);
    LambdaTestUtils.intercept(
        FileNotFoundException.class, () -> fs.setPermission(path, permission));
  }

  /** As TestDFSIO makes its control files. */
  @Test
  public void threadsThatMakeFilesInADirectoryThatIsNotThereYetMakeAll() throws Exception {
    Path top = directory("together");
    int threads = 8;
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      for (int round = 0; round < 20; round++) {
        Path directory = below(below(top, "round" + round), "deeper");
        List<Callable<Void>> tasks =
            IntStream.range(0, threads)
                .mapToObj(
                    at ->
                        (Callable<Void>)
                            () -> {
                              write(fs, below(directory, "file" + at), "x");
                              return null;
                            })
                .collect(Collectors.toList());
        for (Future<Void> done : pool.invokeAll(tasks)) {
          done.get();
        }
        assertEquals(threads, names(directory).size());
      }
    } finally {
      pool.shutdownNow();
    }
  }

  @Test
  public void blocksAreWhereTheReplicasAre() throws Exception {
    Path path = below(directory("blocks"), "a");
    write(fs, path, "some content");
    FileStatus status = fs.getFileStatus(path);
    BlockLocation[] blocks = fs.getFileBlockLocations(status, 0, status.getLen());
    assertEquals(1, blocks.length);
    assertTrue(blocks[0].getHosts().length > 0);
  }

  @Test
  public void aRenameOfAContextReplacesInOneStepOrSaysWhyNot() throws Exception {
    Path directory = directory("context");
    FileContext context =
        FileContext.getFileContext(RunningSite.path("").toUri(), SiteContract.site().conf());
    Path from = below(directory, "a");
    Path to = below(directory, "b");
    write(fs, from, "new");
    write(fs, to, "old");
    LambdaTestUtils.intercept(FileAlreadyExistsException.class, () -> context.rename(from, to));
    context.rename(from, to, Options.Rename.OVERWRITE);
    assertEquals("new", read(to));
    LambdaTestUtils.intercept(FileNotFoundException.class, () -> context.rename(from, to));
  }

  @Test
  public void manyEntriesComeInPages() throws IOException {
    Path directory = directory("many");
    for (int at = 0; at < 130; at++) {
      assertTrue(fs.mkdirs(below(directory, String.format("%03d", at))));
    }
    assertEquals(
        IntStream.range(0, 130).mapToObj(at -> String.format("%03d", at)).collect(
            Collectors.toList()),
        names(directory));
    assertTrue(fs.delete(directory, true));
    assertFalse(fs.exists(directory));
  }

  @Test
  public void manyThreadsWriteSideBySide() throws Exception {
    Path directory = directory("threads");
    ExecutorService threads = Executors.newFixedThreadPool(16);
    try {
      List<Callable<Void>> tasks =
          IntStream.range(0, 48)
              .<Callable<Void>>mapToObj(
                  at ->
                      () -> {
                        Path path = below(directory, "file" + at);
                        write(fs, path, "content " + at);
                        assertEquals("content " + at, read(path));
                        return null;
                      })
              .collect(Collectors.toList());
      for (Future<Void> done : threads.invokeAll(tasks)) {
        done.get();
      }
    } finally {
      threads.shutdown();
    }
    assertEquals(48, names(directory).size());
  }

  @Test
  public void nothingIsLeftOfAStreamThatIsForgotten() throws Exception {
    Path directory = directory("forgotten");
    java.nio.file.Path spool = Files.createTempDirectory("byname-spool");
    Configuration conf = SiteContract.site().conf();
    conf.set("fs.ndn.spool.dir", spool.toString());
    try (FileSystem other = FileSystem.newInstance(RunningSite.path("").toUri(), conf)) {
      FSDataOutputStream out = other.create(below(directory, "a"));
      out.write(new byte[1_000_000]);
      try (Stream<java.nio.file.Path> left = Files.list(spool)) {
        assertEquals("it has no name", 0, left.count());
      }
      assertFalse(other.exists(below(directory, "a")));
    }
    Files.delete(spool);
    conf.set("fs.ndn.spool.dir", spool.toString());
    try (FileSystem other = FileSystem.newInstance(RunningSite.path("").toUri(), conf)) {
      IOException refused =
          LambdaTestUtils.intercept(
              IOException.class, () -> other.create(below(directory, "a")).close());
      assertTrue(refused.getMessage(), refused.getMessage().contains(spool.toString()));
    }
    assertNull(fs.getXAttrs(directory).get("user.none"));
  }
}
