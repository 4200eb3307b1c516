//! Two catalogs that say the same, one of which was made of the other's rows.

use std::collections::BTreeMap;

use byname_catalog::engine::{Engine, Span, Table};
use byname_catalog::id::{InodeId, TransactionNumber};
use byname_catalog::{Caller, Inode, Place, Reader, check};

pub(crate) fn table(engine: &dyn Engine, table: Table) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let rows = engine.snapshot().unwrap();
    rows.range(table, Span::ALL, usize::MAX).unwrap().into_iter().collect()
}

/// A catalog that was made of this one's rows has the same names, attributes, contents, limits,
/// disks and keys, and contradicts itself nowhere.
pub(crate) fn assert_same(engine: &dyn Engine, new: &dyn Engine) {
    // The top directory and its entries have new bindings, which readers have not seen.
    let top = InodeId::ROOT.0.to_be_bytes();
    for kept in [Table::Inode, Table::Dentry] {
        let below = |engine: &dyn Engine| -> BTreeMap<Vec<u8>, Vec<u8>> {
            table(engine, kept).into_iter().filter(|(key, _)| !key.starts_with(&top)).collect()
        };
        assert_eq!(below(engine), below(new), "{kept:?}");
    }
    let list = |engine: &dyn Engine| {
        let reader = Reader::new(engine, &Caller::Head).unwrap();
        let list = reader.list(&Place::path("").unwrap(), None, 1000).unwrap();
        let top = reader.entry(&Place::path("").unwrap()).unwrap();
        let entries: Vec<_> = list.into_iter().map(|it| (it.name, it.id, it.inode)).collect();
        (Inode { binding: TransactionNumber(0), ..top.inode }, entries)
    };
    assert_eq!(list(engine), list(new));
    for kept in [
        Table::Xattr,
        Table::Kept,
        Table::Limit,
        Table::Disk,
        Table::Key,
        Table::Drop,
        Table::Replica,
        Table::Detached,
        Table::Trash,
        Table::TrashOrder,
        Table::TrashUsage,
        Table::TrashPolicy,
        Table::OldVersion,
        Table::Pattern,
        Table::Door,
    ] {
        assert_eq!(table(engine, kept), table(new, kept), "{kept:?}");
    }
    assert_eq!(check(&*new.snapshot().unwrap()).unwrap(), []);
}
