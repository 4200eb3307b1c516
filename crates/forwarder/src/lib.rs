//! FIB, PIT, content store, strategies, scopes and management. Sans-I/O: packets in, actions out.
