//! Files as named objects: the file-server engine and the client engine. Sans-I/O.
