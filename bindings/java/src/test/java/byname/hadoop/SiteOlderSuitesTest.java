package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSMainOperationsBaseTest;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileContextCreateMkdirBaseTest;
import org.apache.hadoop.fs.FileContextMainOperationsBaseTest;
import org.apache.hadoop.fs.FileContextPermissionBase;
import org.apache.hadoop.fs.FileContextTestHelper;
import org.apache.hadoop.fs.FileContextURIBase;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileSystemContractBaseTest;
import org.apache.hadoop.fs.Path;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Suite;

/** Hadoop's older suites against a site that is written to. */
@RunWith(Suite.class)
@Suite.SuiteClasses({
  SiteOlderSuitesTest.FileSystemContract.class,
  SiteOlderSuitesTest.MainOperations.class,
  SiteOlderSuitesTest.ContextMainOperations.class,
  SiteOlderSuitesTest.ContextUris.class,
  SiteOlderSuitesTest.ContextCreateMkdir.class,
  SiteOlderSuitesTest.ContextPermissions.class
})
public class SiteOlderSuitesTest {
  private static FileContext first;

  // Each with a working directory of its own, over one file system.
  private static synchronized FileContext context() throws IOException {
    Configuration conf = SiteContract.site().conf();
    if (first == null) {
      first = FileContext.getFileContext(RunningSite.path("").toUri(), conf);
    }
    return FileContext.getFileContext(first.getDefaultFileSystem(), conf);
  }

  /** Hadoop's own suite. */
  public static final class FileSystemContract extends FileSystemContractBaseTest {
    /** Opens a file system. */
    @Before
    public void setUp() throws IOException {
      fs = SiteContract.fileSystem();
    }

    /** The suite goes above the directory that it begins in, which is the root here. */
    @Override
    @Test
    public void testWorkingDirectory() throws IOException {
      try (FileSystem own = SiteContract.newFileSystem()) {
        assertEquals(RunningSite.path(""), own.getWorkingDirectory());
        Path below = RunningSite.path("FileSystemContractBaseTest/hadoop");
        own.setWorkingDirectory(below);
        assertEquals(below, own.getWorkingDirectory());
        own.setWorkingDirectory(own.makeQualified(new Path(".")));
        assertEquals(below, own.getWorkingDirectory());
        own.setWorkingDirectory(own.makeQualified(new Path("..")));
        assertEquals(below.getParent(), own.getWorkingDirectory());
        own.setWorkingDirectory(own.makeQualified(new Path("hadoop")));
        assertEquals(below, own.getWorkingDirectory());
      }
    }

    @Override
    protected Path getTestBaseDir() {
      return RunningSite.path("FileSystemContractBaseTest");
    }

    @Override
    protected boolean rootDirTestEnabled() {
      return true;
    }
  }

  /** Hadoop's own suite. */
  public static final class MainOperations extends FSMainOperationsBaseTest {
    /** In the site. */
    public MainOperations() {
      super("/main");
    }

    @Override
    protected FileSystem createFileSystem() throws IOException {
      return SiteContract.fileSystem();
    }
  }

  /** Hadoop's own suite. */
  public static final class ContextMainOperations extends FileContextMainOperationsBaseTest {
    @Override
    @Before
    public void setUp() throws Exception {
      fc = context();
      super.setUp();
    }

    @Override
    protected FileContextTestHelper createFileContextHelper() {
      return new FileContextTestHelper("/context");
    }

    @Override
    protected boolean listCorruptedBlocksSupported() {
      return false;
    }

    private Path getTestRootPath(String name) {
      return fileContextTestHelper.getTestRootPath(fc, name);
    }

    /** The suite asks this of a file that is being written, and so is not there yet. */
    @Override
    @Test
    public void testSetVerifyChecksum() throws IOException {
      Path path = getTestRootPath("checksum");
      createFile(path);
      fc.setVerifyChecksum(true, path);
      assertTrue(fc.util().exists(path));
    }
  }

  /** Hadoop's own suite. */
  public static final class ContextUris extends FileContextURIBase {
    @Override
    @Before
    public void setUp() throws Exception {
      fc1 = context();
      fc2 = fc1;
      super.setUp();
    }
  }

  /** Hadoop's own suite. */
  public static final class ContextCreateMkdir extends FileContextCreateMkdirBaseTest {
    @Override
    @Before
    public void setUp() throws Exception {
      fc = context();
      super.setUp();
    }

    @Override
    protected FileContextTestHelper createFileContextHelper() {
      return new FileContextTestHelper("/mkdirs");
    }
  }

  /** Hadoop's own suite. */
  public static final class ContextPermissions extends FileContextPermissionBase {
    @Override
    protected FileContext getFileContext() throws IOException {
      return context();
    }

    @Override
    protected FileContextTestHelper getFileContextHelper() {
      return new FileContextTestHelper("/permissions");
    }

    /** The root of what is tested. */
    Path root() throws IOException {
      return getFileContextHelper().getTestRootPath(context());
    }
  }
}
