package byname.hadoop;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.IntFunction;
import java.util.function.LongConsumer;
import org.apache.hadoop.fs.FileRange;

/**
 * Many ranges of a file in one call of the library, so that all their requests are in flight
 * together and every unit of the file travels once. Nothing is merged here: ranges that lie next to
 * each other cost no more than one.
 *
 * <p>Heap buffers are filled from memory of the library, so a call has a bound; more are several.
 */
final class VectoredRead {
  private static final long CALL_BYTES_MAX = 64L << 20;
  private static final int CALL_RANGES_MAX = 8192;

  private final NativeFile file;
  private final List<CompletableFuture<ByteBuffer>> results = new ArrayList<>();
  private final List<ByteBuffer> given = new ArrayList<>();
  private final List<ByteBuffer> windows = new ArrayList<>();
  private final List<Long> offsets = new ArrayList<>();
  private long bytes;

  private VectoredRead(NativeFile file) {
    this.file = file;
  }

  /** Gives every range its future, and lets the executor read. */
  static void start(
      NativeFile file,
      long fileBytes,
      List<? extends FileRange> ranges,
      IntFunction<ByteBuffer> allocate,
      Executor executor,
      LongConsumer count)
      throws IOException {
    List<VectoredRead> calls = new ArrayList<>();
    VectoredRead call = null;
    for (FileRange range : checked(ranges, fileBytes)) {
      ByteBuffer buffer = allocate.apply(range.getLength());
      CompletableFuture<ByteBuffer> result = new CompletableFuture<>();
      range.setData(result);
      if (range.getLength() == 0) {
        result.complete(buffer);
        continue;
      }
      if (call == null || call.isFull(range.getLength())) {
        call = new VectoredRead(file);
        calls.add(call);
      }
      call.add(range.getOffset(), range.getLength(), buffer, result);
    }
    for (VectoredRead each : calls) {
      executor.execute(() -> each.run(count));
    }
  }

  /** The ranges by offset. Refuses those that are no part of the file, and any that overlap. */
  private static List<? extends FileRange> checked(
      List<? extends FileRange> ranges, long fileBytes) throws EOFException {
    List<FileRange> sorted = new ArrayList<>(ranges.size());
    for (FileRange range : ranges) {
      if (range.getLength() < 0) {
        throw new IllegalArgumentException("length below zero: " + range);
      }
      if (range.getOffset() < 0) {
        throw new EOFException("offset below zero: " + range);
      }
      if (range.getOffset() > fileBytes - range.getLength()) {
        throw new EOFException("beyond the end of the file (" + fileBytes + "): " + range);
      }
      sorted.add(range);
    }
    sorted.sort(Comparator.comparingLong(FileRange::getOffset));
    for (int at = 1; at < sorted.size(); at++) {
      FileRange before = sorted.get(at - 1);
      if (before.getOffset() + before.getLength() > sorted.get(at).getOffset()) {
        throw new IllegalArgumentException("overlapping: " + before + " and " + sorted.get(at));
      }
    }
    return sorted;
  }

  private boolean isFull(int more) {
    return windows.size() == CALL_RANGES_MAX || bytes + more > CALL_BYTES_MAX;
  }

  private void add(
      long offset, int length, ByteBuffer buffer, CompletableFuture<ByteBuffer> result) {
    // An allocator may hand out more than was asked for.
    buffer.limit(buffer.position() + length);
    offsets.add(offset);
    windows.add(buffer.duplicate());
    given.add(buffer);
    results.add(result);
    bytes += length;
  }

  private void run(LongConsumer count) {
    try {
      long[] from = offsets.stream().mapToLong(Long::longValue).toArray();
      long filled = file.read(from, windows.toArray(new ByteBuffer[0]));
      if (filled != bytes) {
        throw new EOFException("the file ended after " + filled + " octets of " + bytes);
      }
      count.accept(filled);
      for (int at = 0; at < results.size(); at++) {
        results.get(at).complete(given.get(at));
      }
    } catch (IOException | RuntimeException | Error e) {
      results.forEach(result -> result.completeExceptionally(e));
    }
  }
}
