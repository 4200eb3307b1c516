//! A site's protocol: what users, heads and disks say to each other so that files are written.
//!
//! Sans-I/O: packets in, packets out; keys, time and random octets are arguments. docs/protocol.md
//! §11 is the normative text. A user signs a *command* ([`CommandPacket`]) and gets a [`Reply`]; a
//! new version of a file begins with a [`Ticket`], which is a certificate for the content's name
//! over the writer's key. The writer signs a [`Claim`] and sends each disk an [`Insert`]; a disk
//! that has everything on stable storage answers with a [`SignedReceipt`].
//!
//! Every decoder is strict: a command or an order with an element that is not known, missing,
//! repeated or out of place is refused, because half of it must not be done. In what is only read
//! (replies, claims, receipts, tickets) unknown non-critical elements may follow the known ones.

mod agreement;
pub mod authentic;
mod claim;
mod codec;
mod command;
mod keyring;
mod names;
mod numbers;
mod order;
mod parts;
mod receipt;
mod reply;
mod speaks_for;
mod stamp;
mod ticket;

pub use agreement::{
    Agree, SealedBy, SeedSource, SessionKeys, Transcript, library_seeds, sealed_by, sign_question,
};
pub use authentic::{Authentic, Check, Untrusted, check_data, check_interest};
pub use claim::Claim;
pub use command::{CommandPacket, RequestId};
pub use keyring::Keyring;
pub use names::{DiskName, Identity, SiteName};
pub use order::{
    CONTENTS_MAX, COPY_PAGE_BYTES, CatalogCopy, CopyAnswer, CopyPoint, CopyState, DiskRefusal,
    DiskView, Drop, DropAnswer, FRAME_BYTES_MAX, Frame, Insert, InsertAnswer, Keep, KeptRecord,
    LISTED_MAX, List, ListAnswer, Listed, Prove, ProveAnswer, ROTTEN_MAX, ROWS_BYTES_MAX, Recall,
    ScrubState, frame,
};
pub use receipt::SignedReceipt;
pub use reply::{HeadFailure, Outcome, Reply, SiteAnswer};
pub use speaks_for::SpeaksFor;
pub use stamp::Stamp;
pub use ticket::{
    Origin, Terms, TermsDisk, Ticket, TicketError, VALIDITY_AFTER_S, VALIDITY_BEFORE_S,
};
