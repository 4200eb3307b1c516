//! Executes the file-server engine's operations on a POSIX tree and a state directory.
