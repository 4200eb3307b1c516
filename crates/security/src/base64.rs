//! Base64 in the two forms that byname prints: URL-safe without padding for key ids, and the
//! standard alphabet in lines of 64 for certificate files.
//!
//! Decoding is strict (no stray bits, no foreign characters), so one value has one spelling and
//! two key ids are equal exactly when their texts are.

use thiserror::Error;

const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const LINE_CHARACTERS: usize = 64;

/// Why a text is no base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Base64Error {
    /// A character is not of the alphabet.
    #[error("character {position} is not a base64 character")]
    Character {
        /// Zero-based position among the characters that count.
        position: usize,
    },
    /// The text ends in the middle of an octet, or its padding is wrong.
    #[error("{length} base64 characters do not make whole octets")]
    Length {
        /// Characters that count.
        length: usize,
    },
    /// The bits after the last octet are not zero.
    #[error("the last base64 character has bits that belong to no octet")]
    StrayBits,
}

/// URL-safe base64 without padding.
pub fn encode_url(bytes: &[u8]) -> String {
    encode(bytes, URL)
}

/// Reads what [`encode_url`] writes.
///
/// # Errors
/// [`Base64Error`] for anything that [`encode_url`] would not write.
pub fn decode_url(text: &str) -> Result<Vec<u8>, Base64Error> {
    decode(text.bytes(), URL)
}

/// Standard base64 with padding, in lines of 64 characters, each ended by a newline.
pub fn encode_lines(bytes: &[u8]) -> String {
    let mut text = encode(bytes, STANDARD);
    text.extend(std::iter::repeat_n('=', (4 - text.len() % 4) % 4));
    let mut lines = String::with_capacity(text.len() + text.len() / LINE_CHARACTERS + 1);
    for (index, character) in text.chars().enumerate() {
        if index > 0 && index % LINE_CHARACTERS == 0 {
            lines.push('\n');
        }
        lines.push(character);
    }
    lines.push('\n');
    lines
}

/// Reads padded standard base64; white space is ignored wherever it stands.
///
/// # Errors
/// [`Base64Error`] for other characters and wrong padding.
pub fn decode_lines(text: &str) -> Result<Vec<u8>, Base64Error> {
    let characters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let length = characters.len();
    let padding = characters.iter().rev().take_while(|byte| **byte == b'=').count();
    if !length.is_multiple_of(4) || padding > 2 {
        return Err(Base64Error::Length { length });
    }
    decode(characters[..length - padding].iter().copied(), STANDARD)
}

fn encode(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0u8; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(group);
        for index in 0..=chunk.len() {
            let sextet = bits >> (18 - 6 * index) & 63;
            text.push(char::from(alphabet[sextet as usize]));
        }
    }
    text
}

fn decode(
    characters: impl Iterator<Item = u8>,
    alphabet: &[u8; 64],
) -> Result<Vec<u8>, Base64Error> {
    let mut bytes = Vec::new();
    let (mut bits, mut bit_count, mut length) = (0u32, 0u32, 0usize);
    for character in characters {
        let sextet = alphabet.iter().position(|letter| *letter == character);
        let sextet = sextet.ok_or(Base64Error::Character { position: length })?;
        bits = bits << 6 | sextet as u32;
        bit_count += 6;
        length += 1;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push((bits >> bit_count) as u8);
            bits &= (1 << bit_count) - 1;
        }
    }
    match (length % 4, bits) {
        (1, _) => Err(Base64Error::Length { length }),
        (_, 0) => Ok(bytes),
        _ => Err(Base64Error::StrayBits),
    }
}
