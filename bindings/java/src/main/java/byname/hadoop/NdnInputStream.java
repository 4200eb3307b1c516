package byname.hadoop;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.function.IntFunction;
import org.apache.hadoop.fs.ByteBufferPositionedReadable;
import org.apache.hadoop.fs.ByteBufferReadable;
import org.apache.hadoop.fs.CanUnbuffer;
import org.apache.hadoop.fs.FSExceptionMessages;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;

/**
 * One version of a file. Reads at a position may come from many threads at once; those that move
 * the position take turns. Only small ones of these go through the buffer: the native library reads
 * ahead, so the buffer saves crossings, not round trips.
 */
final class NdnInputStream extends FSInputStream
    implements ByteBufferReadable,
        ByteBufferPositionedReadable,
        CanUnbuffer,
        StreamCapabilities,
        IOStatisticsSource {
  private final Path path;
  private final NativeFile file;
  private final long length;
  private final long version;
  private final int usualBytes;
  private final Executor executor;
  private final FileSystem.Statistics statistics;
  private final StreamStatistics counts;

  private volatile boolean isClosed;

  // Guarded by this.
  private int bufferBytes;
  private long position;
  private byte[] buffer;
  private long bufferStart;
  private int bufferFilled;

  /** A stream over a file that is its own to close. */
  NdnInputStream(Path path, NativeFile file, Record status, NdnFileSystem owner) {
    this.path = path;
    this.file = file;
    this.length = status.length();
    this.version = status.version();
    this.usualBytes = owner.bufferBytes();
    this.bufferBytes = usualBytes;
    this.executor = owner.executor();
    this.statistics = owner.statistics();
    this.counts = new StreamStatistics(file);
  }

  /** The version that is open. */
  String etag() {
    return NdnFileStatus.etag(version);
  }

  /** Takes what a program says of how it will read; before anything is read. */
  synchronized void readAs(ReadPolicy policy) {
    bufferBytes = policy.bufferBytes(usualBytes, length);
  }

  @Override
  public synchronized void seek(long target) throws IOException {
    checkOpen();
    if (target < 0) {
      throw new EOFException(FSExceptionMessages.NEGATIVE_SEEK + " " + target + " in " + path);
    }
    if (target > length) {
      throw new EOFException(
          FSExceptionMessages.CANNOT_SEEK_PAST_EOF + ": " + target + " of " + length + " in "
              + path);
    }
    if (target != position) {
      counts.increment(StreamStatisticNames.STREAM_READ_SEEK_OPERATIONS, 1);
      position = target;
    }
  }

  @Override
  public synchronized long getPos() {
    return position;
  }

  /** A name has no second source to choose. */
  @Override
  public boolean seekToNewSource(long target) {
    return false;
  }

  @Override
  public synchronized int available() throws IOException {
    checkOpen();
    return (int) Math.min(length - position, Integer.MAX_VALUE);
  }

  @Override
  public synchronized int read() throws IOException {
    checkOpen();
    if (position >= length || !fill()) {
      return -1;
    }
    int octet = buffer[(int) (position - bufferStart)] & 0xff;
    position++;
    count(1);
    return octet;
  }

  @Override
  public synchronized int read(byte[] into, int offset, int wanted) throws IOException {
    checkOpen();
    Objects.checkFromIndexSize(offset, wanted, into.length);
    if (wanted == 0) {
      return 0;
    }
    if (position >= length) {
      return -1;
    }
    int done;
    if (buffered() == 0 && wanted >= bufferBytes) {
      done = file.read(position, into, offset, wanted);
    } else {
      done = fill() ? Math.min(buffered(), wanted) : 0;
      System.arraycopy(buffer, (int) (position - bufferStart), into, offset, done);
    }
    position += done;
    count(done);
    return done == 0 ? -1 : done;
  }

  @Override
  public synchronized int read(ByteBuffer into) throws IOException {
    checkOpen();
    if (!into.hasRemaining()) {
      return 0;
    }
    int done = readAt(position, into);
    position += Math.max(done, 0);
    return done;
  }

  @Override
  public int read(long from, byte[] into, int offset, int wanted) throws IOException {
    checkOpen();
    validatePositionedReadArgs(from, into, offset, wanted);
    if (wanted == 0) {
      return 0;
    }
    if (from >= length) {
      return -1;
    }
    int done = file.read(from, into, offset, wanted);
    count(done);
    return done == 0 ? -1 : done;
  }

  @Override
  public void readFully(long from, byte[] into, int offset, int wanted) throws IOException {
    if (read(from, into, offset, wanted) < wanted) {
      throw new EOFException(FSExceptionMessages.EOF_IN_READ_FULLY + ": " + path);
    }
  }

  @Override
  public int read(long from, ByteBuffer into) throws IOException {
    checkOpen();
    if (from < 0) {
      throw new EOFException(FSExceptionMessages.NEGATIVE_SEEK + " " + from + " in " + path);
    }
    return into.hasRemaining() ? readAt(from, into) : 0;
  }

  @Override
  public void readFully(long from, ByteBuffer into) throws IOException {
    int wanted = into.remaining();
    if (read(from, into) < wanted) {
      throw new EOFException(FSExceptionMessages.EOF_IN_READ_FULLY + ": " + path);
    }
  }

  @Override
  public void readVectored(
      List<? extends FileRange> ranges, IntFunction<ByteBuffer> allocate) throws IOException {
    checkOpen();
    counts.increment(StreamStatisticNames.STREAM_READ_VECTORED_OPERATIONS, 1);
    counts.increment(StreamStatisticNames.STREAM_READ_VECTORED_INCOMING_RANGES, ranges.size());
    VectoredRead.start(file, length, ranges, allocate, executor, this::count);
  }

  /** Gives up the buffer; the next read makes another. */
  @Override
  public synchronized void unbuffer() {
    counts.increment(StreamStatisticNames.STREAM_READ_UNBUFFERED, 1);
    buffer = null;
    bufferFilled = 0;
  }

  @Override
  public void close() {
    // Without the lock: a read that waits for the network does not hold up whoever closes.
    isClosed = true;
    counts.close();
    file.close();
  }

  @Override
  public boolean hasCapability(String capability) {
    switch (capability.toLowerCase(Locale.ROOT)) {
      case StreamCapabilities.READBYTEBUFFER:
      case StreamCapabilities.PREADBYTEBUFFER:
      case StreamCapabilities.UNBUFFER:
      case StreamCapabilities.VECTOREDIO:
      case StreamCapabilities.IOSTATISTICS:
        return true;
      default:
        return false;
    }
  }

  @Override
  public IOStatistics getIOStatistics() {
    return counts.current();
  }

  @Override
  public String toString() {
    return path + " (" + length + " octets)";
  }

  private int readAt(long from, ByteBuffer into) throws IOException {
    if (from >= length) {
      return -1;
    }
    int done = file.read(from, into);
    count(done);
    return done == 0 ? -1 : done;
  }

  /** Octets in the buffer from the position on. */
  private int buffered() {
    boolean isInside = position >= bufferStart && position < bufferStart + bufferFilled;
    return isInside ? (int) (bufferStart + bufferFilled - position) : 0;
  }

  /** Makes sure that something is buffered from the position on; false at the end of the file. */
  private boolean fill() throws IOException {
    if (buffered() > 0) {
      return true;
    }
    if (buffer == null) {
      buffer = new byte[bufferBytes];
    }
    bufferFilled = 0;
    bufferFilled = file.read(position, buffer, 0, buffer.length);
    bufferStart = position;
    return bufferFilled > 0;
  }

  private void count(long octets) {
    if (octets > 0) {
      statistics.incrementBytesRead(octets);
    }
    counts.read(Math.max(octets, 0));
  }

  private void checkOpen() throws IOException {
    if (isClosed) {
      throw new IOException(path + ": " + FSExceptionMessages.STREAM_IS_CLOSED);
    }
  }
}
