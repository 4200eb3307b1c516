package byname.hadoop;

import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Options.OpenFileOptions;

/**
 * How a program says that it reads a file: {@code fs.option.openfile.read.policy}. It decides how
 * much a read fetches that is smaller than that; what is read ahead follows from the reads
 * themselves, whatever was said.
 */
enum ReadPolicy {
  /** Nothing is said: the buffer of the configuration. */
  ADAPTIVE,
  /** Here and there: no more than has to be fetched and verified at once. */
  RANDOM,
  /** From one end to the other: the first read has much in flight already. */
  SEQUENTIAL;

  /** Octets that are verified together. */
  static final int UNIT_BYTES = 8 << 10;

  /** Octets in flight for a sequential reader before readahead has seen that he is one. */
  static final int SEQUENTIAL_BYTES = 1 << 20;

  /** The first one of a list that is known here, as Hadoop wants it; none of them is none. */
  static ReadPolicy of(Configuration options) {
    String wanted = options.get(OpenFileOptions.FS_OPTION_OPENFILE_READ_POLICY, "");
    for (String policy : wanted.toLowerCase(Locale.ROOT).split(",")) {
      switch (policy.trim()) {
        case "random":
        case "vector":
        case "columnar":
        case "orc":
        case "parquet":
        case "hbase":
          return RANDOM;
        case "sequential":
        case "whole-file":
        case "avro":
        case "csv":
        case "json":
          return SEQUENTIAL;
        case "adaptive":
        case "default":
          return ADAPTIVE;
        default:
          // For another file system; the next one may be for this.
      }
    }
    return ADAPTIVE;
  }

  /** Octets of the buffer of a file, where the configuration says so many. */
  int bufferBytes(int usual, long length) {
    switch (this) {
      case RANDOM:
        return Math.min(usual, UNIT_BYTES);
      case SEQUENTIAL:
        return (int) Math.max(1, Math.min(Math.max(usual, SEQUENTIAL_BYTES), length));
      default:
        return usual;
    }
  }
}
