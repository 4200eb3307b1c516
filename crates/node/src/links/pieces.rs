//! Frames that are sent at the end of the burst, without a copy of what lies in the burst.

/// A frame to be sent at the end of the burst: octets of `scratch`, then octets of the burst.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    head_at: usize,
    head_bytes: usize,
    body_at: usize,
    body_bytes: usize,
}

impl Piece {
    pub(super) fn parts<'a>(&self, scratch: &'a [u8], burst: &'a [u8]) -> [&'a [u8]; 2] {
        [
            &scratch[self.head_at..self.head_at + self.head_bytes],
            &burst[self.body_at..self.body_at + self.body_bytes],
        ]
    }
}

/// Place of the burst that is handed out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Burst {
    address: usize,
    bytes: usize,
}

impl Burst {
    pub(super) fn of(burst: &[u8]) -> Self {
        Self { address: burst.as_ptr() as usize, bytes: burst.len() }
    }

    /// Place where `body` lies in the burst, if it does.
    fn place_of(&self, body: &[u8]) -> Option<usize> {
        let at = (body.as_ptr() as usize).checked_sub(self.address)?;
        (at + body.len() <= self.bytes).then_some(at)
    }
}

/// Notes frames of one link for the end of the burst.
pub(super) struct PieceNotes<'a> {
    pub(super) pieces: &'a mut Vec<Piece>,
    pub(super) scratch: &'a mut Vec<u8>,
    pub(super) scratch_max: usize,
    pub(super) burst: Burst,
}

impl PieceNotes<'_> {
    /// Notes a frame; false if it needs a copy for which there is no room.
    pub(super) fn take(&mut self, head: &[u8], body: &[u8]) -> bool {
        let head_at = self.scratch.len();
        if head_at + head.len() + body.len() > self.scratch_max {
            return false;
        }
        self.scratch.extend_from_slice(head);
        let place = self.burst.place_of(body);
        if place.is_none() {
            self.scratch.extend_from_slice(body);
        }
        let head_bytes = self.scratch.len() - head_at;
        let (body_at, body_bytes) = place.map_or((0, 0), |at| (at, body.len()));
        self.pieces.push(Piece { head_at, head_bytes, body_at, body_bytes });
        true
    }
}
