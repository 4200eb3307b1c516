package byname.hadoop;

import static org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding.iostatisticsStore;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Objects;
import org.apache.hadoop.fs.FSExceptionMessages;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.Syncable;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsStore;

/**
 * A file that is being written: it is kept here, and is there whole when the stream is closed, or
 * not at all. {@code hsync} makes a version of what there is by then. Between those nobody sees
 * anything, so nothing can be flushed to readers.
 */
final class NdnOutputStream extends OutputStream
    implements Syncable, StreamCapabilities, IOStatisticsSource {
  private final Path path;
  private final NativeSite site;
  private final int mode;
  private final int replicas;
  private final Spool spool;
  private final byte[] buffer;
  private final IOStatisticsStore counts =
      iostatisticsStore()
          .withCounters(
              StreamStatisticNames.STREAM_WRITE_BYTES, StreamStatisticNames.STREAM_WRITE_EXCEPTIONS)
          .build();
  private int buffered;
  private boolean isExclusive;
  // The version that the next one takes the place of; 0 for whatever is there.
  private long base;
  // Whether there is more than that version has, or no version yet.
  private boolean isChanged;
  private boolean isClosed;
  private boolean isBroken;

  NdnOutputStream(Path path, NativeSite site, WriteOptions options, Spool spool) {
    this.path = path;
    this.site = site;
    this.mode = options.mode;
    this.replicas = options.replicas;
    this.isExclusive = options.isExclusive;
    this.base = options.base;
    this.isChanged = options.base == 0;
    this.spool = spool;
    this.buffer = new byte[options.bufferBytes];
  }

  /** How a file is written. */
  static final class WriteOptions {
    private final int mode;
    private final int replicas;
    private final boolean isExclusive;
    private final long base;
    private final int bufferBytes;

    /** A file of which nothing is there yet, unless another one is to be replaced. */
    static WriteOptions create(int mode, int replicas, boolean isExclusive, int bufferBytes) {
      return new WriteOptions(mode, replicas, isExclusive, 0, bufferBytes);
    }

    /** The next version of one that was spooled. */
    static WriteOptions after(long base, int mode, int bufferBytes) {
      return new WriteOptions(mode, 0, false, base, bufferBytes);
    }

    private WriteOptions(
        int mode, int replicas, boolean isExclusive, long base, int bufferBytes) {
      this.mode = mode;
      this.base = base;
      this.replicas = replicas;
      this.isExclusive = isExclusive;
      this.bufferBytes = bufferBytes;
    }
  }

  private void checkOpen() throws IOException {
    if (isClosed) {
      throw new IOException(path + ": " + FSExceptionMessages.STREAM_IS_CLOSED);
    }
  }

  @Override
  public synchronized void write(int octet) throws IOException {
    checkOpen();
    if (buffered == buffer.length) {
      empty();
    }
    buffer[buffered++] = (byte) octet;
    isChanged = true;
    counts.incrementCounter(StreamStatisticNames.STREAM_WRITE_BYTES, 1);
  }

  @Override
  public synchronized void write(byte[] from, int position, int length) throws IOException {
    checkOpen();
    Objects.checkFromIndexSize(position, length, from.length);
    isChanged |= length > 0;
    counts.incrementCounter(StreamStatisticNames.STREAM_WRITE_BYTES, length);
    if (length > buffer.length - buffered) {
      empty();
    }
    if (length >= buffer.length) {
      keep(from, position, length);
      return;
    }
    System.arraycopy(from, position, buffer, buffered, length);
    buffered += length;
  }

  private void empty() throws IOException {
    keep(buffer, 0, buffered);
    buffered = 0;
  }

  // After a failure nobody knows what is missing: nothing is put then.
  private void keep(byte[] from, int position, int length) throws IOException {
    try {
      spool.write(from, position, length);
    } catch (IOException e) {
      isBroken = true;
      counts.incrementCounter(StreamStatisticNames.STREAM_WRITE_EXCEPTIONS, 1);
      throw e;
    }
  }

  /** Nothing to be seen by others before the stream is closed. */
  @Override
  public synchronized void flush() throws IOException {
    checkOpen();
  }

  @Override
  public void hflush() throws IOException {
    throw new UnsupportedOperationException(
        "hflush: of " + path + " others see what hsync or close has made a version of");
  }

  /** A version of all that was written is on as many disks as the site asks for, synced. */
  @Override
  public synchronized void hsync() throws IOException {
    checkOpen();
    commit();
  }

  // Who changes the file meanwhile makes this fail: nothing of his is lost.
  private void commit() throws IOException {
    if (isBroken) {
      throw new IOException(path + ": not written, since an earlier write failed");
    }
    empty();
    if (isChanged) {
      base = site.put(path, spool, mode, replicas, isExclusive, base);
      isExclusive = false;
      isChanged = false;
    }
  }

  @Override
  public boolean hasCapability(String capability) {
    return StreamCapabilities.HSYNC.equalsIgnoreCase(capability)
        || StreamCapabilities.IOSTATISTICS.equalsIgnoreCase(capability);
  }

  @Override
  public IOStatistics getIOStatistics() {
    return counts;
  }

  @Override
  public synchronized void close() throws IOException {
    if (isClosed) {
      return;
    }
    isClosed = true;
    try {
      commit();
    } finally {
      spool.close();
    }
  }

  @Override
  public String toString() {
    return "NdnOutputStream{" + path + "}";
  }
}
