package byname.hadoop;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.AclEntryScope;
import org.apache.hadoop.fs.permission.AclEntryType;
import org.apache.hadoop.fs.permission.FsAction;

/**
 * Access control lists as the native library has them, {@code u::rwx,u:anna:r-x,g::r-x}, and as
 * Hadoop has them.
 */
final class AclTexts {
  /** The list of what is made in a directory. */
  static final int DEFAULT = 1;

  /** Begin with what a mode says. */
  static final int CLEAR = 2;

  private static final String MASK = ",m:";

  private AclTexts() {}

  /** Entries of one of the two lists, with their rights; null if there are none of it. */
  static String of(List<AclEntry> entries, AclEntryScope scope) {
    String text =
        entries.stream()
            .filter(entry -> entry.getScope() == scope)
            .map(AclTexts::text)
            .collect(Collectors.joining(","));
    return text.isEmpty() ? null : text;
  }

  private static String text(AclEntry entry) {
    String name = entry.getName() == null ? "" : entry.getName();
    // Entries that are to be removed have none.
    FsAction rights = entry.getPermission();
    return letter(entry.getType()) + ":" + name + ":" + (rights == null ? "-" : rights.SYMBOL);
  }

  private static char letter(AclEntryType type) {
    switch (type) {
      case USER:
        return 'u';
      case GROUP:
        return 'g';
      case MASK:
        return 'm';
      default:
        return 'o';
    }
  }

  /** Whether there is more to know than the permission bits; false where nobody says. */
  static boolean isBeyondMode(NativeSite site, Path path) {
    try {
      List<String> lists = site.acl(path);
      return lists.get(0).contains(MASK) || !lists.get(1).isEmpty();
    } catch (IOException e) {
      return false;
    }
  }

  /**
   * What Hadoop wants to know of a list: all entries of that of what is made in a directory, and of
   * its own those that the permission bits do not have, if it names anybody or has a mask.
   */
  static List<AclEntry> entries(String text, AclEntryScope scope) {
    List<AclEntry> found = new ArrayList<>();
    if (text.isEmpty()) {
      return found;
    }
    boolean isBeyondMode = text.contains(MASK);
    for (String one : text.split(",")) {
      String[] parts = one.split(":", -1);
      AclEntryType type = type(parts[0].charAt(0));
      String name = parts[1].isEmpty() ? null : parts[1];
      boolean isOfMode = type == AclEntryType.MASK || type == AclEntryType.OTHER
          || (type == AclEntryType.USER && name == null);
      if (scope == AclEntryScope.DEFAULT || (isBeyondMode && !isOfMode)) {
        found.add(
            new AclEntry.Builder()
                .setScope(scope)
                .setType(type)
                .setName(name)
                .setPermission(FsAction.getFsAction(parts[2]))
                .build());
      }
    }
    return found;
  }

  private static AclEntryType type(char letter) {
    switch (letter) {
      case 'u':
        return AclEntryType.USER;
      case 'g':
        return AclEntryType.GROUP;
      case 'm':
        return AclEntryType.MASK;
      default:
        return AclEntryType.OTHER;
    }
  }
}
