package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ContentSummary;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIOException;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;

/** Symbolic links that a site has: they are followed where something is read. */
public class SiteLinksTest {
  private static final Path FOLDER = RunningSite.path("links");

  private static FileSystem fs;

  @BeforeClass
  public static void make() throws IOException {
    fs = SiteContract.fileSystem();
    fs.delete(FOLDER, true);
    write("data/file", "content");
    write("data/deep/other", "and more");
    link("data/file", "to-file");
    link("to-file", "to-link");
    link("data", "to-folder");
    link("../data/deep", "data/up");
    link("to-folder/deep/./../file", "through");
    link("nothing", "nowhere");
    link("ring", "ring");
    link("..", "above");
    link("../../to-folder", "data/deep/back");
    link("/etc/passwd", "outside");
    link("../../../../x", "far");
    link("../../elsewhere/links/data/file", "past");
    link("../links/data/file", "round");
    link(String.join("/", Collections.nCopies(400, "x")), "long");
    for (String name : Arrays.asList("one", "two", "three")) {
      write("ring-" + name + "/own", name);
    }
    for (String name : Arrays.asList("one", "two", "three")) {
      for (String other : Arrays.asList("one", "two", "three")) {
        if (!name.equals(other)) {
          link("../ring-" + other, "ring-" + name + "/" + other);
        }
      }
    }
  }

  @AfterClass
  public static void remove() throws IOException {
    fs.delete(FOLDER, true);
  }

  private static void link(String target, String name) throws IOException {
    SiteContract.site().operator("ln", "-s", target, "/hadoop/site/links/" + name);
  }

  private static Path path(String name) {
    return name.isEmpty() ? FOLDER : new Path(FOLDER, name);
  }

  private static void write(String name, String text) throws IOException {
    try (FSDataOutputStream out = fs.create(path(name))) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }
  }

  private static String read(FileSystem from, String name) throws IOException {
    try (FSDataInputStream in = from.open(path(name))) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  @Test
  public void linksAreReadAsWhatTheyLeadTo() throws Exception {
    for (String name : Arrays.asList("to-file", "to-link", "to-folder/file", "through")) {
      assertEquals(name, "content", read(fs, name));
      assertEquals(name, 7, fs.getFileStatus(path(name)).getLen());
      assertEquals(path(name), fs.getFileStatus(path(name)).getPath());
    }
    assertEquals("and more", read(fs, "to-folder/up/other"));
    assertTrue(fs.getFileStatus(path("to-folder")).isDirectory());
    assertEquals(Arrays.asList("deep", "file", "up"), names("to-folder"));
    assertEquals(Arrays.asList("other"), names("to-folder/up"));
  }

  private static List<String> names(String folder) throws IOException {
    return Arrays.stream(fs.listStatus(path(folder)))
        .map(status -> status.getPath().getName())
        .collect(Collectors.toList());
  }

  @Test
  public void linksThatLeadNowhereAreLeftOutAndSaySo() throws Exception {
    LambdaTestUtils.intercept(
        FileNotFoundException.class, () -> fs.getFileStatus(path("nowhere")));
    for (String name : Arrays.asList("ring", "outside", "far")) {
      LambdaTestUtils.intercept(PathIOException.class, "ELOOP", () -> fs.open(path(name)));
    }
    List<String> listed = names("");
    assertTrue(listed.toString(), listed.containsAll(Arrays.asList("to-file", "to-folder")));
    for (String name : Arrays.asList("nowhere", "ring", "outside", "far", "above", "long")) {
      assertFalse(name, listed.contains(name));
    }
  }

  /** Some lead to directories that they are in, by others or not. */
  @Test
  public void whoLooksAtAllThatIsBelowComesToAnEnd() throws Exception {
    List<String> found = new ArrayList<>();
    RemoteIterator<LocatedFileStatus> files = fs.listFiles(path("to-folder"), true);
    while (files.hasNext()) {
      LocatedFileStatus file = files.next();
      found.add(file.getPath().toUri().getPath().substring("/links/to-folder/".length()));
      assertTrue(file.getBlockLocations()[0].getHosts().length > 0);
    }
    Collections.sort(found);
    assertEquals(Arrays.asList("deep/other", "file", "up/other"), found);
    assertTrue(fs.getFileStatus(path("data/deep/back")).isDirectory());
    assertTrue(fs.getFileStatus(path("above")).isDirectory());
  }

  /** Of directories that lead to each other there are more paths than anybody could look at. */
  @Test
  public void linksBehindLinksAreListedToABound() throws Exception {
    assertEquals(Arrays.asList("own", "three", "two"), names("ring-one"));
    assertEquals(Arrays.asList("own", "three"), names("ring-one/two"));
    assertEquals(Arrays.asList("own"), names("ring-one/two/three"));
    assertEquals("one", read(fs, "ring-one/two/three/one/own"));
  }

  /** Of whole names the site's own is above all, and a path that leaves it means another one. */
  @Test
  public void byWholeNamesNoLinkLeavesTheSite() throws Exception {
    Configuration conf = SiteContract.site().conf();
    try (FileSystem whole = FileSystem.newInstance(URI.create("ndn:///"), conf)) {
      Path round = new Path("ndn:///hadoop/site/links/round");
      try (FSDataInputStream in = whole.open(round)) {
        assertEquals("content", new String(in.readAllBytes(), StandardCharsets.UTF_8));
      }
      Path past = new Path("ndn:///hadoop/site/links/past");
      LambdaTestUtils.intercept(PathIOException.class, "ELOOP", () -> whole.open(past));
    }
  }

  @Test
  public void changesOfALinkAreRefusedBeforeAnythingIsWritten() throws Exception {
    LambdaTestUtils.intercept(PathIOException.class, "ELOOP", () -> fs.append(path("to-file")));
    LambdaTestUtils.intercept(PathIOException.class, "ELOOP", () -> fs.create(path("to-file")));
    LambdaTestUtils.intercept(
        PathIOException.class, "ELOOP", () -> fs.truncate(path("to-file"), 1));
    assertEquals("content", read(fs, "to-file"));
  }

  @Test
  public void blocksBehindALinkAreWhereTheReplicasAre() throws Exception {
    for (String name : Arrays.asList("to-link", "to-folder/file")) {
      FileStatus status = fs.getFileStatus(path(name));
      assertTrue(name, fs.getFileBlockLocations(status, 0, 7)[0].getHosts().length > 0);
      fs.access(path(name), FsAction.READ);
    }
  }

  @Test
  public void aLinkItselfIsSeenRenamedAndRemoved() throws Exception {
    FileContext context =
        FileContext.getFileContext(RunningSite.path("").toUri(), SiteContract.site().conf());
    link("data/file", "own");
    FileStatus itself = context.getFileLinkStatus(path("own"));
    assertTrue(itself.isSymlink());
    assertEquals(new Path("data/file"), fs.getLinkTarget(path("own")));
    assertFalse(context.getFileLinkStatus(path("data/file")).isSymlink());
    assertTrue(fs.rename(path("own"), path("own2")));
    assertEquals("content", read(fs, "own2"));
    assertTrue(fs.delete(path("own2"), false));
    assertEquals("content", read(fs, "data/file"));
    for (FileSystem one : Arrays.asList(fs, FileSystem.get(context.getDefaultFileSystem().getUri(),
        SiteContract.site().conf()))) {
      UnsupportedOperationException refused =
          LambdaTestUtils.intercept(
              UnsupportedOperationException.class,
              () -> one.createSymlink(path("data"), path("new"), false));
      assertTrue(refused.getMessage(), refused.getMessage().contains("byname ln -s"));
    }
    LambdaTestUtils.intercept(
        UnsupportedOperationException.class,
        () -> context.createSymlink(path("data"), path("new"), false));
  }

  /** Here a client of HDFS asks nobody; name nodes refuse as well. */
  @Test
  public void othersRefuseToMakeOneUnlessAProgramEnablesThat() throws Exception {
    for (String uri : Arrays.asList("hdfs://localhost:1/", "file:///")) {
      try (FileSystem other = FileSystem.newInstance(URI.create(uri), new Configuration())) {
        LambdaTestUtils.intercept(
            UnsupportedOperationException.class,
            "ymlinks",
            () -> other.createSymlink(new Path("/nowhere/data"), new Path("/nowhere/new"), false));
      }
    }
  }

  @Test
  public void whoOnlyReadsFollowsThemToo() throws Exception {
    Configuration conf = SiteContract.site().conf();
    conf.set("fs.ndn.identity", "none");
    try (FileSystem reader = FileSystem.newInstance(RunningSite.path("").toUri(), conf)) {
      assertEquals("content", read(reader, "to-link"));
      assertEquals(7, reader.getFileStatus(path("to-link")).getLen());
    }
  }

  @Test
  public void aSummaryCountsADirectoryWhereItIsAndNotWhereALinkIs() throws Exception {
    ContentSummary summary = fs.getContentSummary(path("data"));
    assertEquals(2, summary.getFileCount());
    assertEquals(2, summary.getDirectoryCount());
    assertEquals(15, summary.getLength());
    assertEquals(30, summary.getSpaceConsumed());
    // It, what it has, what that has, and three more.
    assertEquals(6, fs.getContentSummary(FOLDER).getDirectoryCount());
  }
}
