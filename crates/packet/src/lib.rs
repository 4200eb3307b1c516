//! NDN wire format: TLV, names, Interest, Data, NDNLPv2 and management elements.
