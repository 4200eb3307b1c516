package byname.hadoop;

import static org.apache.hadoop.fs.statistics.IOStatisticsSupport.snapshotIOStatistics;
import static org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding.iostatisticsStore;

import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSnapshot;
import org.apache.hadoop.fs.statistics.StreamStatisticNames;
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

  // What the library had counted when the file was closed.
  private volatile long[] last = new long[NATIVE.length];

  StreamStatistics(NativeFile file) {
    this.file = file;
  }

  void increment(String counter, long by) {
    counted.incrementCounter(counter, by);
  }

  /** Keeps the library's counts; the file is about to be closed. */
  void close() {
    nativeCounts();
  }

  IOStatistics current() {
    IOStatisticsSnapshot snapshot = snapshotIOStatistics(counted);
    long[] counts = nativeCounts();
    for (int at = 0; at < NATIVE.length; at++) {
      snapshot.counters().put(NATIVE[at], counts[at]);
    }
    return snapshot;
  }

  private long[] nativeCounts() {
    long[] counts = file.counters();
    if (counts != null) {
      last = counts;
    }
    return last;
  }
}
