package byname.hadoop;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.BeforeClass;
import org.junit.Test;

/** Files that are flushed to readers while they are written. */
public class SiteGrowingTest {
  private static FileSystem fs;

  @BeforeClass
  public static void open() throws IOException {
    fs = SiteContract.fileSystem();
  }

  private static Path file(String name) throws IOException {
    Path made = RunningSite.path("growing/" + name);
    fs.delete(made, true);
    return made;
  }

  private static byte[] contents(FSDataInputStream in, int length) throws IOException {
    byte[] octets = new byte[length];
    in.readFully(0, octets);
    return octets;
  }

  @Test
  public void whatWasFlushedIsSeenByWhoOpensTheFileAndByNobodyBefore() throws Exception {
    Path path = file("growing");
    byte[] block = NdnFileSystemTest.pattern(70_000);
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    List<FSDataInputStream> readers = new ArrayList<>();
    List<byte[]> seen = new ArrayList<>();
    try (FSDataOutputStream out = fs.create(path, true)) {
      assertTrue(out.hasCapability("hflush"));
      for (int round = 0; round < 12; round++) {
        byte[] piece = round % 2 == 0 ? block : ("line " + round + "\n").getBytes(StandardCharsets.UTF_8);
        out.write(piece);
        all.write(piece);
        out.hflush();
        FSDataInputStream in = fs.open(path);
        readers.add(in);
        seen.add(all.toByteArray());
        assertArrayEquals(all.toByteArray(), contents(in, all.size()));
        assertEquals(all.size(), fs.getFileStatus(path).getLen());
        out.write("not yet".getBytes(StandardCharsets.UTF_8));
        all.write("not yet".getBytes(StandardCharsets.UTF_8));
        assertEquals(seen.get(round).length, fs.getFileStatus(path).getLen());
      }
      // Whoever has it open goes on reading what was there then.
      for (int round = 0; round < readers.size(); round++) {
        assertArrayEquals(seen.get(round), contents(readers.get(round), seen.get(round).length));
      }
    }
    for (FSDataInputStream in : readers) {
      in.close();
    }
    try (FSDataInputStream in = fs.open(path)) {
      assertArrayEquals(all.toByteArray(), contents(in, all.size()));
    }
  }

  @Test
  public void whoIsTakenOverFlushesNothingMore() throws Exception {
    Path path = file("recovered");
    FSDataOutputStream first = fs.create(path, true);
    first.write("one".getBytes(StandardCharsets.UTF_8));
    first.hflush();
    first.write("lost".getBytes(StandardCharsets.UTF_8));
    try (FSDataOutputStream second = fs.append(path)) {
      second.write("two".getBytes(StandardCharsets.UTF_8));
      second.hflush();
      LambdaTestUtils.intercept(IOException.class, first::hflush);
      second.write("three".getBytes(StandardCharsets.UTF_8));
    }
    LambdaTestUtils.intercept(IOException.class, first::close);
    try (FSDataInputStream in = fs.open(path)) {
      assertEquals("onetwothree", new String(contents(in, 11), StandardCharsets.UTF_8));
    }
    assertEquals(11, fs.getFileStatus(path).getLen());
  }

  @Test
  public void aFlushOfNothingMakesTheFileSeenAndTheNextOneNothingNew() throws Exception {
    Path path = file("nothing");
    try (FSDataOutputStream out = fs.create(path, true)) {
      out.hflush();
      assertEquals(0, fs.getFileStatus(path).getLen());
      out.write(1);
      out.hflush();
      long version = fs.getFileStatus(path).getModificationTime();
      out.hflush();
      assertEquals(version, fs.getFileStatus(path).getModificationTime());
    }
    assertEquals(1, fs.getFileStatus(path).getLen());
  }
}
