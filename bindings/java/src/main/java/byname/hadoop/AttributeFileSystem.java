package byname.hadoop;

import java.io.IOException;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.XAttrSetFlag;

/** Extended attributes of a site's files and directories. */
abstract class AttributeFileSystem extends AclFileSystem {
  // Hadoop has no names for these.
  static final String SET_XATTR = "op_xattr_set";
  static final String REMOVE_XATTR = "op_xattr_remove";

  @Override
  public void setXAttr(Path path, String name, byte[] value, EnumSet<XAttrSetFlag> flags)
      throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.setXAttr(path, name, value, flags);
      return;
    }
    byte[] octets = value == null ? new byte[0] : value;
    boolean mayCreate = flags.contains(XAttrSetFlag.CREATE);
    boolean mayReplace = flags.contains(XAttrSetFlag.REPLACE);
    if (!mayCreate && !mayReplace) {
      throw new IOException("setXAttr: neither CREATE nor REPLACE");
    }
    site.setXattr(beginWrite(SET_XATTR, path), name, octets, mayCreate, mayReplace);
  }

  @Override
  public byte[] getXAttr(Path path, String name) throws IOException {
    NativeSite site = site(path);
    return site == null ? super.getXAttr(path, name) : site.xattr(makeQualified(path), name);
  }

  @Override
  public Map<String, byte[]> getXAttrs(Path path) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      return super.getXAttrs(path);
    }
    return getXAttrs(path, site.xattrs(makeQualified(path)));
  }

  @Override
  public Map<String, byte[]> getXAttrs(Path path, List<String> names) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      return super.getXAttrs(path, names);
    }
    Map<String, byte[]> found = new HashMap<>();
    for (String name : names) {
      found.put(name, site.xattr(makeQualified(path), name));
    }
    return found;
  }

  @Override
  public List<String> listXAttrs(Path path) throws IOException {
    NativeSite site = site(path);
    return site == null ? super.listXAttrs(path) : site.xattrs(makeQualified(path));
  }

  @Override
  public void removeXAttr(Path path, String name) throws IOException {
    NativeSite site = site(path);
    if (site == null) {
      super.removeXAttr(path, name);
      return;
    }
    site.removeXattr(beginWrite(REMOVE_XATTR, path), name);
  }
}
