package byname.hadoop;

import static org.junit.Assert.assertThrows;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Options.HandleOpt;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.contract.AbstractContractAppendTest;
import org.apache.hadoop.fs.contract.AbstractContractBulkDeleteTest;
import org.apache.hadoop.fs.contract.AbstractContractContentSummaryTest;
import org.apache.hadoop.fs.contract.AbstractContractCopyFromLocalTest;
import org.apache.hadoop.fs.contract.AbstractContractCreateTest;
import org.apache.hadoop.fs.contract.AbstractContractDeleteTest;
import org.apache.hadoop.fs.contract.AbstractContractEtagTest;
import org.apache.hadoop.fs.contract.AbstractContractGetEnclosingRoot;
import org.apache.hadoop.fs.contract.AbstractContractGetFileStatusTest;
import org.apache.hadoop.fs.contract.AbstractContractMkdirTest;
import org.apache.hadoop.fs.contract.AbstractContractOpenTest;
import org.apache.hadoop.fs.contract.AbstractContractPathHandleTest;
import org.apache.hadoop.fs.contract.AbstractContractRenameTest;
import org.apache.hadoop.fs.contract.AbstractContractRootDirectoryTest;
import org.apache.hadoop.fs.contract.AbstractContractSeekTest;
import org.apache.hadoop.fs.contract.AbstractContractSetTimesTest;
import org.apache.hadoop.fs.contract.AbstractContractStreamIOStatisticsTest;
import org.apache.hadoop.fs.contract.AbstractContractUnbufferTest;
import org.apache.hadoop.fs.contract.AbstractContractVectoredReadTest;
import org.apache.hadoop.fs.contract.AbstractFSContract;
import org.apache.hadoop.fs.contract.ContractTestUtils;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;
import org.junit.runners.Suite;

/** Hadoop's own suites against a site that is written to. */
@RunWith(Suite.class)
@Suite.SuiteClasses({
  SiteContractTest.Append.class,
  SiteContractTest.BulkDelete.class,
  SiteContractTest.ContentSummary.class,
  SiteContractTest.CopyFromLocal.class,
  SiteContractTest.Create.class,
  SiteContractTest.Delete.class,
  SiteContractTest.Etag.class,
  SiteContractTest.GetEnclosingRoot.class,
  SiteContractTest.GetFileStatus.class,
  SiteContractTest.Mkdir.class,
  SiteContractTest.Open.class,
  SiteContractTest.PathHandles.class,
  SiteContractTest.Rename.class,
  SiteContractTest.RootDirectory.class,
  SiteContractTest.Seek.class,
  SiteContractTest.SetTimes.class,
  SiteContractTest.StreamIOStatistics.class,
  SiteContractTest.Unbuffer.class,
  SiteContractTest.VectoredRead.class
})
public class SiteContractTest {
  /** Hadoop's own suite. */
  public static final class Append extends AbstractContractAppendTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }

    /** The next version is one of the name: under another name nothing is lost, and it is said. */
    @Override
    @Test
    public void testRenameFileBeingAppended() throws Throwable {
      Path path = path("appended");
      Path renamed = path("renamed");
      ContractTestUtils.createFile(getFileSystem(), path, true, new byte[] {1});
      FSDataOutputStream out = getFileSystem().append(path);
      out.write(2);
      assertTrue(getFileSystem().rename(path, renamed));
      LambdaTestUtils.intercept(IOException.class, out::close);
      assertPathDoesNotExist("made again", path);
      assertEquals(1, getFileSystem().getFileStatus(renamed).getLen());
    }
  }

  /** Hadoop's own suite. */
  public static final class BulkDelete extends AbstractContractBulkDeleteTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }

    // A page has one path, which the suite skips tests for.
    private void refusesTwo(String one, String other) throws IOException {
      assertEquals(1, pageSize);
      List<Path> paths = Arrays.asList(new Path(basePath, one), new Path(basePath, other));
      org.apache.hadoop.fs.BulkDelete bulk = fs.createBulkDelete(basePath);
      assertThrows(IllegalArgumentException.class, () -> bulk.bulkDelete(paths));
    }

    /** Refused. */
    @Override
    @Test
    public void testDeletePathsDirectory() throws IOException {
      refusesTwo("directory", "directory/file");
    }

    /** Refused. */
    @Override
    @Test
    public void testDeleteSamePathsMoreThanOnce() throws IOException {
      refusesTwo("file", "file");
    }

    /** Refused. */
    @Override
    @Test
    public void testChildPaths() throws IOException {
      refusesTwo("parent", "parent/child");
    }
  }

  /** Hadoop's own suite. */
  public static final class ContentSummary extends AbstractContractContentSummaryTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class CopyFromLocal extends AbstractContractCopyFromLocalTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class Create extends AbstractContractCreateTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }

    // A file is there when it is closed, and not before: the suite skips tests for that.
    private void isThereWhenItIsClosed(boolean flushes) throws IOException {
      Path path = path("later-" + flushes);
      try (FSDataOutputStream out = getFileSystem().create(path, true)) {
        out.write(1);
        if (flushes) {
          out.flush();
        }
        assertFalse(getFileSystem().exists(path));
      }
      assertEquals(1, getFileSystem().getFileStatus(path).getLen());
    }

    /** Not before it is closed. */
    @Override
    @Test
    public void testCreatedFileIsImmediatelyVisible() throws IOException {
      isThereWhenItIsClosed(false);
    }

    /** Not before it is closed. */
    @Override
    @Test
    public void testCreatedFileIsVisibleOnFlush() throws IOException {
      isThereWhenItIsClosed(true);
    }
  }

  /** Hadoop's own suite. */
  public static final class Delete extends AbstractContractDeleteTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class Etag extends AbstractContractEtagTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class GetEnclosingRoot extends AbstractContractGetEnclosingRoot {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class GetFileStatus extends AbstractContractGetFileStatusTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class Mkdir extends AbstractContractMkdirTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class Open extends AbstractContractOpenTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class Rename extends AbstractContractRenameTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class RootDirectory extends AbstractContractRootDirectoryTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class Seek extends AbstractContractSeekTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class SetTimes extends AbstractContractSetTimesTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class StreamIOStatistics extends AbstractContractStreamIOStatisticsTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class Unbuffer extends AbstractContractUnbufferTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite, for the handles that stay at their path; the others are refused. */
  public static final class PathHandles extends AbstractContractPathHandleTest {
    /** One kind of handles, as they are or as octets. */
    public PathHandles(String name, HandleOpt[] options, boolean isSerialized) {
      super(name, options, isSerialized);
    }

    /** Kinds of handles. */
    @Parameterized.Parameters(name = "{0}, {2}")
    public static Collection<Object[]> params() {
      List<Object[]> kinds = new ArrayList<>();
      for (boolean isSerialized : new boolean[] {false, true}) {
        kinds.add(new Object[] {"Exact", HandleOpt.exact(), isSerialized});
        kinds.add(new Object[] {"Path", HandleOpt.path(), isSerialized});
      }
      return kinds;
    }

    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }

  /** Hadoop's own suite. */
  public static final class VectoredRead extends AbstractContractVectoredReadTest {
    /** One of the two kinds of buffers. */
    public VectoredRead(String bufferType) {
      super(bufferType);
    }

    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new SiteContract(conf);
    }
  }
}
