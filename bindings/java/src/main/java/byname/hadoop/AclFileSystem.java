package byname.hadoop;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.AclEntryScope;
import org.apache.hadoop.fs.permission.AclStatus;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.fs.statistics.StoreStatisticNames;

/**
 * Access control lists of a site: those of POSIX, by names of its users and groups. Its head goes by
 * them, whatever Hadoop calls the user.
 */
abstract class AclFileSystem extends ReadOnlyFileSystem {
  /** The site above a path; null if it can only be read. */
  abstract NativeSite site(Path path) throws IOException;

  /** Counts an operation on a path, and makes the path whole. */
  abstract Path beginWrite(String operation, Path path) throws IOException;

  @Override
  public AclStatus getAclStatus(Path path) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      return super.getAclStatus(path);
    }
    Path name = makeQualified(path);
    Record there = site.stat(name);
    List<String> lists = site.acl(name);
    List<AclEntry> entries =
        new ArrayList<>(AclTexts.entries(lists.get(0), AclEntryScope.ACCESS));
    entries.addAll(AclTexts.entries(lists.get(1), AclEntryScope.DEFAULT));
    FsPermission permission = new FsPermission((short) there.permissions());
    return new AclStatus.Builder()
        .owner(there.owner())
        .group(there.group())
        .stickyBit(permission.getStickyBit())
        .setPermission(permission)
        .addEntries(entries)
        .build();
  }

  @Override
  public void modifyAclEntries(Path path, List<AclEntry> entries) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.modifyAclEntries(path, entries);
      return;
    }
    Path name = beginWrite(StoreStatisticNames.OP_MODIFY_ACL_ENTRIES, path);
    change(site, name, AclTexts.of(entries, AclEntryScope.ACCESS), null, 0);
    change(site, name, AclTexts.of(entries, AclEntryScope.DEFAULT), null, AclTexts.DEFAULT);
  }

  @Override
  public void removeAclEntries(Path path, List<AclEntry> entries) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.removeAclEntries(path, entries);
      return;
    }
    Path name = beginWrite(StoreStatisticNames.OP_REMOVE_ACL_ENTRIES, path);
    change(site, name, null, AclTexts.of(entries, AclEntryScope.ACCESS), 0);
    change(site, name, null, AclTexts.of(entries, AclEntryScope.DEFAULT), AclTexts.DEFAULT);
  }

  @Override
  public void removeDefaultAcl(Path path) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.removeDefaultAcl(path);
      return;
    }
    Path name = beginWrite(StoreStatisticNames.OP_REMOVE_DEFAULT_ACL, path);
    site.changeAcl(name, null, null, AclTexts.DEFAULT | AclTexts.CLEAR);
  }

  /** Leaves the permission bits alone, of which those of the group are what the group had. */
  @Override
  public void removeAcl(Path path) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.removeAcl(path);
      return;
    }
    Path name = beginWrite(StoreStatisticNames.OP_REMOVE_ACL, path);
    site.changeAcl(name, null, null, AclTexts.CLEAR);
    site.changeAcl(name, null, null, AclTexts.DEFAULT | AclTexts.CLEAR);
  }

  /** A list of which no entry is given stays as it is. */
  @Override
  public void setAcl(Path path, List<AclEntry> entries) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.setAcl(path, entries);
      return;
    }
    Path name = beginWrite(StoreStatisticNames.OP_SET_ACL, path);
    String access = AclTexts.of(entries, AclEntryScope.ACCESS);
    String defaults = AclTexts.of(entries, AclEntryScope.DEFAULT);
    change(site, name, access, null, AclTexts.CLEAR);
    change(site, name, defaults, null, AclTexts.DEFAULT | AclTexts.CLEAR);
  }

  private static void change(NativeSite site, Path name, String set, String remove, int flags)
      throws IOException {
    if (set != null || remove != null) {
      site.changeAcl(name, set, remove, flags);
    }
  }
}
