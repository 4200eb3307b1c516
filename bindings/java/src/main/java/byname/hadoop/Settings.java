package byname.hadoop;

import java.io.IOException;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;

/** Numbers of a configuration. What is none is an error that names the key and the value. */
final class Settings {
  private Settings() {}

  private interface Reader<T> {
    T read();
  }

  private static <T> T read(Configuration conf, String key, Reader<T> reader) throws IOException {
    try {
      return reader.read();
    } catch (IllegalArgumentException e) {
      throw new IOException(key + ": \"" + conf.get(key) + "\" cannot be read as a number", e);
    }
  }

  /** A whole number. */
  static int number(Configuration conf, String key, int usual) throws IOException {
    return read(conf, key, () -> conf.getInt(key, usual));
  }

  /** Octets, with a suffix such as {@code m} if there is one. */
  static long octets(Configuration conf, String key, long usual) throws IOException {
    return read(conf, key, () -> conf.getLongBytes(key, usual));
  }

  /** A time, in seconds where it has no suffix. */
  static long time(Configuration conf, String key, long usualSeconds, TimeUnit unit)
      throws IOException {
    return read(conf, key, () -> conf.getTimeDuration(key, usualSeconds, TimeUnit.SECONDS, unit));
  }

  // Hadoop compares authorities without regard to case and gives all the same instance.
  static String link(String authority, Configuration conf) throws IOException {
    if (authority == null) {
      return null;
    }
    String key = Keys.LINK_PREFIX + authority.toLowerCase(Locale.ROOT);
    String link = conf.getTrimmed(key);
    if (link == null || link.isEmpty()) {
      throw new IOException(
          "ndn://" + authority + ": no link is set in " + key
              + "; a whole name has three slashes: ndn:///" + authority + "/…");
    }
    return link;
  }
}
