package byname.hadoop;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Loads the native library, once for each class loader.
 *
 * <p>A library in {@code java.library.path} counts; if there is none, the one in the jar is
 * unpacked below {@code byname.native.dir}, which is {@code java.io.tmpdir} unless set. The folder
 * belongs to the user alone (0700), bears the hash of what is in it, and appears whole or not at
 * all. One that is there already is used if it is such a folder with that content; if it is
 * anything else, a folder of this process is used and removed again. Nothing is unpacked where
 * others may rename entries: they could put a folder of theirs in the place of ours once it was
 * looked at.
 *
 * <p>A virtual machine loads a file for one class loader only. A second one gets a copy of the thin
 * JNI part; the library below is the same for all, because the system's loader knows its name.
 */
final class NativeLibrary {
  private static final String JNI = "byname_jni";
  private static final String[] FILES = {"libbyname.so.1", "libbyname_jni.so"};
  private static final Set<PosixFilePermission> OWNER_ONLY =
      PosixFilePermissions.fromString("rwx------");
  private static final int HASH_CHARS = 32;
  private static final int OTHERS_WRITE = 0022;
  private static final int STICKY = 01000;

  private static boolean isLoaded;

  private NativeLibrary() {}

  /** Loads the library if this class loader has not. */
  static synchronized void load() throws IOException {
    if (isLoaded) {
      return;
    }
    try {
      File installed = installed();
      if (installed != null) {
        loadFile(installed.toPath());
      } else {
        loadUnpacked();
      }
    } catch (UnsatisfiedLinkError e) {
      throw new IOException(
          "the native library of byname cannot be loaded: " + e.getMessage()
              + "; -Djava.library.path names a folder with another, -Dbyname.native.dir a folder"
              + " to unpack to from which programs may be executed",
          e);
    }
    isLoaded = true;
  }

  // The file that System.loadLibrary would take. Asked for by hand, because that call has one error
  // for "is not there" and for "cannot be loaded", and a broken library must not be passed over.
  private static File installed() {
    for (String folder : System.getProperty("java.library.path", "").split(File.pathSeparator)) {
      File file = new File(folder, System.mapLibraryName(JNI));
      if (!folder.isEmpty() && file.isFile()) {
        return file.getAbsoluteFile();
      }
    }
    return null;
  }

  private static void loadUnpacked() throws IOException {
    Map<String, byte[]> contents = contents();
    Path parent = parent();
    Path folder = parent.resolve("byname-native-" + hash(contents));
    boolean isOurs = isWhole(folder, contents) || unpack(parent, folder, contents);
    if (isOurs) {
      loadFile(folder.resolve(FILES[1]));
      return;
    }
    Path own = ownFolder(parent);
    try {
      write(own, contents);
      loadFile(own.resolve(FILES[1]));
    } finally {
      remove(own);
    }
  }

  private static void loadFile(Path file) throws IOException {
    try {
      System.load(file.toString());
    } catch (UnsatisfiedLinkError e) {
      if (!String.valueOf(e.getMessage()).contains("already loaded in another classloader")) {
        throw e;
      }
      loadCopy(file);
    }
  }

  private static void loadCopy(Path file) throws IOException {
    Path own = ownFolder(parent());
    try {
      Path copy = own.resolve(file.getFileName().toString());
      Files.copy(file, copy);
      System.load(copy.toString());
    } finally {
      remove(own);
    }
  }

  private static Path parent() throws IOException {
    String wanted = System.getProperty("byname.native.dir");
    Path parent =
        Paths.get(wanted != null ? wanted : System.getProperty("java.io.tmpdir")).toAbsolutePath();
    Object owner = Files.getAttribute(parent, "unix:uid");
    int mode = (Integer) Files.getAttribute(parent, "unix:mode");
    boolean isOfOthers = !owner.equals(0) && !owner.equals(owner(Paths.get("/proc/self")));
    if (isOfOthers || (mode & OTHERS_WRITE) != 0 && (mode & STICKY) == 0) {
      throw new IOException(
          String.format(
              "the native library of byname is not unpacked in %s: others may rename what is in it"
                  + " (owner %s, mode %o); -Dbyname.native.dir names a folder of this user alone",
              parent, owner, mode & 07777));
    }
    return parent;
  }

  private static Path ownFolder(Path parent) throws IOException {
    return Files.createTempDirectory(
        parent, "byname-native-", PosixFilePermissions.asFileAttribute(OWNER_ONLY));
  }

  private static Map<String, byte[]> contents() throws IOException {
    Map<String, byte[]> contents = new LinkedHashMap<>();
    for (String file : FILES) {
      String resource = "/native/" + platform() + "/" + file;
      try (InputStream from = NativeLibrary.class.getResourceAsStream(resource)) {
        if (from == null) {
          throw new IOException(
              "this jar has no " + resource + ": build byname here (make java), and name the folder"
                  + " of its native library with -Djava.library.path");
        }
        contents.put(file, from.readAllBytes());
      }
    }
    return contents;
  }

  private static String platform() {
    String machine = System.getProperty("os.arch");
    String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
    return system + "-" + ("amd64".equals(machine) ? "x86_64" : machine);
  }

  private static String hash(Map<String, byte[]> contents) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      contents.values().forEach(digest::update);
      StringBuilder text = new StringBuilder();
      for (byte octet : digest.digest()) {
        text.append(String.format("%02x", octet));
      }
      return text.substring(0, HASH_CHARS);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java has SHA-256", e);
    }
  }

  /** True if a folder is this user's alone and has what it should. */
  private static boolean isWhole(Path folder, Map<String, byte[]> contents) throws IOException {
    if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
        || !owner(folder).equals(owner(Paths.get("/proc/self")))
        || !Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS).equals(OWNER_ONLY)) {
      return false;
    }
    for (Map.Entry<String, byte[]> file : contents.entrySet()) {
      Path path = folder.resolve(file.getKey());
      if (!Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)
          || !Arrays.equals(Files.readAllBytes(path), file.getValue())) {
        return false;
      }
    }
    return true;
  }

  private static Object owner(Path path) throws IOException {
    return Files.getAttribute(path, "unix:uid", LinkOption.NOFOLLOW_LINKS);
  }

  /** Makes the folder whole at once; false if something else stands there. */
  private static boolean unpack(Path parent, Path folder, Map<String, byte[]> contents)
      throws IOException {
    Path own = ownFolder(parent);
    write(own, contents);
    try {
      Files.move(own, folder, StandardCopyOption.ATOMIC_MOVE);
      return true;
    } catch (IOException e) {
      // Another process was faster, or something is in the way.
      remove(own);
      return isWhole(folder, contents);
    }
  }

  private static void write(Path folder, Map<String, byte[]> contents) throws IOException {
    for (Map.Entry<String, byte[]> file : contents.entrySet()) {
      Files.write(folder.resolve(file.getKey()), file.getValue());
    }
  }

  // What is loaded stays loaded without its file.
  private static void remove(Path folder) throws IOException {
    for (String file : FILES) {
      Files.deleteIfExists(folder.resolve(file));
    }
    Files.deleteIfExists(folder);
  }
}
