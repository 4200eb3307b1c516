//! Executes the client engine over io.
