package byname.hadoop;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Status of one version of a file or directory, taken from the octets that C has made. */
final class Record {
  static final int KIND_DIRECTORY = 2;
  static final int KIND_SYMLINK = 3;

  // Bits of `present`, as in byname.h.
  private static final int HAS_SIZE = 2;
  private static final int HAS_MTIME = 4;
  private static final int HAS_MODE = 8;
  private static final int HAS_ROOT = 16;
  private static final int HAS_CRC32C = 512;
  private static final int HAS_REPLICAS = 0x4000;

  private static final int ROOT_BYTES = 32;
  private static final int CRC_BYTES = 4;
  private static final long NANOS_IN_MILLI = 1_000_000;

  private final int kind;
  private final int present;
  private final long version;
  private final long size;
  private final long mtimeNanos;
  private final int mode;
  private final int replicas;
  private final byte[] root = new byte[ROOT_BYTES];
  private final byte[] crc32c = new byte[CRC_BYTES];
  private final byte[] nameOctets;
  private final String name;
  private final String owner;
  private final String group;
  private final String linkTarget;

  // The order is that of jni_records.c.
  private Record(ByteBuffer from) {
    kind = (int) from.getLong();
    present = (int) from.getLong();
    version = from.getLong();
    size = from.getLong();
    mtimeNanos = from.getLong();
    mode = (int) from.getLong();
    replicas = (int) from.getLong();
    from.get(root);
    from.get(crc32c);
    nameOctets = octets(from);
    name = text(nameOctets);
    owner = text(octets(from));
    group = text(octets(from));
    linkTarget = text(octets(from));
  }

  static Record one(byte[] octets) {
    return new Record(ByteBuffer.wrap(octets).order(ByteOrder.nativeOrder()));
  }

  static List<Record> page(byte[] octets) {
    ByteBuffer from = ByteBuffer.wrap(octets).order(ByteOrder.nativeOrder());
    int count = (int) from.getLong();
    List<Record> records = new ArrayList<>(count);
    for (int at = 0; at < count; at++) {
      records.add(new Record(from));
    }
    return records;
  }

  private static byte[] octets(ByteBuffer from) {
    int length = from.getInt();
    if (length < 0) {
      return null;
    }
    byte[] octets = new byte[length];
    from.get(octets);
    return octets;
  }

  // A text that is no UTF-8 is one that Java has no string for: null.
  private static String text(byte[] octets) {
    if (octets == null) {
      return null;
    }
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(octets)).toString();
    } catch (CharacterCodingException e) {
      return null;
    }
  }

  /** Name of an entry of a listing, null if it is no UTF-8. */
  String name() {
    return name;
  }

  /** Name of an entry of a listing, whatever octets it has. */
  byte[] nameOctets() {
    return nameOctets;
  }

  boolean isDirectory() {
    return kind == KIND_DIRECTORY;
  }

  /** True if a listing says all that a status needs; if not, the file has to be asked for. */
  boolean isWhole() {
    return kind != KIND_SYMLINK && (isDirectory() || has(HAS_SIZE));
  }

  /** Octets of a file; a directory has none, as in HDFS. */
  long length() {
    return isDirectory() ? 0 : size;
  }

  boolean isSymlink() {
    return kind == KIND_SYMLINK;
  }

  /** What a symbolic link says; null if it is no UTF-8. */
  String linkTarget() {
    return linkTarget;
  }

  /** Replicas that a site shall have of a file; 1 of what is published otherwise. */
  int replicas() {
    return has(HAS_REPLICAS) ? replicas : 1;
  }

  long version() {
    return version;
  }

  long modificationMillis() {
    return has(HAS_MTIME) ? mtimeNanos / NANOS_IN_MILLI : 0;
  }

  /** Permission bits, or what everybody may do with published things if the publisher says none. */
  int permissions() {
    if (has(HAS_MODE)) {
      return mode & 0777;
    }
    return isDirectory() ? 0555 : 0444;
  }

  String owner() {
    return owner == null ? "" : owner;
  }

  String group() {
    return group == null ? "" : group;
  }

  /** BLAKE3 of the content, null if the publisher has not computed it yet. */
  byte[] root() {
    return has(HAS_ROOT) ? root : null;
  }

  /** CRC-32C of the content, null if the publisher has signed none. */
  Integer crc32c() {
    return has(HAS_CRC32C) ? Integer.valueOf(ByteBuffer.wrap(crc32c).getInt()) : null;
  }

  private boolean has(int bit) {
    return (present & bit) != 0;
  }
}
