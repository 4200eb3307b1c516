//! Replays `vectors/tree`, which any other implementation can read.
//!
//! `BYNAME_WRITE_VECTORS=1 cargo test -p byname-security vectors` writes the files anew.

use std::path::PathBuf;

use byname_security::tree::{FANOUT, Folder, GROUP_BYTES, Hash, Shape, Tree, UNIT_BYTES};
use serde_json::{Value, json};

use super::{SIZES, content};

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/tree").join(file)
}

/// Compares a computed document with the stored one, or stores it.
fn replay(file: &str, computed: &Value) {
    if std::env::var_os("BYNAME_WRITE_VECTORS").is_some() {
        let text = serde_json::to_string_pretty(computed).unwrap() + "\n";
        std::fs::write(path(file), text).unwrap();
    }
    let stored = std::fs::read_to_string(path(file)).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let (stored, computed) = (cases(&stored), cases(computed));
    assert_eq!(stored.len(), computed.len(), "{file}: number of cases");
    for (stored, computed) in stored.iter().zip(computed) {
        assert_eq!(stored, computed, "{file}");
    }
}

fn cases(document: &Value) -> &Vec<Value> {
    document["cases"].as_array().unwrap()
}

fn levels(levels: &[Vec<u8>]) -> Value {
    let level =
        |values: &Vec<u8>| json!({"bytes": values.len(), "blake3": Hash::of(values).to_string()});
    levels.iter().map(level).collect()
}

#[test]
fn content_vectors() {
    let case = |size: usize| {
        let tree = Tree::of(&content(size));
        json!({"size": size, "root": tree.root.to_string(), "levels": levels(&tree.levels)})
    };
    let document = json!({
        "about": "Trees of files. Byte i of the content is i modulo 251. Each level is the \
                  concatenation of its chaining values; its digest is plain BLAKE3.",
        "unit_bytes": UNIT_BYTES,
        "fanout": FANOUT,
        "cases": SIZES.into_iter().map(case).collect::<Value>(),
    });
    replay("content.json", &document);
}

#[test]
fn count_vectors() {
    let (unit, group) = (UNIT_BYTES as u64, GROUP_BYTES as u64);
    let boundaries = [0, unit, 256 * unit, 256 * group, 65536 * group, 1 << 40, 32 << 40];
    let around = boundaries.into_iter().flat_map(|size: u64| {
        [size.checked_sub(1), Some(size), Some(size + 1)].into_iter().flatten()
    });
    let case = |size: u64| {
        let shape = Shape::new(size);
        let entries: Vec<u64> = (1..=shape.level_count()).map(|k| shape.entries(k)).collect();
        // As text: these numbers do not fit a double.
        let size = size.to_string();
        json!({"size": size, "unit_count": shape.unit_count(), "entries": entries})
    };
    let document = json!({
        "about": "Values per level, level 1 first, for sizes in bytes (decimal text).",
        "cases": around.chain([u64::MAX]).map(case).collect::<Value>(),
    });
    replay("counts.json", &document);
}

#[test]
fn fold_vectors() {
    let case = |units: u64| {
        let shape = Shape::new(units * UNIT_BYTES as u64);
        let values = (0..units).flat_map(|index| Hash::of(&index.to_le_bytes()).0);
        let mut folder = Folder::new(shape);
        let mut tree = vec![Vec::new(); shape.level_count() as usize];
        folder
            .push_values(&values.collect::<Vec<u8>>(), |id, node| {
                tree[id.level as usize - 1].extend_from_slice(node);
            })
            .unwrap();
        let root = folder.finish().unwrap().to_string();
        json!({"units": units, "root": root, "levels": levels(&tree)})
    };
    let counts = [2, 3, 255, 256, 257, 511, 512, 513, 65535, 65536, 65537, 65793];
    let document = json!({
        "about": "Folding only. Value i of level 1 is the plain BLAKE3 hash of i as 8 octets, \
                  little endian (no file has this tree).",
        "cases": counts.into_iter().map(case).collect::<Value>(),
    });
    replay("folds.json", &document);
}
