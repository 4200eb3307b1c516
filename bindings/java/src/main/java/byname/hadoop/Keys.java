package byname.hadoop;

/** Keys of the configuration. docs/hadoop.md has what they mean. */
final class Keys {
  /** With the authority behind it: the link that {@code ndn://AUTHORITY/} stands for. */
  static final String LINK_PREFIX = "fs.ndn.link.";

  static final String HOME = "fs.ndn.home";
  static final String CONFIG_FILE = "fs.ndn.config";
  static final String CONNECT = "fs.ndn.connect";
  static final String UNKNOWN_KEYS = "fs.ndn.unknown-keys";
  static final String FRESHNESS = "fs.ndn.freshness";
  static final String CONNECT_WAIT = "fs.ndn.connect.wait";
  static final String TIMEOUT = "fs.ndn.timeout";
  static final String RETRIES = "fs.ndn.retries";
  static final String CACHE_BYTES = "fs.ndn.cache";
  static final String NODE_BYTES = "fs.ndn.nodes";
  static final String READAHEAD_BYTES = "fs.ndn.readahead";
  static final String IDENTITY = "fs.ndn.identity";
  static final String TOKEN_LIFETIME = "fs.ndn.token.lifetime";
  static final String SPOOL = "fs.ndn.spool.dir";
  static final String HFLUSH = "fs.ndn.hflush";
  static final String REPLICATION = "fs.ndn.replication";
  static final String BLOCK_BYTES = "fs.ndn.block.size";
  static final String BUFFER_BYTES = "fs.ndn.buffer";
  static final String THREADS = "fs.ndn.threads";
  static final String CHECKSUM = "fs.ndn.checksum";

  /** Seconds: tasks begin while a forwarder is started again. */
  static final long CONNECT_WAIT_DEFAULT = 5;

  /** Seconds. */
  static final long TOKEN_LIFETIME_DEFAULT = 24 * 60 * 60;

  static final long BLOCK_BYTES_DEFAULT = 128L << 20;
  static final int BUFFER_BYTES_DEFAULT = 64 << 10;
  static final int THREADS_DEFAULT = 16;

  /** Value of {@link #IDENTITY} for who only reads. */
  static final String IDENTITY_NONE = "none";

  private Keys() {}
}
