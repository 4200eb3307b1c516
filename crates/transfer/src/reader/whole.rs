//! Reading small objects as a whole: their nodes are asked for only if something is wrong.

use super::{Body, Reader};

impl Reader {
    /// The owner wants all of the object, and nothing of it before all of it is verified: of one
    /// up to [`WHOLE_BYTES_MAX`](crate::verify::WHOLE_BYTES_MAX) octets no node is asked for
    /// unless what came is not what was signed. To be called before the first request, of a
    /// reader that was told to read everything and has nothing of it yet.
    pub fn verify_whole(&mut self) {
        if let Body::Tree(verifier) = &mut self.body {
            verifier.verify_whole();
        }
    }
}
