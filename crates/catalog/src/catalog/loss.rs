//! Taking the lease where the engine has an earlier state than one that was acknowledged: a standby
//! took the place of a database and lacks the last transactions.
//!
//! Numbers that the lost transactions gave out are on disks and at readers. So an epoch begins
//! above them, as after a rebuild, in the transaction that takes the lease: no number is given out
//! twice, disks keep content that is not known here, and readers see a later state.

use super::{Catalog, CatalogError};
use crate::engine::{Engine, EngineError, Rows, Table};
use crate::id::{InodeId, LeaseEpoch, TransactionNumber, epoch_of, epoch_start};
use crate::record::{COUNTERS_KEY, Counters, Dentry, Inode, LEASE_KEY, Lease, inode_key};
use crate::refusal::Refusal;
use crate::view::{View, decoded, prefixed, read};

impl<E: Engine> Catalog<E> {
    /// [`Self::take_over`] after a loss: numbers begin anew above what is there and above
    /// `highest`, the highest epoch that the caller has seen.
    pub fn take_over_after_loss(
        engine: E,
        head: &str,
        seen: Option<&Lease>,
        (until_ns, highest): (u64, LeaseEpoch),
    ) -> Result<Self, CatalogError> {
        let setbacks = engine.setbacks();
        let transaction = engine.begin()?;
        let rows: &dyn Rows = &*transaction;
        let counters: Option<Counters> = read(rows, COUNTERS_KEY)?;
        let mut counters = counters.ok_or(CatalogError::NoSite)?;
        let old: Option<Lease> = read(rows, LEASE_KEY)?;
        if old.as_ref() != seen {
            let Lease { head, until_ns, .. } = old.ok_or(CatalogError::LeaseLost)?;
            return Err(CatalogError::LeaseHeld { head, until_ns });
        }
        let old = old.map_or(LeaseEpoch(0), |lease| lease.epoch);
        let numbers = [counters.issued, counters.transaction, old.0, highest.0];
        let epoch = numbers.into_iter().map(epoch_of).max().and_then(|epoch| epoch.checked_add(1));
        let start = epoch_start(epoch.ok_or(Refusal::CountersExhausted)?);
        counters.former.push(counters.issued);
        (counters.issued, counters.transaction) = (start, start);
        let epoch = LeaseEpoch(start);
        let mut view = View::new(rows);
        view.set(COUNTERS_KEY.to_vec(), &counters);
        view.set(LEASE_KEY.to_vec(), &Lease { epoch, head: head.to_owned(), until_ns });
        raise_bindings(rows, &mut view, TransactionNumber(start))?;
        let writes = view.into_writes();
        transaction.commit(&writes)?;
        Ok(Self::begun(engine, head, (epoch, setbacks)))
    }
}

/// Gives every place a binding that readers have not seen: what they saw of a lost future would
/// otherwise make the site look like an older one. A place's binding is the highest on its way.
pub(crate) fn raise_bindings(
    rows: &dyn Rows,
    view: &mut View<'_>,
    binding: TransactionNumber,
) -> Result<(), EngineError> {
    let root_key = inode_key(InodeId::ROOT);
    if let Some(root) = read::<Inode>(rows, &root_key)? {
        view.set(root_key.clone(), &Inode { binding, ..root });
    }
    for (key, value) in prefixed(rows, Table::Dentry, &root_key, usize::MAX)? {
        let entry: Dentry = decoded(&value)?;
        view.set(key, &Dentry { placed: binding, ..entry });
    }
    Ok(())
}
