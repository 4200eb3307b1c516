//! Whom a backup is taken of: a head that goes on.

use serde_json::Value;

use super::error::BackupError;

/// A head that is asked.
pub trait BackupSource {
    /// Name of its site, as a URI.
    fn site(&self) -> String;
    /// Lines of one answer to a question of an operator.
    ///
    /// # Errors
    /// [`BackupError::Source`].
    fn ask(&mut self, subject: &str, after: &str) -> Result<Vec<Value>, BackupError>;
    /// The packet by which the head vouches for a file with this sum.
    ///
    /// # Errors
    /// [`BackupError::Source`].
    fn seal(&mut self, sum: &[u8; 32]) -> Result<Vec<u8>, BackupError>;
}
