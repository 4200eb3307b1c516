package byname.hadoop;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.fs.InvalidPathHandleException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathHandle;

/** A file by its path, in one version or in whatever version is there. */
final class NdnPathHandle implements PathHandle {
  private static final long serialVersionUID = 1;
  private static final byte FORM = 1;

  /** The version; empty for any. */
  private final String etag;

  private final String path;

  NdnPathHandle(Path path, String etag) {
    this.path = path.toString();
    this.etag = etag;
  }

  /** The handle that octets are, which somebody may have kept. */
  static NdnPathHandle of(PathHandle handle) throws IOException {
    if (handle instanceof NdnPathHandle) {
      return (NdnPathHandle) handle;
    }
    ByteBuffer octets = handle.bytes().duplicate();
    byte[] texts = new byte[Math.max(octets.remaining() - 1, 0)];
    if (octets.hasRemaining() && octets.get() == FORM) {
      octets.get(texts);
    }
    String[] parts = new String(texts, StandardCharsets.UTF_8).split("\0", -1);
    if (parts.length != 2 || parts[1].isEmpty()) {
      throw new InvalidPathHandleException("this is no handle of ndn://");
    }
    return new NdnPathHandle(new Path(parts[1]), parts[0]);
  }

  Path path() {
    return new Path(path);
  }

  /** Whether it stands for this version, too. */
  boolean isOf(String version) {
    return etag.isEmpty() || etag.equals(version);
  }

  @Override
  public ByteBuffer bytes() {
    byte[] texts = (etag + "\0" + path).getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(texts.length + 1).put(FORM).put(texts).flip().asReadOnlyBuffer();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PathHandle
        && Arrays.equals(toByteArray(), ((PathHandle) other).toByteArray());
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(toByteArray());
  }

  @Override
  public String toString() {
    return path + (etag.isEmpty() ? "" : ", version " + etag);
  }
}
