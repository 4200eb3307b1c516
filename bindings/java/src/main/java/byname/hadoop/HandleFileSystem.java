package byname.hadoop;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.InvalidPathHandleException;
import org.apache.hadoop.fs.Options.HandleOpt;
import org.apache.hadoop.fs.PathHandle;

/**
 * Handles of files: of what is at a path, be it changed or not. Those that follow a file to another
 * path are refused: a name is what files are found by.
 */
abstract class HandleFileSystem extends SiteFileSystem {
  @Override
  protected PathHandle createPathHandle(FileStatus status, HandleOpt... options) {
    if (!(status instanceof NdnFileStatus) || status.isDirectory()) {
      throw new IllegalArgumentException(status.getPath() + ": no status of a file of ndn://");
    }
    checkPath(status.getPath());
    boolean mayMove =
        HandleOpt.getOpt(HandleOpt.Location.class, options)
            .orElse(HandleOpt.moved(false))
            .allowChange();
    if (mayMove) {
      throw new UnsupportedOperationException("handles of ndn:// do not follow files elsewhere");
    }
    boolean mayChange =
        HandleOpt.getOpt(HandleOpt.Data.class, options)
            .orElse(HandleOpt.changed(false))
            .allowChange();
    String etag = mayChange ? "" : ((NdnFileStatus) status).getEtag();
    return new NdnPathHandle(makeQualified(status.getPath()), etag);
  }

  @Override
  public FSDataInputStream open(PathHandle handle, int bufferSize) throws IOException {
    NdnPathHandle wanted = NdnPathHandle.of(handle);
    FSDataInputStream stream;
    try {
      stream = open(wanted.path(), bufferSize);
    } catch (FileNotFoundException e) {
      throw new InvalidPathHandleException(wanted + ": is not there", e);
    }
    String now = ((NdnInputStream) stream.getWrappedStream()).etag();
    if (wanted.isOf(now)) {
      return stream;
    }
    stream.close();
    throw new InvalidPathHandleException(wanted + ": is version " + now + " now");
  }
}
