package byname.hadoop;

import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.InvalidPathHandleException;
import org.apache.hadoop.fs.Options.HandleOpt;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathHandle;
import org.apache.hadoop.fs.RawPathHandle;
import org.junit.Test;

/** Handles of files, beyond what Hadoop's suite looks at. */
public class SitePathHandleTest {
  private static void write(FileSystem fs, Path path, String text) throws IOException {
    try (FSDataOutputStream out = fs.create(path, true)) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }
  }

  @Test
  public void handlesStayAtTheirPathAndSayWhatTheyAre() throws Exception {
    FileSystem fs = SiteContract.fileSystem();
    Path folder = RunningSite.path("handles");
    fs.delete(folder, true);
    Path path = new Path(folder, "a file");
    write(fs, path, "one");
    FileStatus status = fs.getFileStatus(path);
    assertTrue(fs.hasPathCapability(path, CommonPathCapabilities.FS_PATHHANDLES));
    for (HandleOpt[] follows : Arrays.asList(HandleOpt.content(), HandleOpt.reference())) {
      assertThrows(UnsupportedOperationException.class, () -> fs.getPathHandle(status, follows));
    }
    PathHandle exact = fs.getPathHandle(status, HandleOpt.exact());
    RawPathHandle kept = new RawPathHandle(exact.bytes());
    fs.rename(path, new Path(folder, "another"));
    write(fs, path, "two");
    // Of the same name and length, but another file.
    assertThrows(InvalidPathHandleException.class, () -> fs.open(kept));
    RawPathHandle cut = new RawPathHandle(ByteBuffer.wrap(exact.toByteArray(), 0, 5));
    assertThrows(InvalidPathHandleException.class, () -> fs.open(cut));
    FileStatus directory = fs.getFileStatus(folder);
    assertThrows(IllegalArgumentException.class, () -> fs.getPathHandle(directory));
  }
}
