//! The last viewed leaves of each conversation: one below each turn at which the tree forks.
//!
//! This is state of the page, not content: it is in no log, bundle or hash, and is kept in a small
//! file beside the store. Each token has leaves of its own. The number of leaves is bounded; the
//! least recently updated conversations are removed first.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, ErrorKind, ProjectId};

use crate::problem::Problem;

/// The maximum number of leaves of one conversation.
pub(crate) const CONVERSATION_LEAVES: usize = 1_000;

/// The maximum number of leaves altogether.
const ALL_LEAVES: usize = 20_000;

/// Maps turn ids to the ids of leaves.
pub(crate) type Leaves = BTreeMap<String, String>;

/// The file, or the values in memory.
pub(crate) struct Visited {
    path: Option<PathBuf>,
    /// Locked while the file is read and replaced; holds the values if there is no file.
    known: Mutex<Vec<Entry>>,
}

/// The leaves of one caller in one conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    who: Option<String>,
    project: String,
    conversation: String,
    leaves: Leaves,
}

/// A caller and a conversation.
pub(crate) struct VisitedKey<'a> {
    pub(crate) who: Option<&'a str>,
    pub(crate) project: &'a ProjectId,
    pub(crate) conversation: &'a ConversationId,
}

impl VisitedKey<'_> {
    fn matches(&self, entry: &Entry) -> bool {
        entry.who.as_deref() == self.who
            && entry.project == self.project.as_str()
            && entry.conversation == self.conversation.as_str()
    }
}

impl Visited {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Visited { path, known: Mutex::default() }
    }

    /// Returns the leaves of a conversation.
    pub(crate) fn get(&self, at: &VisitedKey<'_>) -> Result<Leaves, Problem> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(&mut known)?;
        Ok(known
            .iter()
            .find(|entry| at.matches(entry))
            .map(|it| it.leaves.clone())
            .unwrap_or_default())
    }

    /// Adds, replaces and removes leaves.
    pub(crate) fn put(
        &self,
        at: &VisitedKey<'_>,
        changed: BTreeMap<String, Option<String>>,
    ) -> Result<Leaves, Problem> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(&mut known)?;
        let found =
            known.iter().position(|entry| at.matches(entry)).map(|place| known.remove(place));
        let mut entry = found.unwrap_or_else(|| Entry {
            who: at.who.map(str::to_owned),
            project: at.project.to_string(),
            conversation: at.conversation.to_string(),
            leaves: Leaves::new(),
        });
        for (place, leaf) in changed {
            match leaf {
                Some(leaf) => entry.leaves.insert(place, leaf),
                None => entry.leaves.remove(&place),
            };
        }
        if entry.leaves.len() > CONVERSATION_LEAVES {
            let why = format!("at most {CONVERSATION_LEAVES} leaves of a conversation are kept");
            return Err(Problem::new(ErrorKind::TooLarge, why));
        }
        let leaves = entry.leaves.clone();
        known.push(entry);
        let mut all: usize = known.iter().map(|entry| entry.leaves.len()).sum();
        while all > ALL_LEAVES {
            all -= known.remove(0).leaves.len();
        }
        self.write(&known)?;
        Ok(leaves)
    }

    /// Reads the file, which another process may have written.
    fn read(&self, known: &mut Vec<Entry>) -> Result<(), Problem> {
        let Some(path) = &self.path else { return Ok(()) };
        *known = match fs::read(path) {
            // A file that cannot be parsed is discarded.
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io_problem(&error)),
        };
        Ok(())
    }

    fn write(&self, known: &[Entry]) -> Result<(), Problem> {
        let Some(path) = &self.path else { return Ok(()) };
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let bytes = serde_json::to_vec(known).unwrap_or_default();
        let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
        written.map_err(|error| io_problem(&error))
    }
}

fn io_problem(error: &io::Error) -> Problem {
    Problem::new(ErrorKind::Internal, format!("the last viewed leaves cannot be stored: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(visited: &Visited, conversation: &str, places: usize) -> Result<Leaves, Problem> {
        let conversation = ConversationId::from_stored(conversation);
        let project = ProjectId::default();
        let at = VisitedKey { who: None, project: &project, conversation: &conversation };
        let places = (0..places).map(|place| (place.to_string(), Some("leaf".to_owned())));
        visited.put(&at, places.collect())
    }

    #[test]
    fn the_least_recently_updated_conversations_are_removed_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let visited = Visited::new(Some(folder.path().join("tine.visited")));
        for number in 0..=20 {
            put(&visited, &number.to_string(), CONVERSATION_LEAVES).expect("kept");
        }
        let places = |conversation: &str| put(&visited, conversation, 0).expect("kept").len();
        assert_eq!(
            (places("0"), places("1"), places("20")),
            (0, CONVERSATION_LEAVES, CONVERSATION_LEAVES)
        );
        assert!(put(&visited, "20", CONVERSATION_LEAVES + 1).is_err());
        assert_eq!(places("20"), CONVERSATION_LEAVES);
    }

    #[test]
    fn a_file_that_cannot_be_parsed_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tine.visited");
        fs::write(&path, b"{").expect("a file");
        let visited = Visited::new(Some(path));
        assert_eq!(put(&visited, "c", 0).expect("kept").len(), 0);
        assert_eq!(put(&visited, "c", 2).expect("kept").len(), 2);
    }
}
