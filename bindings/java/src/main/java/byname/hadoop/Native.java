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

  /** Makes of a session a user at the site above a path; null for the one whose key is here. */
  static native long siteOpen(long session, byte[] path, byte[] user) throws NativeException;

  static native void siteClose(long site);

  /** The user and the URI of the site, each with a NUL behind it. */
  static native byte[] siteNames(long site) throws NativeException;

  /** Status as the head has it now, as a {@link Record}. */
  static native byte[] siteStat(long site, byte[] path) throws NativeException;

  /**
   * Entries behind the one of this name, as a page of {@link Record}s. The number becomes 1 if there
   * may be more.
   */
  static native byte[] siteEntries(long site, byte[] path, byte[] after, long[] more)
      throws NativeException;

  /** Opens a file in the version that the head has now. */
  static native long siteOpenFile(long site, byte[] path) throws NativeException;

  /** Makes a directory and what is missing above it. */
  static native void siteMakePath(long site, byte[] path, int mode) throws NativeException;

  static native void siteRename(long site, byte[] from, byte[] to, boolean isExclusive)
      throws NativeException;

  static native void siteRemove(long site, byte[] path, boolean isRecursive)
      throws NativeException;

  /** Changes what is not null, a mode of -1 and a time of -1 (in nanoseconds) staying. */
  static native void siteChange(
      long site, byte[] path, int mode, long timeNanos, byte[] owner, byte[] group)
      throws NativeException;

  static native void siteSetReplicas(long site, byte[] path, int replicas) throws NativeException;

  /** Sets an attribute: 0 in any case, 1 if it is not there, 2 if it is. */
  static native void siteSetXattr(long site, byte[] path, byte[] name, byte[] value, int when)
      throws NativeException;

  static native byte[] siteGetXattr(long site, byte[] path, byte[] name) throws NativeException;

  /** Names of attributes, each with a NUL behind it. */
  static native byte[] siteListXattrs(long site, byte[] path) throws NativeException;

  static native void siteRemoveXattr(long site, byte[] path, byte[] name) throws NativeException;

  /** The list of a file or directory and that of what is made in it, each with a NUL behind it. */
  static native byte[] siteGetAcl(long site, byte[] path) throws NativeException;

  /** Sets and removes entries: 1 of the list of what is made in it, 2 beginning with a mode's. */
  static native void siteChangeAcl(long site, byte[] path, byte[] set, byte[] remove, int flags)
      throws NativeException;

  /** Octets that there can be, are, and are left. */
  static native long[] siteRoom(long site, byte[] path) throws NativeException;

  /** Servers that have the file, each with a NUL behind it. */
  static native byte[] siteServers(long site, byte[] path) throws NativeException;

  static native void siteTruncate(long site, byte[] path, long size) throws NativeException;

  /**
   * Writes what was spooled as a file, in the place of a version unless that is 0. Returns the new
   * version.
   *
   * @param isGrown whether this spool was put before, and has only more behind that by now
   */
  static native long sitePut(
      long site,
      byte[] path,
      int spool,
      int mode,
      int replicas,
      boolean isExclusive,
      long base,
      boolean isGrown)
      throws NativeException;

  /** An empty file in a directory that nobody else sees, and that goes when it is closed. */
  static native int spoolOpen(byte[] directory) throws NativeException;

  static native void spoolWrite(int spool, byte[] from, int position, int length)
      throws NativeException;

  static native void spoolClose(int spool);

  /** Makes a key that signs for the user for so many seconds: a text, which is a secret. */
  static native byte[] siteLend(long site, long seconds) throws NativeException;

  /** User, URI of the site, digest of the key and end in nanoseconds, each with a NUL behind it. */
  static native byte[] loanTexts(byte[] loan) throws NativeException;

  /** Until when the key that signs is lent, in nanoseconds; 0 if it is not. */
  static native long siteLentUntil(long site) throws NativeException;

  /** Ends the loan of the key that signs; false if it is lent no more. */
  static native boolean siteRecall(long site) throws NativeException;
}
