//! All faces by number.
//!
//! Numbers are given out in sequence and never again, and are looked up for every packet: so a face
//! stands in a page of 256, at the place its number says. A page whose faces are all gone is let
//! go; what remains of it are the eight octets of its place.

use byname_packet::lp::LpHeader;

use crate::counters::Drops;
use crate::face::{FaceCounters, FaceId, FaceInfo, FaceOptions};
use crate::management::FaceView;
use crate::tx::Tx;

const PAGE: u64 = 256;

/// Packets in an inbox; more are dropped, as on any full queue.
const INBOX_MAX: usize = 256;

/// One face.
#[derive(Debug)]
pub(crate) struct Face {
    pub(crate) info: FaceInfo,
    pub(crate) options: FaceOptions,
    pub(crate) counters: FaceCounters,
    /// False while a persistent face has lost its link.
    pub(crate) up: bool,
    /// Packets from this face that led to nothing.
    pub(crate) drops: Drops,
    /// Data sent to the forwarder itself, on the one face that is its own.
    pub(crate) inbox: Option<Vec<Vec<u8>>>,
}

impl Face {
    /// A face that is up.
    pub(crate) fn new(info: FaceInfo) -> Self {
        Self {
            info,
            options: FaceOptions::default(),
            counters: FaceCounters::default(),
            up: true,
            drops: Drops::default(),
            inbox: None,
        }
    }

    /// The face as management sees it.
    pub(crate) fn view(&self, id: FaceId) -> FaceView<'_> {
        FaceView { id, info: &self.info, options: &self.options, is_down: !self.up }
    }

    /// Sends Data over this face, whose number is `id`.
    pub(crate) fn send_data(
        &mut self,
        id: FaceId,
        header: &LpHeader<'_>,
        packet: &[u8],
        tx: &mut dyn Tx,
    ) {
        self.counters.out_data += 1;
        self.counters.out_bytes += packet.len() as u64;
        if let Some(inbox) = &mut self.inbox {
            if inbox.len() < INBOX_MAX {
                inbox.push(packet.to_vec());
            }
            return;
        }
        tx.send(id, header, packet);
    }
}

/// Faces in one page, and how many.
#[derive(Debug)]
struct Page {
    faces: [Option<Box<Face>>; PAGE as usize],
    count: u32,
}

/// All faces by number. The driver bounds how many there are.
#[derive(Debug, Default)]
pub(crate) struct FaceTable {
    pages: Vec<Option<Box<Page>>>,
    given_out: u64,
}

impl FaceTable {
    pub(crate) fn add(&mut self, face: Face) -> FaceId {
        // NFD keeps the numbers below 256 for its own internal faces; clients print what they get.
        let id = FaceId(PAGE + self.given_out);
        self.given_out += 1;
        self.put(id, face);
        id
    }

    /// Puts a face that has got its number elsewhere.
    pub(crate) fn put(&mut self, id: FaceId, face: Face) {
        let (page, at) = place(id);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| {
            Box::new(Page { faces: std::array::from_fn(|_| None), count: 0 })
        });
        if page.faces[at].replace(Box::new(face)).is_none() {
            page.count += 1;
        }
    }

    pub(crate) fn remove(&mut self, id: FaceId) -> bool {
        let (at_page, at) = place(id);
        let Some(Some(page)) = self.pages.get_mut(at_page) else { return false };
        if page.faces[at].take().is_none() {
            return false;
        }
        page.count -= 1;
        if page.count == 0 {
            self.pages[at_page] = None;
        }
        true
    }

    #[inline]
    pub(crate) fn get(&self, id: FaceId) -> Option<&Face> {
        let (page, at) = place(id);
        self.pages.get(page)?.as_ref()?.faces[at].as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: FaceId) -> Option<&mut Face> {
        let (page, at) = place(id);
        self.pages.get_mut(page)?.as_mut()?.faces[at].as_deref_mut()
    }

    /// In the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FaceId, &Face)> {
        self.pages.iter().enumerate().flat_map(|(page, faces)| {
            let faces = faces.as_ref().map_or(&[][..], |page| &page.faces);
            faces.iter().enumerate().filter_map(move |(at, face)| {
                let id = FaceId((page as u64 + 1) * PAGE + at as u64);
                face.as_deref().map(|face| (id, face))
            })
        })
    }
}

/// Page and place in it. Numbers below the first one lead to no page.
#[inline]
fn place(id: FaceId) -> (usize, usize) {
    ((id.0 / PAGE).wrapping_sub(1) as usize, (id.0 % PAGE) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_are_found_by_numbers_that_are_never_given_out_again() {
        let mut table = FaceTable::default();
        let ids: Vec<FaceId> =
            (0..600).map(|_| table.add(Face::new(FaceInfo::default()))).collect();
        assert_eq!((ids[0], ids[599]), (FaceId(256), FaceId(855)));
        for id in &ids[1..599] {
            assert!(table.remove(*id));
            assert!(!table.remove(*id));
        }
        assert_eq!(table.iter().map(|(id, _)| id).collect::<Vec<_>>(), [ids[0], ids[599]]);
        assert_eq!(table.add(Face::new(FaceInfo::default())), FaceId(856));
        for unknown in [0, 1, 255, 300, 857, 1 << 40, u64::MAX] {
            assert!(table.get(FaceId(unknown)).is_none());
            assert!(table.get_mut(FaceId(unknown)).is_none());
            assert!(!table.remove(FaceId(unknown)));
        }
        assert!(table.pages[1].is_none(), "an empty page is let go");
    }
}
