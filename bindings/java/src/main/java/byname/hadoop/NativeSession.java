package byname.hadoop;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;

/** A session of the native library, opened with what a configuration says. Safe for threads. */
final class NativeSession implements AutoCloseable {
  private static final Cleaner CLEANER = Cleaner.create();
  private static final List<String> UNKNOWN_KEYS =
      Arrays.asList("refuse", "first-use", "insecure");
  private static final List<String> FRESHNESS = Arrays.asList("preferred", "required", "offline");

  /** BYNAME_NONE: where 0 would mean the default. */
  private static final long NONE = -1;

  private static final long CONNECT_PAUSE_MS = 100;

  private final long handle;
  private final Cleaner.Cleanable closing;

  private NativeSession(long handle) {
    this.handle = handle;
    this.closing = closeWith(this, handle, Native::sessionClose);
  }

  /**
   * Opens a session for a link, or for whole names if it is null. It acts with a key that was lent,
   * if there is one, or with those of the key directory.
   */
  static NativeSession open(Path root, String link, byte[] loan, Configuration conf)
      throws IOException {
    NativeLibrary.load();
    // The order is that of jni_session.c.
    byte[][] texts = {
      octets(root, link),
      octets(root, conf.getTrimmed(Keys.HOME)),
      octets(root, conf.getTrimmed(Keys.CONFIG_FILE)),
      octets(root, conf.getTrimmed(Keys.CONNECT)),
      loan,
    };
    long[] numbers = {
      choice(conf, Keys.UNKNOWN_KEYS, UNKNOWN_KEYS),
      choice(conf, Keys.FRESHNESS, FRESHNESS),
      Math.max(Settings.number(conf, Keys.RETRIES, 0), 0),
      Settings.time(conf, Keys.TIMEOUT, 0, TimeUnit.MILLISECONDS),
      size(conf, Keys.CACHE_BYTES),
      size(conf, Keys.NODE_BYTES),
      size(conf, Keys.READAHEAD_BYTES),
    };
    long wait =
        Settings.time(
            conf, Keys.CONNECT_WAIT, Keys.CONNECT_WAIT_DEFAULT, TimeUnit.NANOSECONDS);
    long start = System.nanoTime();
    while (true) {
      try {
        return new NativeSession(Native.sessionOpen(texts, numbers));
      } catch (NativeException e) {
        boolean isRestart = e.errno() == Errno.ECONNREFUSED || e.errno() == Errno.ECONNRESET;
        if (!isRestart || System.nanoTime() - start >= wait) {
          throw Failures.of(root, e);
        }
      }
      pause();
    }
  }

  private static void pause() throws InterruptedIOException {
    try {
      TimeUnit.MILLISECONDS.sleep(CONNECT_PAUSE_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while waiting for the forwarder");
    }
  }

  /** Closes a native handle when its owner is forgotten, or sooner by {@code clean}. */
  static Cleaner.Cleanable closeWith(Object owner, long handle, LongConsumer close) {
    return CLEANER.register(owner, () -> close.accept(handle));
  }

  private static long choice(Configuration conf, String key, List<String> choices)
      throws IOException {
    String wanted = conf.getTrimmed(key, choices.get(0)).toLowerCase(Locale.ROOT);
    int index = choices.indexOf(wanted);
    if (index < 0) {
      throw new IOException(key + " is \"" + wanted + "\", not one of " + choices);
    }
    return index;
  }

  private static long size(Configuration conf, String key) throws IOException {
    String wanted = conf.getTrimmed(key);
    if (wanted == null) {
      return 0;
    }
    if (wanted.equals("none")) {
      return NONE;
    }
    long bytes = Settings.octets(conf, key, 0);
    if (bytes <= 0) {
      throw new IOException(key + " is \"" + wanted + "\", neither a size nor \"none\"");
    }
    return bytes;
  }

  /** The octets of a text; refuses what has none, or a NUL among them. */
  static byte[] octets(Path path, String text) throws IOException {
    if (text == null) {
      return null;
    }
    if (text.indexOf('\0') >= 0) {
      throw new PathIOException(path.toString(), "has a NUL in it");
    }
    try {
      ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      return Arrays.copyOf(encoded.array(), encoded.limit());
    } catch (CharacterCodingException e) {
      throw new PathIOException(path.toString(), "has half of a surrogate pair in it");
    }
  }

  static byte[] octets(Path path) throws IOException {
    return octets(path, path.toUri().getPath());
  }

  /** The user at the site above a path; null if there is no key here for one. */
  NativeSite site(Path path, String user) throws IOException {
    try {
      return new NativeSite(this, Native.siteOpen(handle, octets(path), octets(path, user)));
    } catch (NativeException e) {
      if (e.errno() == Errno.ENOKEY && user == null) {
        return null;
      }
      throw Failures.of(path, e);
    }
  }

  Record stat(Path path) throws IOException {
    try {
      return Record.one(Native.stat(handle, octets(path)));
    } catch (NativeException e) {
      throw Failures.of(path, e);
    }
  }

  NativeFile open(Path path) throws IOException {
    try {
      return new NativeFile(this, path, Native.open(handle, octets(path)));
    } catch (NativeException e) {
      throw Failures.of(path, e);
    }
  }

  /** Opens a listing; null if the path is a file. */
  NativeListing list(Path path) throws IOException {
    try {
      return new NativeListing(this, path, Native.list(handle, octets(path)));
    } catch (NativeException e) {
      if (e.errno() == Errno.ENOTDIR) {
        return null;
      }
      throw Failures.of(path, e);
    }
  }

  @Override
  public void close() {
    closing.clean();
  }
}
