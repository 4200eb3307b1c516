package byname.hadoop;

import java.io.IOException;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CompositeCrcFileChecksum;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.util.DataChecksum;

/** The checksum that programs are given of a file: {@code fs.ndn.checksum}. */
enum ChecksumKind {
  BLAKE3,
  COMPOSITE_CRC32C;

  private static final int CRC_CHUNK_BYTES = 512;

  static ChecksumKind of(Configuration conf) throws IOException {
    String wanted = conf.getTrimmed(Keys.CHECKSUM, "blake3");
    switch (wanted.toLowerCase(Locale.ROOT)) {
      case "blake3":
        return BLAKE3;
      case "composite-crc32c":
        return COMPOSITE_CRC32C;
      default:
        throw new IOException(
            Keys.CHECKSUM + " is \"" + wanted + "\", neither blake3 nor composite-crc32c");
    }
  }

  /** What the publisher has signed of the whole content; null if there is none. */
  FileChecksum of(Record record) {
    if (this == COMPOSITE_CRC32C) {
      Integer crc = record.crc32c();
      return crc == null
          ? null
          : new CompositeCrcFileChecksum(crc, DataChecksum.Type.CRC32C, CRC_CHUNK_BYTES);
    }
    return record.root() == null ? null : new NdnFileChecksum(record.root());
  }
}
