//! Numbered places for values that come and go, without an allocation for each.
//!
//! Places are made in chunks that never move, so that growing costs no copy and no pause. A value
//! that is given back stays where it is until its place is taken again: whoever takes it over finds
//! the buffers of the one before and may use them.

/// Values in one chunk.
const CHUNK: usize = 256;

/// Numbered places.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), free: Vec::new() }
    }
}

impl<T: Default> Slab<T> {
    /// A place, with whatever was left there. The callers' bounds keep numbers below `u32::MAX`.
    pub(crate) fn take(&mut self) -> u32 {
        if let Some(index) = self.free.pop() {
            return index;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let Some(chunk) = self.chunks.last_mut() else { return 0 };
        chunk.push(T::default());
        (before + chunk.len() - 1) as u32
    }

    /// Gives a place back, once.
    pub(crate) fn give_back(&mut self, index: u32) {
        self.free.push(index);
    }

    /// The value in a place; `None` for a number that was never given out.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.chunks.get(index as usize / CHUNK)?.get(index as usize % CHUNK)
    }

    /// As [`Slab::get`].
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.chunks.get_mut(index as usize / CHUNK)?.get_mut(index as usize % CHUNK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_with_what_was_left_in_them() {
        let mut slab: Slab<Vec<u8>> = Slab::default();
        let taken: Vec<u32> = (0..1000).map(|_| slab.take()).collect();
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
        slab.get_mut(777).unwrap().extend_from_slice(b"left");
        slab.give_back(777);
        assert_eq!(slab.take(), 777);
        assert_eq!(slab.get(777).unwrap(), b"left");
        assert_eq!(slab.take(), 1000);
        assert!(slab.get(1001).is_none());
    }
}
