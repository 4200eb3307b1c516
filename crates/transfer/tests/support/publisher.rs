//! A publisher in memory that follows the file protocol to the letter, built from packet
//! primitives alone, so that the client is tested against the protocol and not against our server.

use std::collections::BTreeMap;
use std::sync::Arc;

use byname_packet::lp::nack_reason;
use byname_packet::{
    Component, ContentType, DataBuilder, Interest, Name, NameRef, NullSigner, NumberComponent,
    Signer, ValidityPeriod,
};
use byname_security::cert::CertificateRequest;
use byname_security::key::{KeyId, KeyPair, KeySigner};
use byname_security::tree::{Tree, TreeBuilder};
use byname_transfer::listing::{Entry, write_entry};
use byname_transfer::manifest;
use byname_transfer::metadata::{Absence, ContentRoot, Extras, Metadata};
use byname_transfer::naming::{self, Aspect, Part, Request, last_segment};

/// Wall clock of all tests: 2026-11-21.
pub const UNIX_NS: u64 = 1_795_248_000_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Data(Vec<u8>),
    Nack(u64),
    Silence,
}

/// One version of a file or directory.
#[derive(Debug)]
pub struct Published {
    pub version: u64,
    pub bytes: Vec<u8>,
    pub tree: Tree,
    pub segment_bytes: usize,
    pub is_directory: bool,
    pub mode: u16,
    pub root: ContentRoot,
    /// An answer given in place of a description.
    pub absence: Option<Absence>,
}

#[derive(Debug)]
pub struct Publisher {
    pub prefix: Name,
    pub signer: KeySigner,
    pub certificate: Vec<u8>,
    pub objects: BTreeMap<Name, Published>,
    /// Segments are signed with the key instead of not at all, for clients that know no roots.
    pub signs_segments: bool,
    /// Leave out everything that only byname announces.
    pub is_foreign: bool,
    /// The name that it says the content has.
    pub announces: Option<Name>,
    /// The transaction that bound path and content.
    pub binding: Option<u64>,
    /// Announces the objects as links to this.
    pub link_target: Option<Vec<u8>>,
}

impl Publisher {
    /// A publisher of `prefix` with the key made from `seed`.
    pub fn new(prefix: &str, seed: u8) -> Self {
        let prefix: Name = prefix.parse().expect("a name");
        let key = Arc::new(KeyPair::ed25519_from_seed(&[seed; 32]));
        let key_name = prefix.with_generic(b"KEY").with_generic(&[seed; 8]);
        let public_key = key.public_key();
        let request = CertificateRequest {
            key_name: key_name.view(),
            public_key: &public_key,
            issuer_id: b"self",
            version: 1,
            validity: ValidityPeriod { not_before_s: 0, not_after_s: 4_000_000_000 },
        };
        let signer = KeySigner::new(key, request.certificate_name());
        let certificate = request.issue(&signer).expect("a certificate").wire().to_vec();
        let objects = BTreeMap::new();
        Publisher {
            prefix,
            signer,
            certificate,
            objects,
            signs_segments: false,
            is_foreign: false,
            announces: None,
            binding: None,
            link_target: None,
        }
    }

    pub fn key_id(&self) -> KeyId {
        self.signer.key().key_id()
    }

    /// The name of the certificate.
    pub fn signer_name(&self) -> Name {
        let locator = self.signer.key_locator().expect("it points to its certificate");
        locator.to_name()
    }

    /// The name of a path under the prefix.
    pub fn name(&self, path: &str) -> Name {
        path.split('/')
            .filter(|it| !it.is_empty())
            .fold(self.prefix.clone(), |name, component| name.with_generic(component.as_bytes()))
    }

    pub fn publish(&mut self, path: &str, version: u64, bytes: &[u8]) -> Name {
        let name = self.name(path);
        self.objects.insert(name.clone(), published(version, bytes, false));
        name
    }

    /// Publishes a directory with these entries; directories end with `/`.
    pub fn publish_listing(&mut self, path: &str, version: u64, entries: &[&[u8]]) -> Name {
        let mut payload = Vec::new();
        for entry in entries {
            let (name, is_directory) = match entry.strip_suffix(b"/") {
                Some(name) => (name, true),
                None => (*entry, false),
            };
            write_entry(&mut payload, Entry { name, is_directory });
        }
        let name = self.name(path);
        self.objects.insert(name.clone(), published(version, &payload, true));
        name
    }

    /// Publishes a directory with these files, sorted by name, and its manifest.
    pub fn publish_manifest(&mut self, path: &str, version: u64, files: &[(&str, &[u8])]) -> Name {
        let entries: Vec<&[u8]> = files.iter().map(|(name, _)| name.as_bytes()).collect();
        let directory = self.publish_listing(path, version, &entries);
        let mut payload = Vec::new();
        manifest::write_header(&mut payload, files.len() as u64);
        for (name, bytes) in files {
            let file = self.publish(&format!("{path}/{name}"), version, bytes);
            let object = &self.objects[&file];
            let root = Some(*object.tree.root.as_bytes());
            let segment_bytes = object.segment_bytes as u64;
            let entry = manifest::Entry {
                name: name.as_bytes(),
                mode: object.mode,
                mtime_ns: Some(version),
                size: Some(bytes.len() as u64),
                version: Some(manifest::Version { number: version, segment_bytes, root }),
                attributes: Default::default(),
                content: None,
            };
            entry.encode(&mut payload);
        }
        let name = naming::manifest_name(directory.view());
        self.objects.insert(name, published(version, &payload, true));
        directory
    }

    /// Publishes a directory with these octets for a manifest, and without a plain listing.
    pub fn publish_manifest_octets(&mut self, path: &str, version: u64, payload: &[u8]) -> Name {
        let directory = self.name(path);
        let manifest = naming::manifest_name(directory.view());
        self.objects.insert(manifest, published(version, payload, true));
        directory
    }

    /// The object that a request is about: a manifest only if there is one.
    fn object_name(&self, path: NameRef<'_>, request: Request) -> Name {
        let manifest = naming::manifest_name(path);
        let (Request::Metadata { aspect } | Request::Segment { aspect, .. }) = request;
        match aspect == Aspect::Manifest && self.objects.contains_key(&manifest) {
            true => manifest,
            false => path.to_name(),
        }
    }

    pub fn object_mut(&mut self, name: &Name) -> &mut Published {
        self.objects.get_mut(name).expect("it was published")
    }

    pub fn answer(&self, interest: &Interest<'_>) -> Reply {
        let certificate = byname_packet::Data::decode(&self.certificate).expect("a certificate");
        if interest.matches(&certificate) {
            return Reply::Data(self.certificate.clone());
        }
        let Some(parsed) = naming::parse(interest.name) else { return Reply::Silence };
        let object = self.object_name(parsed.path, parsed.request);
        match parsed.request {
            Request::Metadata { .. } => self.describe(interest.name, object.view()),
            Request::Segment { version, part, segment, .. } => {
                let gone = Reply::Nack(nack_reason::NONE);
                let Some(object) = self.objects.get(&object) else { return gone };
                if object.version != version {
                    return gone;
                }
                self.segment(interest.name, object, part, segment).map_or(gone, Reply::Data)
            }
        }
    }

    fn describe(&self, asked: NameRef<'_>, path: NameRef<'_>) -> Reply {
        let name = asked.to_name().with_version(UNIX_NS).with_segment(0);
        let mut content = Vec::new();
        let mut builder = DataBuilder::new(name.view());
        let last = NumberComponent::segment(0);
        builder = builder.freshness_ms(1000).final_block_id(last.as_component());
        let object = self.objects.get(&path.to_name());
        let absence = object.map_or(Some(Absence::NotFound), |object| object.absence);
        match (absence, object) {
            (None, Some(object)) => self.metadata(path, object).encode(&mut content),
            (absence, _) => {
                absence.unwrap_or(Absence::NotFound).encode(&mut content);
                builder = builder.content_type(ContentType::NACK);
            }
        }
        let mut wire = Vec::new();
        builder.encode(&content, &self.signer, &mut wire).expect("it can be signed");
        Reply::Data(wire)
    }

    pub fn metadata(&self, path: NameRef<'_>, object: &Published) -> Metadata {
        let path = self.announces.as_ref().map_or(path, Name::view);
        let is_manifest = path.last().is_some_and(|last| last == keyword("manifest"));
        let is_listing = object.is_directory && !is_manifest;
        let name = naming::versioned_name(path, is_listing, object.version);
        let mut metadata = Metadata::new(name);
        let (size, segment_bytes) = (object.bytes.len() as u64, object.segment_bytes as u64);
        metadata.mode = Some(object.mode);
        metadata.mtime_ns = Some(object.version);
        if object.is_directory {
            metadata.listing_size = Some(size);
            metadata.listing_segment_size = Some(segment_bytes);
        } else {
            metadata.size = Some(size);
            metadata.segment_size = Some(segment_bytes);
            metadata.last_segment = Some(last_segment(size, segment_bytes));
        }
        metadata.root = object.root;
        let (binding, link_target) = (self.binding, self.link_target.clone());
        if binding.is_some() || link_target.is_some() {
            let extras = Extras { binding, link_target, ..Extras::default() };
            metadata.extras = Some(Box::new(extras));
        }
        if self.is_foreign {
            let Metadata { name, mode, extras, .. } = metadata;
            metadata = Metadata { mode, extras, ..Metadata::new(name) };
        }
        metadata
    }

    fn segment(
        &self,
        name: NameRef<'_>,
        object: &Published,
        part: Part,
        segment: u64,
    ) -> Option<Vec<u8>> {
        let is_pending = object.root == ContentRoot::Pending;
        let bytes: &[u8] = match part {
            Part::Content => &object.bytes,
            Part::Tree(2..) if is_pending => return None,
            Part::Tree(level) => object.tree.levels.get(usize::from(level) - 1)?,
        };
        let last = last_segment(bytes.len() as u64, object.segment_bytes as u64);
        if segment > last {
            return None;
        }
        let start = segment as usize * object.segment_bytes;
        let end = (start + object.segment_bytes).min(bytes.len());
        let final_block = NumberComponent::segment(last);
        let builder = DataBuilder::new(name)
            .freshness_ms(3_600_000)
            .final_block_id(final_block.as_component());
        let is_signed = self.signs_segments || (is_pending && part != Part::Content);
        let signer: &dyn Signer = if is_signed { &self.signer } else { &NullSigner };
        let mut wire = Vec::new();
        builder.encode(&bytes[start..end], signer, &mut wire).expect("it fits");
        Some(wire)
    }
}

fn published(version: u64, bytes: &[u8], is_directory: bool) -> Published {
    let mut builder = TreeBuilder::new(bytes.len() as u64);
    builder.push(bytes).expect("the size is right");
    let tree = builder.finish().expect("the size is right");
    Published {
        version,
        root: ContentRoot::Known(*tree.root.as_bytes()),
        tree,
        bytes: bytes.to_vec(),
        segment_bytes: 8192,
        is_directory,
        mode: if is_directory { 0o040_755 } else { 0o100_644 },
        absence: None,
    }
}

/// Bytes that differ from unit to unit.
pub fn sample(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at ^ at >> 8 ^ at >> 13 ^ at >> 21) as u8).collect()
}

/// Flips one bit of the content of a Data packet, keeping it well-formed.
pub fn flip_content_bit(wire: &mut [u8], at: usize) {
    let data = byname_packet::Data::decode(wire).expect("a packet");
    let start = data.content.as_ptr() as usize - wire.as_ptr() as usize;
    let length = data.content.len();
    wire[start + at % length] ^= 1 << (at % 8);
}

/// The keyword component `32=word`.
pub fn keyword(word: &str) -> Component<'_> {
    Component::keyword(word.as_bytes())
}
