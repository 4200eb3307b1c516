//! Why bytes are not a packet, or text is not a name.

use thiserror::Error;

/// A packet was refused. Offsets count octets from the start of the element named by `within`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The input ends inside an element.
    #[error("{within}: the input ends inside an element")]
    Truncated {
        /// The element being read.
        within: &'static str,
    },
    /// A TYPE, LENGTH or number is not in its shortest form.
    #[error("a variable-size number at offset {offset} is not in its shortest form")]
    NotShortest {
        /// Where the number starts in the enclosing value.
        offset: usize,
    },
    /// TYPE 0 or above 2^32-1, or a component TYPE outside 1..65535.
    #[error("TLV-TYPE {typ} is not allowed in {within}")]
    InvalidType {
        /// The number read.
        typ: u64,
        /// The element being read.
        within: &'static str,
    },
    /// Something else than the element that must stand here.
    #[error("element of TLV-TYPE {typ} does not belong in {within} here")]
    Unexpected {
        /// Its TYPE.
        typ: u32,
        /// The element being read.
        within: &'static str,
    },
    /// An unknown element that must not be ignored.
    #[error("unknown critical element of TLV-TYPE {typ} in {within}")]
    UnknownCritical {
        /// Its TYPE.
        typ: u32,
        /// The element being read.
        within: &'static str,
    },
    /// A known critical element after its place, or twice.
    #[error("element of TLV-TYPE {typ} in {within} is repeated or out of order")]
    OutOfOrder {
        /// Its TYPE.
        typ: u32,
        /// The element being read.
        within: &'static str,
    },
    /// A required element is absent.
    #[error("{within} lacks {element}")]
    Missing {
        /// The missing element.
        element: &'static str,
        /// Where.
        within: &'static str,
    },
    /// A value of the wrong size.
    #[error("{element} has {len} octets, which is not allowed")]
    BadLength {
        /// The element.
        element: &'static str,
        /// Its TLV-LENGTH.
        len: usize,
    },
    /// A value that makes no sense.
    #[error("{element} has a value that is not allowed")]
    BadValue {
        /// The element.
        element: &'static str,
    },
    /// Octets after the end of the packet.
    #[error("{len} octets follow the end of {within}")]
    Trailing {
        /// Number of octets.
        len: usize,
        /// After what.
        within: &'static str,
    },
    /// The ParametersSha256Digest component does not match the parameters.
    #[error("the parameters digest in the name does not match the parameters")]
    ParametersDigest,
}

impl DecodeError {
    /// A stable word for counters and for comparing with other implementations.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Truncated { .. } => "truncated",
            Self::NotShortest { .. } => "not-shortest",
            Self::InvalidType { .. } => "invalid-type",
            Self::Unexpected { .. } => "unexpected",
            Self::UnknownCritical { .. } => "unknown-critical",
            Self::OutOfOrder { .. } => "out-of-order",
            Self::Missing { .. } => "missing",
            Self::BadLength { .. } => "bad-length",
            Self::BadValue { .. } => "bad-value",
            Self::Trailing { .. } => "trailing",
            Self::ParametersDigest => "parameters-digest",
        }
    }
}

/// Text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UriError {
    /// Names start with `/`.
    #[error("a name starts with '/', this does not: {text:?}")]
    NoSlash {
        /// The text.
        text: String,
    },
    /// `%` not followed by two hexadecimal digits.
    #[error("'%' must be followed by two hexadecimal digits in {component:?}")]
    BadEscape {
        /// The component.
        component: String,
    },
    /// `TYPE=` with a number outside 1..65535, or an unknown marker.
    #[error("unknown component type in {component:?} (known: seg off v t seq sha256digest N=)")]
    BadType {
        /// The component.
        component: String,
    },
    /// A number or digest that cannot be read.
    #[error("bad value in {component:?}")]
    BadValue {
        /// The component.
        component: String,
    },
    /// `.` and `..` are not names of files.
    #[error("'.' and '..' cannot be used in a name: {text:?}")]
    DotComponent {
        /// The text.
        text: String,
    },
    /// `//` in the URI form: an empty component is written `...`.
    #[error("empty component in {text:?} (an empty component is written '...')")]
    EmptyComponent {
        /// The text.
        text: String,
    },
}

impl UriError {
    /// A stable word for comparing with other implementations.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoSlash { .. } => "no-slash",
            Self::BadEscape { .. } => "bad-escape",
            Self::BadType { .. } => "bad-type",
            Self::BadValue { .. } => "bad-value",
            Self::DotComponent { .. } => "dot-component",
            Self::EmptyComponent { .. } => "empty-component",
        }
    }
}
