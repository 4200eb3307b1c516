package byname.hadoop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.math.BigInteger;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;

/** What files have in them, to compare. */
final class Octets {
  private Octets() {}

  /** The number and a digest of all octets of files, in the order of their names. */
  static String of(FileSystem fs, String pattern) throws IOException, NoSuchAlgorithmException {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    long bytes = 0;
    for (FileStatus part : fs.globStatus(RunningSite.path(pattern))) {
      try (InputStream in = new DigestInputStream(fs.open(part.getPath()), digest)) {
        bytes += in.transferTo(OutputStream.nullOutputStream());
      }
    }
    return bytes + " " + new BigInteger(1, digest.digest()).toString(16);
  }
}
