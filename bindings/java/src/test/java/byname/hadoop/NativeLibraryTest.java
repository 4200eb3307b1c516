package byname.hadoop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** Loading by isolated class loaders, as Spark and Hive have them. */
public class NativeLibraryTest {
  private static final String DIR = "byname.native.dir";
  private static final String LIBRARY_PATH = "java.library.path";
  private static final String LIBRARY = "libbyname_jni.so";

  private final String libraryPath = System.getProperty(LIBRARY_PATH);
  private Path parent;

  @Before
  public void choose() throws IOException {
    parent = Files.createTempDirectory("byname-hadoop-native");
    System.setProperty(DIR, parent.toString());
  }

  @After
  public void restore() {
    System.clearProperty(DIR);
    System.setProperty(LIBRARY_PATH, libraryPath);
    FileUtil.fullyDelete(parent.toFile());
  }

  /** Loads the library as a class loader that shares no class of ours with any other. */
  private static String loadIsolated() throws Exception {
    URL classes = NativeLibrary.class.getProtectionDomain().getCodeSource().getLocation();
    // Not closed: what it has loaded stays in use.
    @SuppressWarnings("resource")
    URLClassLoader loader =
        new URLClassLoader(new URL[] {classes}, ClassLoader.getPlatformClassLoader());
    call(loader, "byname.hadoop.NativeLibrary", "load");
    return (String) call(loader, "byname.hadoop.Native", "version");
  }

  private static Object call(ClassLoader loader, String type, String name) throws Exception {
    Method method = loader.loadClass(type).getDeclaredMethod(name);
    method.setAccessible(true);
    try {
      return method.invoke(null);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof Exception) {
        throw (Exception) e.getCause();
      }
      throw e;
    }
  }

  private List<Path> unpacked() throws IOException {
    try (Stream<Path> found = Files.list(parent)) {
      return found.collect(Collectors.toList());
    }
  }

  private static long mappedLibraries() throws IOException {
    try (Stream<String> lines = Files.lines(Paths.get("/proc/self/maps"))) {
      return lines
          .filter(line -> line.contains("/libbyname.so.1"))
          .map(line -> line.substring(line.indexOf('/')))
          .distinct()
          .count();
    }
  }

  @Test
  public void anyNumberOfClassLoadersShareOneLibraryInOnePrivateFolder() throws Exception {
    for (int round = 0; round < 3; round++) {
      assertNotNull(loadIsolated());
      assertEquals(1, mappedLibraries());
      assertEquals(1, unpacked().size());
    }
    assertEquals(
        PosixFilePermissions.fromString("rwx------"),
        Files.getPosixFilePermissions(unpacked().get(0)));
  }

  private static boolean isMapped(Path file) throws IOException {
    try (Stream<String> lines = Files.lines(Paths.get("/proc/self/maps"))) {
      return lines.anyMatch(line -> line.endsWith(" " + file));
    }
  }

  /** A copy of an unpacked folder, with its name, below a new parent that counts from now on. */
  private Path copyOf(Path folder, String permissions) throws IOException {
    Path other = Files.createTempDirectory(parent, "other");
    System.setProperty(DIR, other.toString());
    Path copy = Files.createDirectory(other.resolve(folder.getFileName()));
    for (String file : new String[] {"libbyname.so.1", LIBRARY}) {
      Files.copy(folder.resolve(file), copy.resolve(file));
    }
    return Files.setPosixFilePermissions(copy, PosixFilePermissions.fromString(permissions));
  }

  @Test
  public void aPrivateFolderWithTheRightContentIsUsed() throws Exception {
    loadIsolated();
    Path copy = copyOf(unpacked().get(0), "rwx------");
    loadIsolated();
    assertTrue(isMapped(copy.resolve(LIBRARY)));
  }

  @Test
  public void aFolderThatOthersMayWriteToIsNotUsed() throws Exception {
    loadIsolated();
    Path copy = copyOf(unpacked().get(0), "rwxrwxrwx");
    assertNotNull(loadIsolated());
    assertFalse(isMapped(copy.resolve(LIBRARY)));
  }

  @Test
  public void aFolderWithOtherContentIsNotUsed() throws Exception {
    loadIsolated();
    Path copy = copyOf(unpacked().get(0), "rwx------");
    byte[] content = Files.readAllBytes(copy.resolve(LIBRARY));
    Files.write(copy.resolve(LIBRARY), Arrays.copyOf(content, content.length + 1));
    assertNotNull(loadIsolated());
    assertFalse(isMapped(copy.resolve(LIBRARY)));
  }

  @Test
  public void aLinkToAFolderIsNotUsedAndNothingIsLeftBehind() throws Exception {
    loadIsolated();
    Path copy = copyOf(unpacked().get(0), "rwx------");
    Path target = Files.move(copy, parent.resolve("target"));
    Files.createSymbolicLink(copy, target);
    assertNotNull(loadIsolated());
    assertFalse(isMapped(target.resolve(LIBRARY)));
    assertEquals(1, copy.getParent().toFile().list().length);
  }

  /** There others could put a folder of theirs in the place of the one that was looked at. */
  @Test
  public void whereOthersMayRenameNothingIsUnpacked() throws Exception {
    for (int mode : new int[] {0777, 0770}) {
      Files.setAttribute(parent, "unix:mode", mode);
      LambdaTestUtils.intercept(
          IOException.class, "others may rename", NativeLibraryTest::loadIsolated);
      assertEquals(0, unpacked().size());
    }
    for (int mode : new int[] {01777, 0755}) {
      Files.setAttribute(parent, "unix:mode", mode);
      assertNotNull(loadIsolated());
    }
  }

  @Test
  public void aLibraryInTheLibraryPathCountsAlsoIfItIsBroken() throws Exception {
    Path installed = Files.createDirectory(parent.resolve("installed"));
    System.setProperty(LIBRARY_PATH, "/nonexistent" + File.pathSeparator + installed);
    assertNotNull("nothing there: unpacked", loadIsolated());
    Files.write(installed.resolve(LIBRARY), new byte[10]);
    LambdaTestUtils.intercept(
        IOException.class, "cannot be loaded", NativeLibraryTest::loadIsolated);
  }
}
