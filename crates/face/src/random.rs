//! Random numbers: first sequence numbers, nonces, jitter.

use rustix::rand::{GetRandomFlags, getrandom};

/// A random number of the kernel.
pub fn random_u64() -> u64 {
    let mut octets = [0; 8];
    // Eight octets come whole once the kernel's generator is seeded, which start-up waits for.
    let _ = getrandom(&mut octets, GetRandomFlags::empty());
    u64::from_be_bytes(octets)
}
