//! Contents that are read anew because the head asks what they are by now: reading takes longer
//! than an Interest lives, so whoever asks repeats it, and finds the answer when it is there.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use byname_packet::{Name, NameRef};
use byname_site::Listed;
use byname_transfer::naming::content_path;
use byname_transfer::server::Echo;

/// Orders that are being carried out, or whose answers are kept.
const ORDERS_MAX: usize = 4;
/// Interests that one answer goes to.
const ECHOES_MAX: usize = 8;
/// Octets after which a page ends.
const PAGE_BYTES: u64 = 64 << 20;
/// Root that no content has.
const CONTRADICTION: [u8; 32] = [0; 32];
/// Octets read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// What is to be done about an order.
#[derive(Debug)]
pub(crate) enum Reread {
    /// The answer is there.
    Answered(Vec<u8>),
    /// It is being carried out.
    Joined,
    /// Carry it out, and hand the answer to [`Rereads::finish`].
    Begin,
    /// There are too many.
    Busy,
}

struct Order {
    name: Name,
    echoes: Vec<Echo>,
    answer: Option<Vec<u8>>,
}

/// Orders and their answers, the oldest first.
#[derive(Default)]
pub(crate) struct Rereads {
    orders: VecDeque<Order>,
}

impl Rereads {
    pub(crate) fn handle(&mut self, name: NameRef<'_>, echo: Echo) -> Reread {
        if let Some(order) = self.orders.iter_mut().find(|order| order.name.view() == name) {
            return match &order.answer {
                Some(wire) => Reread::Answered(wire.clone()),
                None => {
                    // The latest is waited for the longest.
                    if order.echoes.len() >= ECHOES_MAX {
                        order.echoes.remove(0);
                    }
                    order.echoes.push(echo);
                    Reread::Joined
                }
            };
        }
        if self.orders.len() >= ORDERS_MAX {
            let answered = self.orders.iter().position(|order| order.answer.is_some());
            let Some(index) = answered else { return Reread::Busy };
            self.orders.remove(index);
        }
        self.orders.push_back(Order { name: name.to_name(), echoes: vec![echo], answer: None });
        Reread::Begin
    }

    /// An order has its answer; whom to give it to.
    pub(crate) fn finish(&mut self, name: NameRef<'_>, answer: Vec<u8>) -> Vec<Echo> {
        let order = self.orders.iter_mut().find(|order| order.name.view() == name);
        order.map_or_else(Vec::new, |order| {
            order.answer = Some(answer);
            std::mem::take(&mut order.echoes)
        })
    }
}

/// Reads contents below a directory until enough was read: what they are now. What cannot be read
/// to its end is as long as what could be read. Where the record says another root than the octets
/// have, one of them is not what the catalog has, and the answer is neither's.
pub(crate) fn reread(objects: &Path, page: Vec<Listed>) -> Vec<Listed> {
    let mut read_bytes = 0;
    let mut found = Vec::new();
    for Listed { content, root: recorded, .. } in page {
        let path = content_path(content.inode.0, content.version.0);
        let path = objects.join(String::from_utf8_lossy(&path).as_ref());
        let (size, read) = hash(&path).unwrap_or_else(|hashed| hashed);
        let root = if read == recorded { read } else { CONTRADICTION };
        found.push(Listed { content, size, root });
        read_bytes += size;
        if read_bytes >= PAGE_BYTES {
            break;
        }
    }
    found
}

type Hashed = (u64, [u8; 32]);

fn hash(path: &Path) -> Result<Hashed, Hashed> {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let hashed = |hasher: &blake3::Hasher| (hasher.count(), *hasher.finalize().as_bytes());
    let Ok(mut file) = File::open(path) else { return Err(hashed(&hasher)) };
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(hashed(&hasher)),
            Ok(len) => {
                hasher.update(&chunk[..len]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "cannot be read");
                return Err(hashed(&hasher));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use byname_catalog::id::{ContentId, InodeId, Version};
    use byname_packet::Interest;
    use byname_transfer::server::{Arrival, FaceId};

    use super::*;

    fn echo(wire: &[u8]) -> Echo {
        let interest = Interest::decode(wire).unwrap();
        Echo::of(&Arrival {
            interest: &interest,
            pit_token: None,
            congestion_mark: None,
            face: FaceId(1),
            incoming_face_id: None,
            path_trace: None,
        })
    }

    fn wire(name: &Name) -> Vec<u8> {
        let mut wire = Vec::new();
        byname_packet::InterestBuilder::new(name.view()).encode(&mut wire);
        wire
    }

    #[test]
    fn an_order_is_carried_out_once_and_its_answer_is_kept_for_whoever_repeats_it() {
        let names: Vec<Name> = (0..6).map(|n| format!("/disk/{n}").parse().unwrap()).collect();
        let mut rereads = Rereads::default();
        let handle = |rereads: &mut Rereads, index: usize| {
            rereads.handle(names[index].view(), echo(&wire(&names[index])))
        };
        for index in 0..ORDERS_MAX {
            assert!(matches!(handle(&mut rereads, index), Reread::Begin));
        }
        assert!(matches!(handle(&mut rereads, 4), Reread::Busy), "all are being carried out");
        for _ in 0..2 * ECHOES_MAX {
            assert!(matches!(handle(&mut rereads, 0), Reread::Joined));
        }
        assert_eq!(rereads.finish(names[0].view(), vec![7]).len(), ECHOES_MAX);
        let again = handle(&mut rereads, 0);
        assert!(matches!(again, Reread::Answered(wire) if wire == [7]));
        assert!(matches!(handle(&mut rereads, 4), Reread::Begin), "in place of what was answered");
        assert!(matches!(handle(&mut rereads, 0), Reread::Busy));
        assert_eq!(rereads.finish(names[5].view(), vec![8]).len(), 0, "nobody asked for that");
    }

    #[test]
    fn what_is_read_is_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let octets = vec![5; CHUNK_BYTES + 1];
        let root = |octets: &[u8]| *blake3::hash(octets).as_bytes();
        let listed = |inode, root| {
            let content = ContentId { inode: InodeId(inode), version: Version(1) };
            Listed { content, size: 0, root }
        };
        let path = content_path(2, 1);
        let path = directory.path().join(String::from_utf8(path.to_vec()).unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &octets).unwrap();
        let page = vec![listed(2, root(&octets)), listed(3, root(b"")), listed(2, root(b"other"))];
        let found = reread(directory.path(), page);
        let sizes_roots: Vec<Hashed> = found.iter().map(|it| (it.size, it.root)).collect();
        let len = octets.len() as u64;
        let expected = [(len, root(&octets)), (0, root(b"")), (len, CONTRADICTION)];
        assert_eq!(sizes_roots, expected, "one that is gone is empty");
    }
}
