package byname.hadoop;

import static org.junit.Assert.assertEquals;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSMainOperationsBaseTest;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.Test;

/**
 * Hadoop's older suite. What it looks at comes by name: status, listings, filters, patterns,
 * reading. What it changes, it changes in the published directory, of which this proves nothing.
 */
public class MainOperationsTest extends FSMainOperationsBaseTest {
  /** Beneath the published name. */
  public MainOperationsTest() {
    super("/main");
  }

  @Override
  protected FileSystem createFileSystem() throws IOException {
    return new NdnContract(new Configuration()).getTestFileSystem();
  }

  private interface Look {
    void at(Path hidden) throws Exception;
  }

  // A server does not publish what only its owner can read, so there is nothing to refuse.
  private void withHidden(Look look) throws Exception {
    Path hidden = getTestRootPath(fSys, "hidden");
    fSys.mkdirs(new Path(hidden, "below"));
    fSys.setPermission(hidden, new FsPermission((short) 0));
    try {
      look.at(hidden);
    } finally {
      fSys.setPermission(hidden, new FsPermission((short) 0755));
    }
  }

  /** Not there, where the suite expects a refusal. */
  @Override
  @Test
  public void testListStatusThrowsExceptionForUnreadableDir() throws Exception {
    withHidden(
        hidden ->
            LambdaTestUtils.intercept(
                FileNotFoundException.class, () -> fSys.listStatus(hidden)));
  }

  /** Not there, where the suite expects a refusal. */
  @Override
  @Test
  public void testGlobStatusThrowsExceptionForUnreadableDir() throws Exception {
    withHidden(hidden -> assertEquals(0, fSys.globStatus(new Path(hidden, "*")).length));
  }
}
