//! Extended attributes as replies.

use byname_cache::Content;
use fuser::{Errno, ReplyXattr};

use super::number;
use crate::tree::Tree;
use crate::xattrs;

/// Answers with the attribute of an inode.
pub(super) fn get(tree: &Tree, (inode, name): (u64, &[u8]), room: u32, reply: ReplyXattr) {
    let attributes = match tree.inode(inode) {
        Ok(inode) => inode.attributes,
        Err(errno) => return reply.error(number(errno)),
    };
    let is_cacheable = tree.is_cacheable(&attributes);
    let of_cache = [xattrs::CACHED, xattrs::PASSED_THROUGH].map(str::as_bytes);
    match xattrs::value(&attributes, name) {
        Some(value) => answer(reply, value.as_bytes(), room),
        None if !is_cacheable || !of_cache.contains(&name) => reply.error(Errno::NO_XATTR),
        None if name == of_cache[0] => match tree.cached(&attributes) {
            Some(content) => answer_cached(content, room, reply),
            None => answer(reply, b"0", room),
        },
        None => match tree.files().is_passed_through(inode) {
            true => answer(reply, b"yes", room),
            false => answer(reply, b"no", room),
        },
    }
}

/// Answers with the names of all attributes of an inode.
pub(super) fn list(tree: &Tree, inode: u64, room: u32, reply: ReplyXattr) {
    match tree.inode(inode) {
        Ok(inode) => {
            let is_cacheable = tree.is_cacheable(&inode.attributes);
            answer(reply, &xattrs::names(&inode.attributes, is_cacheable), room);
        }
        Err(errno) => reply.error(number(errno)),
    }
}

/// Answers when the cache has looked; with EIO if its disk is not to be asked.
fn answer_cached(content: Content, room: u32, reply: ReplyXattr) {
    let asked = content.clone();
    asked.read(0..0, Vec::new(), move |_| {
        answer(reply, content.present_bytes().to_string().as_bytes(), room);
    });
}

fn answer(reply: ReplyXattr, value: &[u8], room: u32) {
    match value.len() {
        bytes if room == 0 => reply.size(u32::try_from(bytes).unwrap_or(u32::MAX)),
        bytes if bytes > room as usize => reply.error(Errno::ERANGE),
        _ => reply.data(value),
    }
}
