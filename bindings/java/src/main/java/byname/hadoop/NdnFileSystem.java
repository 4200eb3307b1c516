package byname.hadoop;

import static org.apache.hadoop.fs.statistics.impl.IOStatisticsBinding.iostatisticsStore;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadPoolExecutor;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.impl.OpenFileParameters;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.fs.statistics.StoreStatisticNames;
import org.apache.hadoop.fs.statistics.impl.IOStatisticsStore;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.util.functional.RemoteIterators;

/**
 * Files by name: {@code ndn:///lab/run7/x} is the name {@code /lab/run7/x}, and {@code ndn://lab/x}
 * is {@code /x} below the link that {@code fs.ndn.link.lab} has. Every octet that is delivered was
 * verified against its publisher's signature. In a site for which there is a key here, files are
 * written, too, and what is read is what the head of the site says now.
 *
 * <p>An instance has one session of the native library, with its connection, caches and trust.
 */
public class NdnFileSystem extends HandleFileSystem implements IOStatisticsSource {
  /** The scheme of these URIs. */
  public static final String SCHEME = "ndn";

  private final IOStatisticsStore counts =
      iostatisticsStore()
          .withCounters(
              StoreStatisticNames.OP_OPEN,
              StoreStatisticNames.OP_GET_FILE_STATUS,
              StoreStatisticNames.OP_LIST_STATUS,
              StoreStatisticNames.OP_GET_FILE_CHECKSUM,
              StoreStatisticNames.OP_GET_CONTENT_SUMMARY)
          .withCounters(SiteFileSystem.OPERATIONS)
          .build();

  private URI uri;
  private Path workingDirectory;
  private LentKey lentKey;
  private NativeSession session;
  private Sites sites;
  private ThreadPoolExecutor executor;
  private long blockBytes;
  private int bufferBytes;
  private ChecksumKind checksumKind;
  private volatile boolean isClosed;

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    setConf(conf);
    String authority = name.getAuthority();
    uri = URI.create(SCHEME + "://" + (authority == null ? "" : authority) + "/");
    workingDirectory = new Path(uri);
    blockBytes = Settings.octets(conf, Keys.BLOCK_BYTES, Keys.BLOCK_BYTES_DEFAULT);
    bufferBytes = (int) Settings.octets(conf, Keys.BUFFER_BYTES, Keys.BUFFER_BYTES_DEFAULT);
    if (blockBytes <= 0 || bufferBytes <= 0) {
      throw new IOException(Keys.BLOCK_BYTES + " and " + Keys.BUFFER_BYTES + " must be above 0");
    }
    checksumKind = ChecksumKind.of(conf);
    lentKey = LentKey.find(authority, conf);
    String link = Settings.link(authority, conf);
    session =
        lentKey == null
            ? NativeSession.open(workingDirectory, link, null, conf)
            : lentKey.open(workingDirectory, link, conf);
    sites = new Sites(session, workingDirectory, authority != null, conf);
    executor = ReadThreads.make(Settings.number(conf, Keys.THREADS, Keys.THREADS_DEFAULT));
  }

  @Override
  public String getScheme() {
    return SCHEME;
  }

  @Override
  public URI getUri() {
    return uri;
  }

  /** What tokens are for: a link to a site for which there is a key here. Nobody is asked. */
  @Override
  public String getCanonicalServiceName() {
    String authority = uri.getAuthority();
    try {
      return authority == null || site(new Path(uri)) == null
          ? null
          : LentKey.service(authority).toString();
    } catch (IOException e) {
      // Whoever asks for a token is told.
      return LentKey.service(authority).toString();
    }
  }

  /**
   * A new key that acts as the user for {@code fs.ndn.token.lifetime}; where one that was lent acts,
   * that one, since it lends none. Null where nobody writes.
   */
  @Override
  public Token<?> getDelegationToken(String renewer) throws IOException {
    checkOpen();
    if (lentKey != null) {
      return lentKey.token();
    }
    Path root = new Path(uri);
    NativeSite site = uri.getAuthority() == null ? null : site(root);
    return site == null ? null : LentKey.lend(site, root, renewer, getConf()).token();
  }

  @Override
  public Path getWorkingDirectory() {
    return workingDirectory;
  }

  @Override
  public void setWorkingDirectory(Path directory) {
    workingDirectory = makeQualified(directory);
  }

  /** Nobody has a home in what others publish. */
  @Override
  public Path getHomeDirectory() {
    return new Path(uri);
  }

  @Override
  public long getDefaultBlockSize(Path path) {
    return blockBytes;
  }

  @Override
  public short getDefaultReplication(Path path) {
    return 1;
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    Path name = begin(StoreStatisticNames.OP_OPEN, path);
    NativeFile file = openNative(name);
    try {
      return new FSDataInputStream(new NdnInputStream(name, file, file.stat(), this));
    } catch (IOException | RuntimeException e) {
      file.close();
      throw e;
    }
  }

  // One question: whatever a program knows of the file already would spare none.
  private NativeFile openNative(Path name) throws IOException {
    NativeSite site = site(name);
    return Links.open(name, site, lookup(site), site == null ? session::open : site::open);
  }

  /** How a path is asked for: the head of its site, or who publishes it. */
  private Links.Lookup lookup(NativeSite site) {
    return site == null ? session::stat : site::stat;
  }

  @Override
  Record record(Path name) throws IOException {
    Links.Lookup lookup = lookup(site(name));
    try {
      Record record = lookup.stat(name);
      if (!record.isSymlink()) {
        return record;
      }
    } catch (IOException e) {
      if (NativeSite.errno(e) != Errno.ELOOP) {
        throw e;
      }
    }
    return lookup.stat(Links.end(name, site(name), lookup));
  }

  /** Status of a link itself, or of what is no link; no link at the end of a path is followed. */
  @Override
  public FileStatus getFileLinkStatus(Path path) throws IOException {
    Path name = begin(StoreStatisticNames.OP_GET_FILE_STATUS, path);
    Record record = lookup(site(name)).stat(name);
    FileStatus status = status(name, record);
    if (record.isSymlink()) {
      status.setSymlink(Links.target(name, record));
    }
    return status;
  }

  @Override
  public Path getLinkTarget(Path path) throws IOException {
    Path name = begin(StoreStatisticNames.OP_GET_FILE_STATUS, path);
    Record record = lookup(site(name)).stat(name);
    if (!record.isSymlink()) {
      throw new PathIOException(name.toString(), "is no symbolic link");
    }
    return Links.target(name, record);
  }

  @Override
  NativeSite site(Path path) throws IOException {
    checkPath(path);
    return sites.of(makeQualified(path));
  }

  @Override
  Path beginWrite(String operation, Path path) throws IOException {
    checkOpen();
    counts.incrementCounter(operation, 1);
    statistics.incrementWriteOps(1);
    return makeQualified(path);
  }

  /**
   * Opens the version of a status that was given, or fails if it is not the current one. It is read
   * as {@link ReadPolicy} understands what is said of that. A length says nothing that the answer to
   * opening does not say, and is not looked at.
   */
  @Override
  protected CompletableFuture<FSDataInputStream> openFileWithOptions(
      Path path, OpenFileParameters parameters) throws IOException {
    ReadPolicy policy = ReadPolicy.of(parameters.getOptions());
    CompletableFuture<FSDataInputStream> opened =
        super.openFileWithOptions(path, parameters)
            .thenApply(
                stream -> {
                  ((NdnInputStream) stream.getWrappedStream()).readAs(policy);
                  return stream;
                });
    FileStatus wanted = parameters.getStatus();
    if (!(wanted instanceof EtagSource)) {
      return opened;
    }
    String etag = ((EtagSource) wanted).getEtag();
    return opened.thenApply(stream -> checkVersion(path, etag, stream));
  }

  private static FSDataInputStream checkVersion(Path path, String etag, FSDataInputStream stream) {
    String now = ((NdnInputStream) stream.getWrappedStream()).etag();
    if (now.equals(etag)) {
      return stream;
    }
    try {
      stream.close();
    } catch (IOException e) {
      throw new CompletionException(e);
    }
    throw new CompletionException(
        new PathIOException(
            path.toString(), "is version " + now + " now and no longer " + etag + " (ESTALE)"));
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    return statusOf(path);
  }

  /** The status of a path, asked for. */
  NdnFileStatus statusOf(Path path) throws IOException {
    Path name = begin(StoreStatisticNames.OP_GET_FILE_STATUS, path);
    return status(name, record(name));
  }

  /** The status of what an entry leads to that is a link; it knows that. */
  NdnFileStatus statusBehind(Path path) throws IOException {
    NdnFileStatus status = statusOf(path);
    NativeSite site = site(path);
    if (site != null && status.isDirectory()) {
      Links.refuseCircle(path, site);
    }
    status.setBehindLink();
    return status;
  }

  /** The status that a record of a path stands for. */
  NdnFileStatus status(Path path, Record record) throws IOException {
    return new NdnFileStatus(path, record, blockBytes, site(path));
  }

  /** An entry of a directory: not by parsing, which would take a colon for a scheme's. */
  static Path child(Path directory, String name) {
    URI uri = directory.toUri();
    String parent = uri.getPath();
    String path = parent.endsWith("/") ? parent + name : parent + "/" + name;
    return new Path(uri.getScheme(), uri.getAuthority(), path);
  }

  @Override
  public FileStatus[] listStatus(Path path) throws IOException {
    List<FileStatus> found = new ArrayList<>();
    RemoteIterator<NdnFileStatus> entries = entries(path);
    while (entries.hasNext()) {
      found.add(entries.next());
    }
    return found.toArray(new FileStatus[0]);
  }

  @Override
  public RemoteIterator<FileStatus> listStatusIterator(Path path) throws IOException {
    return RemoteIterators.mappingRemoteIterator(entries(path), status -> status);
  }

  @Override
  protected RemoteIterator<LocatedFileStatus> listLocatedStatus(Path path, PathFilter filter)
      throws IOException {
    return RemoteIterators.mappingRemoteIterator(
        RemoteIterators.filteringRemoteIterator(
            entries(path), status -> filter.accept(status.getPath())),
        status -> new NdnLocatedFileStatus(status, blocks(status, 0, status.getLen())));
  }

  private RemoteIterator<NdnFileStatus> entries(Path path) throws IOException {
    Path name = begin(StoreStatisticNames.OP_LIST_STATUS, path);
    NativeSite site = site(name);
    NdnListing.Pages listing = site == null ? session.list(name) : Links.list(name, site);
    return listing == null
        ? RemoteIterators.remoteIteratorFromSingleton(statusOf(name))
        : new NdnListing(this, name, listing);
  }

  /** One listing for each directory, and no status of what a listing has said already. */
  @Override
  public ContentSummary getContentSummary(Path path) throws IOException {
    Path name = begin(StoreStatisticNames.OP_GET_CONTENT_SUMMARY, path);
    return ContentCount.of(statusOf(name), this::entries);
  }

  /**
   * Blocks of {@code fs.ndn.block.size}: of a site with the servers of the disks that have the
   * file, otherwise without hosts, since whoever has the data answers and no machine is the right
   * one to read at.
   */
  @Override
  public BlockLocation[] getFileBlockLocations(FileStatus status, long start, long length)
      throws IOException {
    if (start < 0 || length < 0) {
      throw new IllegalArgumentException("start or length below zero: " + start + ", " + length);
    }
    return blocks(status, start, length);
  }

  private BlockLocation[] blocks(FileStatus status, long start, long length) throws IOException {
    List<BlockLocation> found = new ArrayList<>();
    String[] hosts = status.getLen() == 0 ? new String[0] : hosts(status.getPath());
    long end = length > status.getLen() - start ? status.getLen() : start + length;
    for (long at = start - start % blockBytes; at < end; at += blockBytes) {
      long octets = Math.min(blockBytes, status.getLen() - at);
      found.add(new BlockLocation(hosts, hosts, at, octets));
    }
    return found.toArray(new BlockLocation[0]);
  }

  private String[] hosts(Path path) throws IOException {
    NativeSite site = site(path);
    return site == null
        ? new String[0]
        : Links.servers(makeQualified(path), site).toArray(new String[0]);
  }

  /** What the publisher has signed of the whole content; null of a part, or if there is none. */
  @Override
  public FileChecksum getFileChecksum(Path path, long length) throws IOException {
    Path name = begin(StoreStatisticNames.OP_GET_FILE_CHECKSUM, path);
    Record record = record(name);
    if (record.isDirectory()) {
      throw new FileNotFoundException(name + ": is a directory (EISDIR)");
    }
    if (length < record.length()) {
      return null;
    }
    return checksumKind.of(record);
  }

  @Override
  public boolean hasPathCapability(Path path, String capability) throws IOException {
    switch (capability.toLowerCase(Locale.ROOT)) {
      case CommonPathCapabilities.FS_CHECKSUMS:
      case CommonPathCapabilities.ETAGS_AVAILABLE:
      case CommonPathCapabilities.FS_PATHHANDLES:
        return true;
      case CommonPathCapabilities.FS_READ_ONLY_CONNECTOR:
        return site(path) == null;
      case CommonPathCapabilities.ETAGS_PRESERVED_IN_RENAME:
      case CommonPathCapabilities.FS_ACLS:
      case CommonPathCapabilities.FS_APPEND:
      case CommonPathCapabilities.FS_PERMISSIONS:
      case CommonPathCapabilities.FS_TRUNCATE:
      case CommonPathCapabilities.FS_XATTRS:
        return site(path) != null;
      default:
        return super.hasPathCapability(makeQualified(path), capability);
    }
  }

  @Override
  public IOStatistics getIOStatistics() {
    return counts;
  }

  /** Which names, read by which library. */
  @Override
  public String toString() {
    return session == null ? "ndn://, not initialized" : uri + " (byname " + Native.version() + ")";
  }

  @Override
  public void close() throws IOException {
    isClosed = true;
    try {
      super.close();
    } finally {
      if (session != null) {
        session.close();
      }
      if (executor != null) {
        executor.shutdown();
      }
    }
  }

  @Override
  int bufferBytes() {
    return bufferBytes;
  }

  /** Threads for what is read in the background. */
  Executor executor() {
    return executor;
  }

  /** Hadoop's own counts. */
  Statistics statistics() {
    return statistics;
  }

  private void checkOpen() throws IOException {
    if (isClosed) {
      throw new IOException(uri + ": Filesystem closed");
    }
  }

  private Path begin(String operation, Path path) throws IOException {
    checkPath(path);
    checkOpen();
    counts.incrementCounter(operation, 1);
    statistics.incrementReadOps(1);
    return makeQualified(path);
  }
}
