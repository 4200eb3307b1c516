//! The tree of a content that is pulled: the nodes that prove it are kept as they come, and with it
//! when it is stored, so that nobody has to hash it again.

use byname_security::tree::{GROUP_BYTES, NodeId};
use byname_store::{NewContents, TreeDraft};
use byname_transfer::naming::content_path;

use crate::pull::Pull;

/// See the module.
pub(crate) struct PulledTree<'a> {
    new_contents: Option<&'a NewContents>,
    draft: Option<TreeDraft>,
}

impl<'a> PulledTree<'a> {
    /// Of a content of which nothing has come.
    pub(crate) fn begin(pull: &Pull, new_contents: Option<&'a NewContents>) -> Self {
        let draft = new_contents.and_then(|it| it.draft(pull.size, pull.root));
        Self { new_contents, draft }
    }

    /// A verified node came.
    pub(crate) fn put(&mut self, node: NodeId, values: &[u8]) {
        if let Some(draft) = &mut self.draft {
            draft.put(node, values);
        }
    }

    /// The content is stored. Trees of small ones are made as they are needed.
    pub(crate) fn hand_over(self, pull: &Pull) {
        if let Some(new_contents) = self.new_contents
            && pull.size > GROUP_BYTES as u64
        {
            let path = content_path(pull.content.inode.0, pull.content.version.0);
            new_contents.push(path, self.draft);
        }
    }
}
