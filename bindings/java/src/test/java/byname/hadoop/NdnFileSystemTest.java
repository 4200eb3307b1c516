package byname.hadoop;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.zip.CRC32C;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/** What users see of a published directory, beyond what Hadoop's suites look at. */
public class NdnFileSystemTest {
  private static final int ENTRIES = 1500;

  private static Published published;
  private static FileSystem fileSystem;

  @BeforeClass
  public static void publish() throws IOException {
    published = Published.begin("/hadoop/tree");
    published.write("run7/notes.txt", text("some notes\n"));
    published.write("run7/Notes.TXT", text("other notes\n"));
    for (String name : Arrays.asList("100% sure", "%41", "a:b", "Größe", " x ", "q?#*[1]{2}")) {
      published.write("names/" + name, text(name));
    }
    for (int at = 0; at < ENTRIES; at++) {
      published.write(String.format("many/%04d", at), text("x"));
    }
    published.write("links/target", text("one two three"));
    Files.createSymbolicLink(published.data().resolve("links/link"), Paths.get("target"));
    Files.createSymbolicLink(published.data().resolve("links/names"), Paths.get("../names"));
    Files.createSymbolicLink(published.data().resolve("links/nowhere"), Paths.get("absent"));
    published.write("big", pattern(3 << 20));
    fileSystem = FileSystem.newInstance(Published.path("").toUri(), published.conf());
  }

  @AfterClass
  public static void end() throws IOException {
    fileSystem.close();
    published.close();
  }

  private static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static byte[] pattern(int bytes) {
    byte[] made = new byte[bytes];
    for (int at = 0; at < bytes; at++) {
      made[at] = (byte) (at * 31 + (at >> 8) * 7);
    }
    return made;
  }

  private static byte[] readAll(FileSystem from, Path path) throws IOException {
    try (FSDataInputStream in = from.open(path)) {
      return in.readAllBytes();
    }
  }

  @Test
  public void theServiceFileNamesTheFileSystemAndTheContextHasItToo() throws Exception {
    assertEquals(NdnFileSystem.class, FileSystem.getFileSystemClass("ndn", new Configuration()));
    FileContext context = FileContext.getFileContext(Published.path("").toUri(), published.conf());
    assertEquals(11, context.getFileStatus(Published.path("run7/notes.txt")).getLen());
    try (FSDataInputStream in = context.open(Published.path("run7/notes.txt"))) {
      assertArrayEquals(text("some notes\n"), in.readAllBytes());
    }
  }

  @Test
  public void threeSlashesBeginAWholeName() throws Exception {
    Configuration conf = published.conf();
    conf.set("fs.ndn.connect", published.endpoint());
    conf.set("fs.ndn.unknown-keys", "first-use");
    try (FileSystem whole = FileSystem.newInstance(URI.create("ndn:///"), conf)) {
      Path path = new Path("ndn:///hadoop/tree/run7/notes.txt");
      assertEquals(path, whole.getFileStatus(path).getPath());
      assertArrayEquals(text("some notes\n"), readAll(whole, path));
    }
  }

  @Test
  public void anAuthorityWithoutLinkIsSaidSo() throws Exception {
    LambdaTestUtils.intercept(
        IOException.class,
        "fs.ndn.link.elsewhere",
        () -> FileSystem.newInstance(URI.create("ndn://elsewhere/"), published.conf()));
  }

  @Test
  public void caseOfTheAuthorityDoesNotMatterThatOfNamesDoes() throws Exception {
    try (FileSystem upper = FileSystem.newInstance(URI.create("ndn://LAB/"), published.conf())) {
      assertArrayEquals(text("some notes\n"), readAll(upper, new Path("/run7/notes.txt")));
      assertArrayEquals(text("other notes\n"), readAll(upper, new Path("/run7/Notes.TXT")));
    }
  }

  @Test
  public void namesWithPercentColonSpaceAndOthersAreListedAndRead() throws Exception {
    List<String> names = new ArrayList<>();
    for (FileStatus status : fileSystem.listStatus(Published.path("names"))) {
      names.add(status.getPath().getName());
      assertArrayEquals(text(status.getPath().getName()), readAll(fileSystem, status.getPath()));
    }
    assertEquals(
        Arrays.asList(" x ", "%41", "100% sure", "Größe", "a:b", "q?#*[1]{2}"),
        names.stream().sorted().collect(Collectors.toList()));
  }

  @Test
  public void linksShowAsWhatTheyLeadTo() throws Exception {
    FileStatus[] entries = fileSystem.listStatus(Published.path("links"));
    assertEquals(3, entries.length);
    assertEquals(Published.path("links/link"), entries[0].getPath());
    assertEquals(13, entries[0].getLen());
    assertArrayEquals(text("one two three"), readAll(fileSystem, entries[0].getPath()));
    assertTrue(entries[1].isDirectory());
    assertEquals(6, fileSystem.listStatus(entries[1].getPath()).length);
    assertEquals(Published.path("links/target"), entries[2].getPath());
  }

  @Test
  public void whatHasNoOctetsIsRefused() throws Exception {
    LambdaTestUtils.intercept(
        IOException.class, "NUL", () -> fileSystem.getFileStatus(Published.path("a\0b")));
    LambdaTestUtils.intercept(
        IOException.class, "surrogate", () -> fileSystem.open(Published.path("a\ud800b")));
  }

  @Test
  public void everyChangeIsRefusedInOneLine() throws Exception {
    Path file = Published.path("run7/notes.txt");
    Path other = Published.path("other");
    List<Callable<Object>> changes =
        Arrays.asList(
            () -> fileSystem.create(other),
            () -> fileSystem.createFile(other).build(),
            () -> fileSystem.append(file),
            () -> fileSystem.rename(file, other),
            () -> fileSystem.delete(file, true),
            () -> fileSystem.mkdirs(other),
            () -> fileSystem.setReplication(file, (short) 2),
            () -> refuse(() -> fileSystem.setPermission(file, new FsPermission((short) 0600))),
            () -> refuse(() -> fileSystem.setOwner(file, "a", "b")),
            () -> refuse(() -> fileSystem.setTimes(file, 1, 1)),
            () -> refuse(() -> fileSystem.access(file, FsAction.READ_WRITE)));
    for (Callable<Object> change : changes) {
      LambdaTestUtils.intercept(AccessControlException.class, "is read-only", change::call);
    }
    LambdaTestUtils.intercept(
        UnsupportedOperationException.class, () -> fileSystem.truncate(file, 0));
    LambdaTestUtils.intercept(
        UnsupportedOperationException.class, () -> fileSystem.setXAttr(file, "user.a", text("b")));
    fileSystem.access(file, FsAction.READ);
    assertArrayEquals(
        text("some notes\n"), Files.readAllBytes(published.data().resolve("run7/notes.txt")));
  }

  private interface Change {
    void make() throws IOException;
  }

  private static Object refuse(Change change) throws IOException {
    change.make();
    return "it was not refused";
  }

  @Test
  public void largeDirectoriesAreListedByPages() throws Exception {
    Path many = Published.path("many");
    RemoteIterator<FileStatus> entries = fileSystem.listStatusIterator(many);
    for (int at = 0; at < ENTRIES; at++) {
      assertEquals(String.format("%04d", at), entries.next().getPath().getName());
    }
    assertFalse(entries.hasNext());
    assertEquals(ENTRIES, fileSystem.listStatus(many).length);
    ContentSummary summary = fileSystem.getContentSummary(many);
    assertEquals(ENTRIES, summary.getFileCount());
    assertEquals(ENTRIES, summary.getLength());
    assertEquals(15, fileSystem.globStatus(Published.path("many/012[0-4]")).length
        + fileSystem.globStatus(Published.path("many/013?")).length);
  }

  @Test
  public void blocksCoverTheFileAndNameNoHost() throws Exception {
    Configuration conf = published.conf();
    conf.set("fs.ndn.block.size", "1m");
    try (FileSystem small = FileSystem.newInstance(Published.path("").toUri(), conf)) {
      LocatedFileStatus status = small.listLocatedStatus(Published.path("big")).next();
      assertEquals(1 << 20, status.getBlockSize());
      assertEquals(3, status.getBlockLocations().length);
      for (int at = 0; at < 3; at++) {
        BlockLocation block = status.getBlockLocations()[at];
        assertEquals((long) at << 20, block.getOffset());
        assertEquals(1 << 20, block.getLength());
        assertEquals(0, block.getHosts().length);
      }
      assertEquals(1, small.getFileBlockLocations(status, 1 << 20, 1).length);
      assertEquals(2, small.getFileBlockLocations(status, (1 << 20) - 1, 2).length);
      assertEquals(0, small.getFileBlockLocations(status, 3 << 20, 5).length);
    }
  }

  @Test
  public void checksumsAreThoseThatThePublisherHasSigned() throws Exception {
    FileChecksum sum = fileSystem.getFileChecksum(Published.path("run7/notes.txt"));
    assertEquals("BLAKE3", sum.getAlgorithmName());
    assertEquals(32, sum.getBytes().length);
    assertEquals(sum, fileSystem.getFileChecksum(Published.path("run7/notes.txt"), 11));
    assertFalse(sum.equals(fileSystem.getFileChecksum(Published.path("run7/Notes.TXT"))));
    assertNull(fileSystem.getFileChecksum(Published.path("run7/notes.txt"), 10));
    LambdaTestUtils.intercept(
        FileNotFoundException.class, () -> fileSystem.getFileChecksum(Published.path("run7")));
  }

  @Test
  public void aCrcOfTheWholeFileHasTheFormThatHdfsGivesIt() throws Exception {
    Configuration conf = published.conf();
    conf.set("fs.ndn.checksum", "composite-crc32c");
    try (FileSystem comparing = FileSystem.newInstance(Published.path("").toUri(), conf)) {
      Path path = Published.path("big");
      LambdaTestUtils.await(20_000, 100, () -> comparing.getFileChecksum(path) != null);
      FileChecksum sum = comparing.getFileChecksum(path);
      assertEquals("COMPOSITE-CRC32C", sum.getAlgorithmName());
      CRC32C wanted = new CRC32C();
      wanted.update(pattern(3 << 20));
      assertEquals((int) wanted.getValue(), ByteBuffer.wrap(sum.getBytes()).getInt());
    }
  }

  @Test
  public void aStatusOpensItsVersionOrNothing() throws Exception {
    Path path = Published.path("changing");
    published.write("changing", text("first"));
    FileStatus first = fileSystem.getFileStatus(path);
    try (FSDataInputStream in = fileSystem.openFile(path).withFileStatus(first).build().get()) {
      assertArrayEquals(text("first"), in.readAllBytes());
    }
    published.write("changing", text("second one"));
    String etag = ((EtagSource) first).getEtag();
    LambdaTestUtils.await(
        20_000, 100, () -> !((EtagSource) fileSystem.getFileStatus(path)).getEtag().equals(etag));
    LambdaTestUtils.interceptFuture(
        IOException.class,
        "no longer " + etag,
        fileSystem.openFile(path).withFileStatus(first).build());
    try (FSDataInputStream in =
        fileSystem.openFile(path).optLong("fs.option.openfile.length", 10).build().get()) {
      assertArrayEquals(text("second one"), in.readAllBytes());
    }
  }

  @Test
  public void capabilitiesAreTrue() throws Exception {
    Path path = Published.path("big");
    assertTrue(fileSystem.hasPathCapability(path, CommonPathCapabilities.FS_READ_ONLY_CONNECTOR));
    assertTrue(fileSystem.hasPathCapability(path, CommonPathCapabilities.FS_CHECKSUMS));
    assertTrue(fileSystem.hasPathCapability(path, CommonPathCapabilities.ETAGS_AVAILABLE));
    assertFalse(fileSystem.hasPathCapability(path, CommonPathCapabilities.FS_APPEND));
    try (FSDataInputStream in = fileSystem.open(path)) {
      assertTrue(in.hasCapability("in:readvectored"));
      assertTrue(in.hasCapability("in:preadbytebuffer"));
      assertFalse(in.hasCapability("hflush"));
    }
    assertNull(fileSystem.getCanonicalServiceName());
  }

  @Test
  public void allKindsOfReadsGiveTheSameOctets() throws Exception {
    byte[] wanted = pattern(3 << 20);
    try (FSDataInputStream in = fileSystem.open(Published.path("big"))) {
      for (ByteBuffer buffer :
          Arrays.asList(ByteBuffer.allocate(100_000), ByteBuffer.allocateDirect(100_000))) {
        buffer.position(7);
        in.readFully(1_000_001, buffer);
        buffer.flip().position(7);
        byte[] found = new byte[buffer.remaining()];
        buffer.get(found);
        assertArrayEquals(Arrays.copyOfRange(wanted, 1_000_001, 1_000_001 + 99_993), found);
      }
      in.seek(5);
      byte[] rest = new byte[wanted.length - 5];
      in.readFully(rest);
      assertArrayEquals(Arrays.copyOfRange(wanted, 5, wanted.length), rest);
      assertEquals(-1, in.read());
      assertEquals(-1, in.read(ByteBuffer.allocate(1)));
      LambdaTestUtils.intercept(
          ReadOnlyBufferException.class,
          () -> in.read(0, ByteBuffer.allocateDirect(10).asReadOnlyBuffer()));
    }
  }

  @Test
  public void aVectorIsOneCallAndCounted() throws Exception {
    byte[] wanted = pattern(3 << 20);
    List<FileRange> ranges = new ArrayList<>();
    for (int at = 0; at < 200; at++) {
      ranges.add(FileRange.createFileRange(at * 15_000L, at == 3 ? 0 : 4000 + at));
    }
    try (FSDataInputStream in = fileSystem.open(Published.path("big"))) {
      in.readVectored(
          ranges, n -> n % 2 == 0 ? ByteBuffer.allocateDirect(n) : ByteBuffer.allocate(n + 9));
      for (FileRange range : ranges) {
        ByteBuffer buffer = range.getData().get();
        byte[] found = new byte[buffer.remaining()];
        buffer.get(found);
        int from = (int) range.getOffset();
        assertArrayEquals(Arrays.copyOfRange(wanted, from, from + range.getLength()), found);
      }
      IOStatistics counts = in.getIOStatistics();
      assertNotNull(counts);
      assertEquals(1L, (long) counts.counters().get("stream_read_vectored_operations"));
      assertEquals(1L, (long) counts.counters().get("stream_read_operations"));
      assertEquals(200L, (long) counts.counters().get("stream_read_vectored_incoming_ranges"));
      long received = counts.counters().get("ndn_received_bytes");
      long cached = counts.counters().get("ndn_cached_bytes");
      assertTrue(received + cached >= 199 * 4000);
    }
  }

  @Test
  @SuppressWarnings("deprecation")
  public void whatIsReadCountsInHadoopsStatistics() throws Exception {
    FileSystem.Statistics counts = FileSystem.getStatistics("ndn", NdnFileSystem.class);
    long before = counts.getBytesRead();
    readAll(fileSystem, Published.path("run7/notes.txt"));
    assertEquals(before + 11, counts.getBytesRead());
  }

  @Test
  public void nothingWorksOnceItIsClosed() throws Exception {
    FileSystem other = FileSystem.newInstance(Published.path("").toUri(), published.conf());
    FSDataInputStream in = other.open(Published.path("big"));
    other.close();
    LambdaTestUtils.intercept(
        IOException.class, "closed", () -> other.getFileStatus(Published.path("big")));
    LambdaTestUtils.intercept(IOException.class, "closed", () -> in.read(0, new byte[1], 0, 1));
    in.close();
  }
}
