package byname.hadoop;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** Servers that go away, lie or are asked too much at once. */
public class FaultsTest {
  private static final int BYTES = 8 << 20;
  private static final byte[] CONTENT = NdnFileSystemTest.pattern(BYTES);
  private static final int THREADS = 64;

  private Published published;
  private FileSystem fileSystem;
  private final Path file = Published.path("file");

  @Before
  public void publish() throws IOException {
    published = Published.begin("/hadoop/faults");
    published.write("file", CONTENT);
    fileSystem = open(published.conf());
  }

  @After
  public void end() throws IOException {
    fileSystem.close();
    published.close();
  }

  private static FileSystem open(Configuration conf) throws IOException {
    // What is read ahead would hide for a while that nobody answers.
    conf.set("fs.ndn.readahead", "none");
    conf.set("fs.ndn.timeout", "3s");
    return FileSystem.newInstance(Published.path("").toUri(), conf);
  }

  @Test
  public void whatIsNotThereIsNotFound() throws Exception {
    for (String path : Arrays.asList("absent", "file/below", "absent/below")) {
      Path absent = Published.path(path);
      LambdaTestUtils.intercept(
          FileNotFoundException.class, path, () -> fileSystem.getFileStatus(absent));
      LambdaTestUtils.intercept(FileNotFoundException.class, path, () -> fileSystem.open(absent));
      LambdaTestUtils.intercept(
          FileNotFoundException.class, path, () -> fileSystem.listStatus(absent));
      assertEquals(false, fileSystem.exists(absent));
    }
  }

  @Test
  public void aKeyThatNobodyTrustsIsRefusedWithItsErrno() throws Exception {
    String other = published.link().replaceAll("key=SHA256:....", "key=SHA256:AAAA");
    try (FileSystem distrusting = open(published.conf(other))) {
      LambdaTestUtils.intercept(
          AccessControlException.class, "ENOKEY", () -> distrusting.getFileStatus(file));
    }
  }

  @Test
  public void readsFailWhileTheServerIsAwayAndGoOnWhenItIsBack() throws Exception {
    try (FSDataInputStream in = fileSystem.open(file)) {
      byte[] first = new byte[1 << 20];
      in.readFully(first);
      assertArrayEquals(Arrays.copyOf(CONTENT, first.length), first);
      published.kill();
      LambdaTestUtils.intercept(IOException.class, "file", () -> in.read(4 << 20, first, 0, 1000));
      published.serve();
      byte[] rest = new byte[BYTES - first.length];
      in.readFully(rest);
      assertArrayEquals(Arrays.copyOfRange(CONTENT, first.length, BYTES), rest);
    }
  }

  @Test
  public void nothingThatWasAlteredIsDelivered() throws Exception {
    byte[] marked = CONTENT.clone();
    byte[] mark = "this octet string is altered on its way".getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(mark, 0, marked, BYTES / 2, mark.length);
    Path path = Published.path("marked");
    int port = Published.freePort();
    try (Published behind = Published.begin("/hadoop/altered", port);
        AlteringRelay relay = new AlteringRelay(port, mark);
        FileSystem altered = open(behind.conf(behind.linkThrough(relay.port())));
        FSDataInputStream in = openMarked(behind, marked, altered, path)) {
      byte[] half = new byte[BYTES / 4];
      in.readFully(0, half);
      assertArrayEquals(Arrays.copyOf(marked, half.length), half);
      byte[] into = new byte[1000];
      LambdaTestUtils.intercept(
          ChecksumException.class, "marked", () -> in.readFully(BYTES / 2, into));
      assertArrayEquals("nothing was delivered", new byte[1000], into);
      assertTrue("the relay did its work", relay.altered() > 0);
      in.readFully(BYTES - BYTES / 4, half);
      assertArrayEquals(Arrays.copyOfRange(marked, BYTES - BYTES / 4, BYTES), half);
    }
  }

  private static FSDataInputStream openMarked(
      Published behind, byte[] marked, FileSystem through, Path path) throws IOException {
    behind.write("marked", marked);
    return through.open(path);
  }

  @Test
  public void manyThreadsReadOneStreamAndManyAtOnce() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(THREADS);
    try (FSDataInputStream shared = fileSystem.open(file)) {
      List<Future<?>> readers = new ArrayList<>();
      for (int seed = 0; seed < THREADS; seed++) {
        Random random = new Random(seed);
        boolean isOwn = seed % 4 == 0;
        readers.add(
            threads.submit(
                () -> {
                  try (FSDataInputStream own = isOwn ? fileSystem.open(file) : null) {
                    readSome(isOwn ? own : shared, random);
                  }
                  return null;
                }));
      }
      for (Future<?> reader : readers) {
        reader.get();
      }
    } finally {
      threads.shutdownNow();
    }
  }

  private static void readSome(FSDataInputStream in, Random random) throws IOException {
    for (int round = 0; round < 20; round++) {
      int length = 1 + random.nextInt(50_000);
      int offset = random.nextInt(BYTES - length);
      byte[] into = new byte[length];
      in.readFully(offset, into);
      assertArrayEquals(Arrays.copyOfRange(CONTENT, offset, offset + length), into);
    }
  }

  /** Each read is right or says that the stream is closed; none crashes or waits for ever. */
  @Test
  public void aStreamMayBeClosedWhileOthersReadIt() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(8);
    try {
      for (int round = 0; round < 5; round++) {
        FSDataInputStream in = fileSystem.open(file);
        CountDownLatch begun = new CountDownLatch(8);
        List<Future<IOException>> readers = new ArrayList<>();
        for (int seed = 0; seed < 8; seed++) {
          Random random = new Random(seed);
          readers.add(threads.submit(() -> readUntilClosed(in, random, begun)));
        }
        begun.await();
        in.close();
        for (Future<IOException> reader : readers) {
          assertTrue(reader.get().getMessage(), reader.get().getMessage().contains("closed"));
        }
      }
    } finally {
      threads.shutdownNow();
    }
  }

  private static IOException readUntilClosed(
      FSDataInputStream in, Random random, CountDownLatch begun) {
    try {
      while (true) {
        readSome(in, random);
        begun.countDown();
      }
    } catch (IOException e) {
      begun.countDown();
      return e;
    }
  }
}
