package byname.hadoop;

import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

/** The configuration of a cluster's machines, as a file in their class path. */
final class CoreSite {
  private CoreSite() {}

  /**
   * Writes what has one of these prefixes. Links are there: who brings files to a machine knows of
   * the job nothing but where they are.
   */
  static Path write(Configuration from, String... prefixes) throws Exception {
    Configuration machines = new Configuration(false);
    for (Map.Entry<String, String> one : from) {
      boolean isWanted = one.getKey().endsWith(".ndn.impl");
      for (String prefix : prefixes) {
        isWanted |= one.getKey().startsWith(prefix);
      }
      if (isWanted) {
        machines.set(one.getKey(), one.getValue());
      }
    }
    URI classes = CoreSite.class.getProtectionDomain().getCodeSource().getLocation().toURI();
    Path file = Path.of(classes).resolve("core-site.xml");
    try (OutputStream out = Files.newOutputStream(file)) {
      machines.writeXml(out);
    }
    return file;
  }
}
