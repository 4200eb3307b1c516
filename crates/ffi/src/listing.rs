//! Open listings behind the handles, and their pages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use byname_client::{ListedEntry, Listing, Pending, RemoteFile, SortedListing, Stat};

use crate::abi;
use crate::attributes::Described;
use crate::call::Work;
use crate::fault::Fault;
use crate::handles::{Kind, Table};
use crate::memory::{Place, TextRoom};
use crate::page::PageRoom;
use crate::session::{ActiveCall, SessionState};

/// The open listings of this process.
pub(crate) static LISTINGS: Table<ListingState> =
    Table::new(Kind::Listing, (abi::BYNAME_LISTINGS_MAX * abi::BYNAME_SESSIONS_MAX) as usize);

/// An open listing.
pub(crate) struct ListingState {
    pub(crate) session: Arc<SessionState>,
    sorted: SortedListing,
    _charge: Charge,
}

/// Octets of a listing, as long as it is open.
struct Charge {
    session: Arc<SessionState>,
    bytes: u64,
}

impl Charge {
    fn new(session: &Arc<SessionState>, bytes: u64) -> Result<Self, Fault> {
        let totals = &session.totals;
        let count = totals.listings.fetch_add(1, Ordering::Relaxed);
        let before = totals.listing_bytes.fetch_add(bytes, Ordering::Relaxed);
        let charge = Charge { session: Arc::clone(session), bytes };
        let max = abi::BYNAME_LISTINGS_BYTES_MAX;
        match () {
            () if count >= abi::BYNAME_LISTINGS_MAX => Err(Fault::TooMany { what: "listing" }),
            () if before + bytes > max => Err(Fault::ListingBytes { max }),
            () => Ok(charge),
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.session.totals.listings.fetch_sub(1, Ordering::Relaxed);
        self.session.totals.listing_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The call that lists a directory; it ends with the handle.
pub(crate) fn list(active: ActiveCall, pending: Pending<Listing>) -> Work<Listing> {
    let session = Arc::clone(&active);
    Work::new(active, pending, move |listing| {
        let state = ListingState::new(session, listing)?;
        LISTINGS.insert(Arc::new(state))
    })
}

impl ListingState {
    fn new(session: Arc<SessionState>, listing: Listing) -> Result<Self, Fault> {
        let bytes = listing.payload().len() + size_of::<u32>() * listing.entry_count();
        let charge = Charge::new(&session, bytes as u64)?;
        Ok(ListingState { session, sorted: SortedListing::new(listing), _charge: charge })
    }

    /// Entries that can be files.
    pub(crate) fn count(&self) -> u64 {
        self.sorted.count() as u64
    }

    /// Status of the directory.
    pub(crate) fn stat(&self) -> Stat {
        Stat::new(self.sorted.listing().name.clone(), &self.sorted.listing().discovered)
    }

    /// Opens an entry, asking for its description only if the listing has not enough of it.
    pub(crate) fn open(&self, name: &[u8]) -> Result<Pending<RemoteFile>, Fault> {
        let missing = || Fault::NoEntry { name: String::from_utf8_lossy(name).into_owned() };
        let listed = self.sorted.find(name).ok_or_else(missing)?;
        let listing = self.sorted.listing();
        Ok(match listing.resolve(&listed) {
            Some(entry) => self.session.session.open_entry_later(&entry),
            None => self.session.session.open_later(&listing.name.with_generic(name)),
        })
    }

    /// Fills a page.
    pub(crate) fn fill(&self, place: &Place<abi::Page>) -> Result<i64, Fault> {
        let mut page = PageRoom::new(place)?;
        let first = usize::try_from(page.next()).unwrap_or(usize::MAX).min(self.sorted.count());
        for index in first..self.sorted.count() {
            if page.is_full() {
                break;
            }
            let Some(listed) = self.sorted.entry(index) else { break };
            if !page.push(|room| self.entry(&listed, room))? {
                break;
            }
        }
        page.finish(first as u64, place);
        Ok(0)
    }

    fn entry(&self, listed: &ListedEntry<'_>, room: &mut TextRoom) -> abi::Entry {
        let name = listed.entry.name;
        abi::Entry {
            name: room.push(name),
            name_bytes: name.len() as u64,
            is_resolved: self.sorted.listing().resolve(listed).is_some().into(),
            reserved: 0,
            attributes: Described::of_entry(self.sorted.listing(), listed).with_texts(room),
        }
    }
}
