package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** A site whose forwarder is reached over a network, and has been told of one user. */
public class SiteOverNetworkTest {
  private static final int PATIENCE_MS = 60_000;

  private RunningSite site;
  private String endpoint;

  @Before
  public void begin() throws Exception {
    site = RunningSite.begin("/hadoop/far", 1, 1, Arrays.asList("physics"));
    site.addUser("eve", Arrays.asList("eves"));
    endpoint = site.admitOverNetwork(RunningSite.USER, Published.freePort());
    site.takeApart(1);
    LambdaTestUtils.await(PATIENCE_MS, 100, () -> isWell());
  }

  @After
  public void end() {
    site.close();
  }

  private boolean isWell() {
    try {
      return site.operator("site", "status").endsWith("OK\n");
    } catch (IOException e) {
      return false;
    }
  }

  private Configuration overNetwork(String user) {
    Configuration conf = site.conf(user);
    conf.set("fs.ndn.connect", endpoint);
    return conf;
  }

  private Token<?> tokenOf(String user) throws IOException {
    try (FileSystem fs = open(site.conf(user))) {
      return fs.getDelegationToken("yarn");
    }
  }

  private static FileSystem open(Configuration conf) throws IOException {
    return FileSystem.newInstance(RunningSite.path("").toUri(), conf);
  }

  private String write(Token<?> token, Path path) throws Exception {
    UserGroupInformation worker = UserGroupInformation.createRemoteUser("worker");
    worker.addToken(token);
    return worker.doAs(
        (PrivilegedExceptionAction<String>)
            () -> {
              try (FileSystem fs = open(overNetwork("nobody"))) {
                try (OutputStream out = fs.create(path)) {
                  out.write("octets".getBytes(StandardCharsets.UTF_8));
                }
                return fs.getFileStatus(path).getOwner();
              }
            });
  }

  /** Her key has signed that of the token, and the forwarder has been told of no other. */
  @Test
  public void aForwarderThatAdmitsAUserAdmitsHerTokens() throws Exception {
    Path path = RunningSite.path("by token");
    assertEquals(RunningSite.USER, write(tokenOf(RunningSite.USER), path));
    Token<?> ofEve = tokenOf("eve");
    Exception refused =
        assertThrows(IOException.class, () -> write(ofEve, RunningSite.path("by eve")));
    assertTrue(refused.getMessage(), refused.getMessage().contains("--allow-register"));
  }
}
