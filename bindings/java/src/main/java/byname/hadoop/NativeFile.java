package byname.hadoop;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import org.apache.hadoop.fs.Path;

/**
 * One version of a file, open for reading. Safe for threads, also to close it while others read:
 * what has begun comes to its end, what comes later is told that it is closed.
 */
final class NativeFile implements AutoCloseable {
  /**
   * Octets of one crossing that fills an array, for which the library takes memory of its own.
   * Longer reads are several; readahead keeps the requests in flight between them.
   */
  private static final int ARRAY_BYTES_MAX = 4 << 20;

  private static final int COUNTERS = 4;

  // Closed when it is forgotten, and not before what was opened with it.
  @SuppressWarnings("unused")
  private final Object owner;

  private final Path path;
  private final long handle;
  private final Cleaner.Cleanable closing;

  /** A file of a session or a site. */
  NativeFile(Object owner, Path path, long handle) {
    this.owner = owner;
    this.path = path;
    this.handle = handle;
    this.closing = NativeSession.closeWith(this, handle, Native::fileClose);
  }

  Record stat() throws IOException {
    try {
      return Record.one(Native.fileStat(handle));
    } catch (NativeException e) {
      throw Failures.of(path, e);
    }
  }

  /** Fills an array as far as the file goes. Returns the octets read. */
  int read(long offset, byte[] into, int position, int length) throws IOException {
    int done = 0;
    try {
      while (done < length) {
        int wanted = Math.min(length - done, ARRAY_BYTES_MAX);
        int count = (int) Native.readArray(handle, offset + done, into, position + done, wanted);
        done += count;
        if (count < wanted) {
          break;
        }
      }
      return done;
    } catch (NativeException e) {
      throw Failures.of(path, offset, e);
    } finally {
      // Not closed by the cleaner between two of the calls.
      Reference.reachabilityFence(this);
    }
  }

  /** Fills a buffer as far as the file goes, and moves its position. Returns the octets read. */
  int read(long offset, ByteBuffer into) throws IOException {
    int length = into.remaining();
    int count;
    refuseReadOnly(into);
    if (into.isDirect()) {
      try {
        count = (int) Native.readDirect(handle, offset, into, into.position(), length);
      } catch (NativeException e) {
        throw Failures.of(path, offset, e);
      }
    } else {
      count = read(offset, into.array(), into.arrayOffset() + into.position(), length);
    }
    into.position(into.position() + count);
    return count;
  }

  /**
   * Reads from each offset as many octets as its buffer has room for, all in one go. Positions of
   * the buffers stay. Returns the octets of all.
   */
  long read(long[] offsets, ByteBuffer[] into) throws IOException {
    int[] lengths = new int[into.length];
    int[] positions = new int[into.length];
    ByteBuffer[] buffers = new ByteBuffer[into.length];
    byte[][] arrays = new byte[into.length][];
    for (int at = 0; at < into.length; at++) {
      ByteBuffer buffer = into[at];
      refuseReadOnly(buffer);
      lengths[at] = buffer.remaining();
      positions[at] = buffer.position();
      if (buffer.isDirect()) {
        buffers[at] = buffer;
      } else {
        arrays[at] = buffer.array();
        positions[at] += buffer.arrayOffset();
      }
    }
    try {
      return Native.readRanges(handle, offsets, lengths, positions, buffers, arrays);
    } catch (NativeException e) {
      throw Failures.of(path, offsets[0], e);
    }
  }

  private static void refuseReadOnly(ByteBuffer buffer) {
    if (buffer.isReadOnly()) {
      throw new ReadOnlyBufferException();
    }
  }

  /** What was needed so far, as {@link Native#fileCounters} has it; null if it is closed. */
  long[] counters() {
    long[] counters = new long[COUNTERS];
    return Native.fileCounters(handle, counters) ? counters : null;
  }

  @Override
  public void close() {
    closing.clean();
  }
}
