package byname.hadoop;

import static org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding.iostatisticsStore;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
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
 * not at all. {@code hflush} and {@code hsync} make a version of what there is by then, which costs
 * what was added since the last one. Between those nobody sees anything.
 */
final class NdnOutputStream extends OutputStream
    implements Syncable, StreamCapabilities, IOStatisticsSource {
  private static final String HFLUSH = "hflush";

  private final Path path;
  private final NativeSite site;
  private final int replicas;
  private final Flush flush;
  private final Spool spool;
  private final Drafts drafts;
  private final byte[] buffer;
  private final IOStatisticsStore counts =
      iostatisticsStore()
          .withCounters(
              StreamStatisticNames.STREAM_WRITE_BYTES, StreamStatisticNames.STREAM_WRITE_EXCEPTIONS)
          .build();
  // Of each write: without a look for its name.
  private final AtomicLong written =
      counts.getCounterReference(StreamStatisticNames.STREAM_WRITE_BYTES);
  private int mode;
  private int buffered;
  private boolean isExclusive;
  // The version that the next one takes the place of; 0 for whatever is there.
  private long base;
  // Whether there is more than that version has, or no version yet.
  private boolean isChanged;
  // Whether the spool was put by now: what is added costs nothing of what was there.
  private boolean isPut;
  private boolean isClosed;
  private boolean isBroken;

  NdnOutputStream(
      Path path, NativeSite site, WriteOptions options, Spool spool, Drafts drafts) {
    this.path = path;
    this.site = site;
    this.mode = options.mode;
    this.replicas = options.replicas;
    this.flush = options.flush;
    this.isExclusive = options.isExclusive;
    this.base = options.base;
    this.isChanged = options.base == 0;
    this.spool = spool;
    this.drafts = drafts;
    this.buffer = new byte[options.bufferBytes];
  }

  /** What {@code hflush} does: a version is seen by others, and nothing else is. */
  enum Flush {
    REFUSE,
    IGNORE,
    HSYNC;

    /** That of a configuration. */
    static Flush of(Configuration conf) throws IOException {
      String wanted = conf.getTrimmed(Keys.HFLUSH, "hsync");
      for (Flush one : values()) {
        if (one.name().equalsIgnoreCase(wanted)) {
          return one;
        }
      }
      throw new IOException(
          Keys.HFLUSH + " is \"" + wanted + "\", neither hsync nor ignore nor refuse");
    }
  }

  /** How a file is written. */
  static final class WriteOptions {
    // In place of a base version: there is to be none.
    private static final long EXCLUSIVE = -1;

    private final int mode;
    private final int replicas;
    private final boolean isExclusive;
    private final long base;
    private final int bufferBytes;
    private final Flush flush;

    /** A file of which nothing is there yet, unless another one is to be replaced. */
    static WriteOptions create(
        int mode, int replicas, boolean isExclusive, int bufferBytes, Flush flush) {
      return new WriteOptions(mode, replicas, isExclusive ? EXCLUSIVE : 0, bufferBytes, flush);
    }

    /** The next version of one that was spooled. */
    static WriteOptions after(long base, int mode, int bufferBytes, Flush flush) {
      return new WriteOptions(mode, 0, base, bufferBytes, flush);
    }

    private WriteOptions(int mode, int replicas, long base, int bufferBytes, Flush flush) {
      this.mode = mode;
      this.isExclusive = base == EXCLUSIVE;
      this.base = isExclusive ? 0 : base;
      this.replicas = replicas;
      this.bufferBytes = bufferBytes;
      this.flush = flush;
    }
  }

  /** Permission bits of the file; false if there is one by now, whose own these are. */
  synchronized boolean setMode(int wanted) {
    if (isClosed || base != 0) {
      return false;
    }
    mode = wanted;
    return true;
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
    written.incrementAndGet();
  }

  @Override
  public synchronized void write(byte[] from, int position, int length) throws IOException {
    checkOpen();
    Objects.checkFromIndexSize(position, length, from.length);
    isChanged |= length > 0;
    written.addAndGet(length);
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

  /** Nothing that others see: {@code hflush} is for that. */
  @Override
  public synchronized void flush() throws IOException {
    checkOpen();
  }

  @Override
  public void hflush() throws IOException {
    switch (flush) {
      case HSYNC:
        hsync();
        break;
      case IGNORE:
        flush();
        break;
      default:
        throw new UnsupportedOperationException(
            "hflush: " + Keys.HFLUSH + " is refuse, so " + path + " is not flushed to readers");
    }
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
      base = site.put(path, spool, mode, replicas, isExclusive, base, isPut);
      isExclusive = false;
      isChanged = false;
      isPut = true;
    }
  }

  @Override
  public boolean hasCapability(String capability) {
    return StreamCapabilities.HSYNC.equalsIgnoreCase(capability)
        || (HFLUSH.equalsIgnoreCase(capability) && flush == Flush.HSYNC)
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
      drafts.remove(path, this);
      spool.close();
    }
  }

  @Override
  public String toString() {
    return "NdnOutputStream{" + path + "}";
  }
}
