//! Digests, keys, certificates, signers, verifiers, trust policy and the BLAKE3 hash tree. Sans-I/O.
