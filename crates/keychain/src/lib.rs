//! A directory of keys, certificates and trust anchors with the right permissions.
