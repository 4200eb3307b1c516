package byname.hadoop;

import java.nio.ByteBuffer;

/**
 * Functions of the native library, one for each of {@code byname.h} that is needed. All block; none
 * calls back into Java. Handles are numbers that any thread may use at any time: a closed one fails
 * with EBADF. Failures are {@link NativeException}s.
 */
final class Native {
  private Native() {}

  static native String version();

  /** Opens a session; {@link NativeSession} has the order of texts and numbers. */
  static native long sessionOpen(byte[][] texts, long[] numbers) throws NativeException;

  /** Closes a session and whatever is open in it; calls that run in it end. */
  static native void sessionClose(long session);

  /** Asks for the status of a path, as a {@link Record}. */
  static native byte[] stat(long session, byte[] path) throws NativeException;

  static native long open(long session, byte[] path) throws NativeException;

  static native long list(long session, byte[] path) throws NativeException;

  /** Entries from {@code next} on, as a page of {@link Record}s; an empty page at the end. */
  static native byte[] listingPage(long listing, long next) throws NativeException;

  static native void listingClose(long listing);

  /** Reads into a direct buffer. Returns fewer octets than wanted only where the file ends. */
  static native long readDirect(long file, long offset, ByteBuffer into, int position, int length)
      throws NativeException;

  /** Reads into an array. Returns fewer octets than wanted only where the file ends. */
  static native long readArray(long file, long offset, byte[] into, int position, int length)
      throws NativeException;

  /**
   * Reads many ranges at once, each into a direct buffer or, if that is null, into an array.
   * Returns the octets of all.
   */
  static native long readRanges(
      long file,
      long[] offsets,
      int[] lengths,
      int[] positions,
      ByteBuffer[] buffers,
      byte[][] arrays)
      throws NativeException;

  static native byte[] fileStat(long file) throws NativeException;

  /** Interests, octets received, octets from memory, octets read ahead; false if it is closed. */
  static native boolean fileCounters(long file, long[] into);

  static native void fileClose(long file);
}
