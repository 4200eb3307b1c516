package byname.hadoop;

import static org.junit.Assert.assertFalse;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.contract.AbstractContractEtagTest;
import org.apache.hadoop.fs.contract.AbstractFSContract;
import org.apache.hadoop.fs.contract.ContractTestUtils;
import org.junit.Test;

/** Hadoop's own suite. */
public class ContractEtagTest extends AbstractContractEtagTest {
  @Override
  protected AbstractFSContract createContract(Configuration conf) {
    return new NdnContract(conf);
  }

  /** Not promised, and said so: the suite would skip it. */
  @Override
  @Test
  public void testEtagConsistencyAcrossRename() throws Throwable {
    Path path = path("preserved");
    ContractTestUtils.touch(getFileSystem(), path);
    assertFalse(
        getFileSystem()
            .hasPathCapability(path, CommonPathCapabilities.ETAGS_PRESERVED_IN_RENAME));
  }
}
