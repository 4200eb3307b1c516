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
 * not at all. Until then nobody sees anything of it, so nothing can be flushed to readers.
 */
final class NdnOutputStream extends OutputStream
    implements Syncable, StreamCapabilities, IOStatisticsSource {
  private final Path path;
  private final NativeSite site;
  private final int mode;
  private final int replicas;
  private final boolean isExclusive;
  private final Spool spool;
  private final byte[] buffer;
  private final IOStatisticsStore counts =
      iostatisticsStore()
          .withCounters(
              StreamStatisticNames.STREAM_WRITE_BYTES, StreamStatisticNames.STREAM_WRITE_EXCEPTIONS)
          .build();
  private int buffered;
  private boolean isClosed;
  private boolean isBroken;

  NdnOutputStream(Path path, NativeSite site, WriteOptions options, Spool spool) {
    this.path = path;
    this.site = site;
    this.mode = options.mode;
    this.replicas = options.replicas;
    this.isExclusive = options.isExclusive;
    this.spool = spool;
    this.buffer = new byte[options.bufferBytes];
  }

  /** How a file is written. */
  static final class WriteOptions {
    private final int mode;
    private final int replicas;
    private final boolean isExclusive;
    private final int bufferBytes;

    WriteOptions(int mode, int replicas, boolean isExclusive, int bufferBytes) {
      this.mode = mode;
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
    counts.incrementCounter(StreamStatisticNames.STREAM_WRITE_BYTES, 1);
  }

  @Override
  public synchronized void write(byte[] from, int position, int length) throws IOException {
    checkOpen();
    Objects.checkFromIndexSize(position, length, from.length);
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
    throw refuse("hflush");
  }

  @Override
  public void hsync() throws IOException {
    throw refuse("hsync");
  }

  private UnsupportedOperationException refuse(String what) {
    return new UnsupportedOperationException(
        what + ": " + path + " is there when it is closed, and not before");
  }

  @Override
  public boolean hasCapability(String capability) {
    return StreamCapabilities.IOSTATISTICS.equalsIgnoreCase(capability);
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
      if (isBroken) {
        throw new IOException(path + ": not written, since an earlier write failed");
      }
      empty();
      site.put(path, spool, mode, replicas, isExclusive);
    } finally {
      spool.close();
    }
  }

  @Override
  public String toString() {
    return "NdnOutputStream{" + path + "}";
  }
}
