package byname.hadoop;

import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** A failure as the native library tells it. {@link Failures} makes of it what Hadoop knows. */
final class NativeException extends IOException {
  private static final long serialVersionUID = 1L;

  /** The value of BYNAME_CLASS_CORRUPT. */
  private static final int CLASS_CORRUPT = 3;

  private final int errno;
  private final int errorClass;

  /** Called from C. */
  NativeException(int errno, int errorClass, byte[] text) {
    super(new String(text, StandardCharsets.UTF_8));
    this.errno = errno;
    this.errorClass = errorClass;
  }

  int errno() {
    return errno;
  }

  /** True if what came is not what was signed, or was signed by nobody who counts. */
  boolean isCorrupt() {
    return errorClass == CLASS_CORRUPT;
  }
}
