//! Rows as octets: integers of variable length, octets behind their length, keys in big-endian
//! order so that they sort as their numbers do.

/// Appends to a value.
#[derive(Debug, Default)]
pub(crate) struct Encoder(pub(crate) Vec<u8>);

impl Encoder {
    pub(crate) fn octet(&mut self, value: u8) {
        self.0.push(value);
    }

    /// Seven bits an octet, lowest first.
    pub(crate) fn number(&mut self, value: impl Into<u64>) {
        let mut value = value.into();
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn octets(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn array(&mut self, value: &[u8]) {
        self.0.extend_from_slice(value);
    }
}

/// The value does not follow its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Takes a value apart.
#[derive(Debug)]
pub(crate) struct Decoder<'a>(pub(crate) &'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn octet(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let octet = self.octet()?;
            let bits = u64::from(octet & 0x7f);
            if (bits << shift) >> shift != bits {
                return Err(Malformed);
            }
            value |= bits << shift;
            if octet & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    /// A number of a narrower type.
    pub(crate) fn narrow<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.number()?).map_err(|_| Malformed)
    }

    pub(crate) fn octets(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.narrow::<usize>()?;
        let (value, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(value)
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.octets()?.to_vec()).map_err(|_| Malformed)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (value, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*value)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.octet()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    /// Elements one after the other, behind their count.
    pub(crate) fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.number()?;
        // Each element takes an octet at least: a count cannot make this allocate more.
        if count > self.0.len() as u64 {
            return Err(Malformed);
        }
        (0..count).map(|_| element(self)).collect()
    }
}

/// A key of numbers, one after the other.
pub(crate) fn key<const N: usize>(parts: [u64; N]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_be_bytes()).collect()
}

/// Numbers out of a key.
pub(crate) fn key_parts<const N: usize>(key: &[u8]) -> Result<[u64; N], Malformed> {
    let mut decoder = Decoder(key);
    let mut parts = [0; N];
    for part in &mut parts {
        *part = u64::from_be_bytes(decoder.array()?);
    }
    if decoder.0.is_empty() { Ok(parts) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_longer_ones_are_refused() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut encoder = Encoder::default();
            encoder.number(value);
            let mut decoder = Decoder(&encoder.0);
            assert_eq!(decoder.number(), Ok(value));
            assert!(decoder.0.is_empty());
            assert_eq!(Decoder(&encoder.0[1..]).number().is_ok(), encoder.0.len() > 1);
        }
        let mut too_long = [0xff; 10];
        too_long[9] = 0x02;
        assert_eq!(Decoder(&too_long).number(), Err(Malformed));
        assert_eq!(Decoder(&[0x80; 11]).number(), Err(Malformed));
        assert_eq!(Decoder(&[0x80, 0x04]).narrow::<u8>(), Err(Malformed));
    }

    #[test]
    fn a_length_beyond_the_value_allocates_nothing() {
        let mut encoder = Encoder::default();
        encoder.number(u64::MAX);
        encoder.array(b"abc");
        assert_eq!(Decoder(&encoder.0).octets(), Err(Malformed));
        assert_eq!(Decoder(&encoder.0).list(Decoder::octet), Err(Malformed));
    }

    #[test]
    fn keys_sort_as_their_numbers() {
        assert!(key([1, 256]) < key([2, 0]));
        assert_eq!(key_parts(&key([7, u64::MAX])), Ok([7, u64::MAX]));
        assert_eq!(key_parts::<1>(&key([7, 8])), Err(Malformed));
    }
}
