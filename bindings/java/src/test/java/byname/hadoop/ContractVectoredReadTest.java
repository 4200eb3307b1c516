package byname.hadoop;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.contract.AbstractContractVectoredReadTest;
import org.apache.hadoop.fs.contract.AbstractFSContract;

/** Hadoop's own suite, with heap and with direct buffers. */
public class ContractVectoredReadTest extends AbstractContractVectoredReadTest {
  /** One of the two kinds of buffers. */
  public ContractVectoredReadTest(String bufferType) {
    super(bufferType);
  }

  @Override
  protected AbstractFSContract createContract(Configuration conf) {
    return new NdnContract(conf);
  }
}
