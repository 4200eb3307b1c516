//! What a machine's service and the programs that use it say to each other, and the side of the
//! programs. The other side is [`service`](crate::service), which also says what it is all for.

pub(crate) mod link;
pub(crate) mod proofs;
pub(crate) mod wire;
