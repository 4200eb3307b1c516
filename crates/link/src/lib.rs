//! What a link adds to packets: stream framing, NDNLPv2 fragmentation and reassembly. Sans-I/O.
