package byname.hadoop;

import static org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding.dynamicIOStatistics;
import static org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding.iostatisticsStore;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;
import org.apache.hadoop.fs.statistics.impl.DynamicIOStatisticsBuilder;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsStore;

/** Counts of one stream: calls and octets here, Interests and octets on the wire in the library. */
final class StreamStatistics {
  /** Names of {@link Native#fileCounters}, in its order. */
  private static final String[] NATIVE = {
    "ndn_interests", "ndn_received_bytes", "ndn_cached_bytes", "ndn_prefetched_bytes"
  };

  private final NativeFile file;
  private final IOStatisticsStore counted =
      iostatisticsStore()
          .withCounters(
              StreamStatisticNames.STREAM_READ_BYTES,
              StreamStatisticNames.STREAM_READ_OPERATIONS,
              StreamStatisticNames.STREAM_READ_SEEK_OPERATIONS,
              StreamStatisticNames.STREAM_READ_UNBUFFERED,
              StreamStatisticNames.STREAM_READ_VECTORED_OPERATIONS,
              StreamStatisticNames.STREAM_READ_VECTORED_INCOMING_RANGES)
          .build();

  // Of each read: without a look for their names.
  private final AtomicLong bytes =
      counted.getCounterReference(StreamStatisticNames.STREAM_READ_BYTES);
  private final AtomicLong operations =
      counted.getCounterReference(StreamStatisticNames.STREAM_READ_OPERATIONS);

  // What the library had counted when the file was closed.
  private volatile long[] last = new long[NATIVE.length];
  private final IOStatistics current;

  StreamStatistics(NativeFile file) {
    this.file = file;
    this.current = live();
  }

  void increment(String counter, long by) {
    counted.incrementCounter(counter, by);
  }

  /** Counts a read of so many octets. */
  void read(long octets) {
    bytes.addAndGet(octets);
    operations.incrementAndGet();
  }

  /** Keeps the library's counts; the file is about to be closed. */
  void close() {
    nativeCounts();
  }

  /** The counts, which go on. */
  IOStatistics current() {
    return current;
  }

  private IOStatistics live() {
    DynamicIOStatisticsBuilder builder = dynamicIOStatistics();
    for (String key : counted.counters().keySet()) {
      builder.withAtomicLongCounter(key, counted.getCounterReference(key));
    }
    for (int at = 0; at < NATIVE.length; at++) {
      int index = at;
      builder.withLongFunctionCounter(NATIVE[at], key -> nativeCounts()[index]);
    }
    return builder.build();
  }

  private long[] nativeCounts() {
    long[] counts = file.counters();
    if (counts != null) {
      last = counts;
    }
    return last;
  }
}
