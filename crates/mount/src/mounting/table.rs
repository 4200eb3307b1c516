//! The kernel's table of mounts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

const TABLE: &str = "/proc/self/mountinfo";
const OUR_TYPE: &[u8] = b"fuse.byname";

/// One mount.
struct Mounted<'a> {
    device: Option<u64>,
    kind: &'a [u8],
}

/// True if the uppermost mount at a path is one of byname.
pub(super) fn is_ours(path: &Path) -> bool {
    uppermost(&read(), path).is_some_and(|mounted| mounted.kind == OUR_TYPE)
}

/// The device number of the uppermost mount at a path.
pub(super) fn device_at(path: &Path) -> Option<u64> {
    uppermost(&read(), path)?.device
}

/// A process without /proc sees no mounts, and none of its own.
fn read() -> Vec<u8> {
    std::fs::read(TABLE).unwrap_or_default()
}

fn uppermost<'a>(table: &'a [u8], path: &Path) -> Option<Mounted<'a>> {
    let mut lines = table.split(|octet| *octet == b'\n').rev();
    lines.find_map(|line| mounted_at(line, path))
}

/// The mount that a line tells of, if it is at this path.
fn mounted_at<'a>(line: &'a [u8], path: &Path) -> Option<Mounted<'a>> {
    let mut words = line.split(|octet| *octet == b' ');
    let device = std::str::from_utf8(words.nth(2)?).ok().and_then(device_number);
    let place = unescape(words.nth(1)?);
    let kind = words.skip_while(|word| *word != b"-").nth(1)?;
    (place.as_os_str() == path.as_os_str()).then_some(Mounted { device, kind })
}

fn device_number(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// The kernel writes blanks and backslashes as `\` with three octal digits.
fn unescape(word: &[u8]) -> OsString {
    let mut octets = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|_| *first == b'\\');
        let escaped = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(octet) => {
                octets.push(octet);
                rest = &tail[3..];
            }
            None => {
                octets.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &[u8] = b"29 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        40 29 0:40 / /mnt/my\\040lab ro,nosuid shared:2 master:1 - fuse.byname /lab ro,user_id=0\n\
        41 29 0:41 / /mnt/both ro - fuse.byname /lab ro\n\
        42 41 0:42 / /mnt/both rw - tmpfs tmpfs rw\n\
        broken\n";

    #[test]
    fn the_uppermost_mount_at_a_path_counts() {
        let at = |path: &str| {
            let mounted = uppermost(LINES, Path::new(path))?;
            Some((mounted.device.unwrap(), mounted.kind))
        };
        assert_eq!(at("/mnt/my lab"), Some((rustix::fs::makedev(0, 40), OUR_TYPE)));
        assert_eq!(at("/mnt/both").unwrap().1, b"tmpfs", "another lies on top");
        assert_eq!(at("/").unwrap().1, b"ext4");
        assert!(at("/mnt").is_none());
    }
}
