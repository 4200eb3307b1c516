//! Out and in again: rows, lines, rows, a catalog.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use byname_catalog::engine::{EmbeddedEngine, Engine, MemoryEngine, Table};
use byname_catalog::{BaseRow, Caller, Reader, RowChange, export};
use byname_head::backup::{Backup, BackupError, BackupSource, Until, export_lines};
use byname_head::rebuild::{Rebuild, RebuildError};
use byname_packet::{NameRef, ValidityPeriod};
use byname_security::base64;
use byname_security::cert::{Certificate, CertificateRequest, SELF_ISSUER};
use byname_security::key::{KeyPair, KeySigner};
use byname_site::SiteName;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::machine::{Fate, Fragile, batches, run};
use crate::same::assert_same;
use crate::support::{SITE, cases};

const NOW_S: u64 = 1_800_000_000;
/// Rows of one answer.
const PAGE_ROWS: usize = 40;

pub(crate) fn site() -> SiteName {
    SiteName::new(NameRef::from_value(SITE).unwrap().to_name()).unwrap()
}

fn certificate() -> Certificate {
    let key = Arc::new(KeyPair::ed25519_from_seed(&[1; 32]));
    let key_name = site().view().to_name().with_generic(b"KEY").with_generic(&[1; 8]);
    let public_key = key.public_key();
    let request = CertificateRequest {
        key_name: key_name.view(),
        public_key: &public_key,
        issuer_id: SELF_ISSUER,
        version: 1,
        validity: ValidityPeriod { not_before_s: NOW_S - 9, not_after_s: NOW_S + 999_999 },
    };
    request.issue(&KeySigner::new(key.clone(), request.certificate_name())).unwrap()
}

pub(crate) fn rows(engine: &dyn Engine) -> Vec<BaseRow> {
    export(&*engine.snapshot().unwrap(), None, usize::MAX).unwrap()
}

/// A head that answers with rows of an engine that stays as it is.
struct Still<'a>(&'a dyn Engine);

impl BackupSource for Still<'_> {
    fn site(&self) -> String {
        site().view().to_string()
    }

    fn ask(&mut self, subject: &str, after: &str) -> Result<Vec<Value>, BackupError> {
        assert_eq!(subject, "backup-rows", "nothing was changed meanwhile");
        let place = after.split_once(' ').map(|(table, key)| {
            let table = Table::from_number(table.parse().unwrap()).unwrap();
            (table, base64::decode_url(key).unwrap())
        });
        let from = place.as_ref().map(|(table, key)| (*table, key.as_slice()));
        let page = export(&*self.0.snapshot().unwrap(), from, PAGE_ROWS).unwrap();
        let last = page.last().filter(|_| page.len() == PAGE_ROWS);
        let next = last.map(|row| format!("{} {}", row.table as u8, base64::encode_url(&row.key)));
        let mut octets = Vec::new();
        page.into_iter().for_each(|row| RowChange::from(row).encode(&mut octets));
        let through = Reader::new(self.0, &Caller::Head).unwrap().last_transaction().unwrap();
        Ok(vec![json!({
            "transaction": through.0,
            "at_ns": 7,
            "rows": base64::encode_url(&octets),
            "next": next,
        })])
    }

    fn seal(&mut self, _: &[u8; 32]) -> Result<Vec<u8>, BackupError> {
        panic!("lines have no seal")
    }
}

pub(crate) fn lines_of(engine: &dyn Engine, directory: &Path) -> String {
    let mut text = Vec::new();
    export_lines(&mut Still(engine), directory, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Makes a catalog of lines, as `site import` does.
pub(crate) fn import(text: &str, directory: &Path) -> Result<EmbeddedEngine, RebuildError> {
    let (file, head) = (directory.join("lines.jsonl"), directory.join("head"));
    fs::write(&file, text).unwrap();
    let (site, certificate) = (site(), certificate());
    let unix_ns = NOW_S * 1_000_000_000;
    let rebuild = Rebuild { site: &site, certificate: &certificate, directory: &head, unix_ns };
    let backup = Backup::open(&file)?;
    rebuild.restore((&backup, Until::Latest), &mut [])?.place()?;
    Ok(EmbeddedEngine::open(&head.join("catalog.redb")).unwrap())
}

/// An engine that never fails.
struct Sound(Arc<dyn Engine>);

impl Fragile for Sound {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.0)
    }

    fn prepare(&self, _: Fate) {}

    fn restart(&mut self, _: Fate) {}
}

fn assert_survives(engine: &dyn Engine) {
    let directory = tempfile::tempdir().unwrap();
    let text = lines_of(engine, directory.path());
    // Every line says what it has, in the words of the documentation.
    let kinds = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(kinds.into_iter().all(|line| line["kind"].is_string()), "{text}");
    let again = MemoryEngine::default();
    let file = directory.path().join("lines");
    fs::write(&file, &text).unwrap();
    Backup::open(&file).unwrap().stage(&again, Until::Latest).unwrap();
    assert_eq!(rows(engine), rows(&again), "in memory");
    let imported = import(&text, directory.path()).unwrap();
    assert_same(engine, &imported);
    assert!(import(&text, directory.path()).is_err(), "over a catalog that is there");
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn what_is_made_in_memory_is_the_same_after_export_and_import(batches in batches()) {
        let engine = run(Sound(Arc::new(MemoryEngine::default())), &batches)?;
        assert_survives(&*engine.0);
    }

    #[test]
    fn what_is_made_in_a_file_is_the_same_after_export_and_import(batches in batches()) {
        let directory = tempfile::tempdir().unwrap();
        let made = EmbeddedEngine::open(&directory.path().join("made.redb")).unwrap();
        let engine = run(Sound(Arc::new(made)), &batches)?;
        assert_survives(&*engine.0);
    }
}
