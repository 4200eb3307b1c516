package byname.hadoop;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.fs.FileChecksum;

/** BLAKE3 of a file's content, as its publisher has signed it and {@code b3sum} prints it. */
final class NdnFileChecksum extends FileChecksum {
  private static final int BYTES = 32;

  private final byte[] root;

  NdnFileChecksum(byte[] root) {
    this.root = Arrays.copyOf(root, BYTES);
  }

  @Override
  public String getAlgorithmName() {
    return "BLAKE3";
  }

  @Override
  public int getLength() {
    return BYTES;
  }

  @Override
  public byte[] getBytes() {
    return root.clone();
  }

  @Override
  public void write(DataOutput out) throws IOException {
    out.write(root);
  }

  @Override
  public void readFields(DataInput in) throws IOException {
    in.readFully(root);
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("BLAKE3:");
    for (byte octet : root) {
      text.append(String.format("%02x", octet));
    }
    return text.toString();
  }
}
