//! Where somebody was last in each conversation: the leaf below each place at which the tree forks.
//!
//! That is how people look at a tree and nothing that they said: it is in no log, no bundle and no
//! hash, and lies in a small file of its own beside the store. Whoever has a token has places of
//! their own. Bounded: what was not looked at for longest is forgotten first.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tine_core::{ConversationId, ErrorKind, ProjectId};

use crate::problem::Problem;

/// Places that are kept in one conversation.
pub(crate) const PLACES: usize = 1_000;

/// Places that are kept altogether.
const ALL_PLACES: usize = 20_000;

/// The leaf below each place, by the place's name.
pub(crate) type Leaves = BTreeMap<String, String>;

/// The file, or what stands in for it.
pub(crate) struct Visited {
    path: Option<PathBuf>,
    /// Held while the file is read and replaced; holds everything where there is no file.
    known: Mutex<Vec<Entry>>,
}

/// One conversation as somebody looks at it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    who: Option<String>,
    project: String,
    conversation: String,
    leaves: Leaves,
}

/// Whose places, and where.
pub(crate) struct Where<'a> {
    pub(crate) who: Option<&'a str>,
    pub(crate) project: &'a ProjectId,
    pub(crate) conversation: &'a ConversationId,
}

impl Where<'_> {
    fn is(&self, entry: &Entry) -> bool {
        entry.who.as_deref() == self.who
            && entry.project == self.project.as_str()
            && entry.conversation == self.conversation.as_str()
    }
}

impl Visited {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Visited { path, known: Mutex::default() }
    }

    /// The places of a conversation.
    pub(crate) fn get(&self, at: &Where<'_>) -> Result<Leaves, Problem> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(&mut known)?;
        Ok(known.iter().find(|entry| at.is(entry)).map(|it| it.leaves.clone()).unwrap_or_default())
    }

    /// Adds places, replaces and removes some.
    pub(crate) fn put(
        &self,
        at: &Where<'_>,
        changed: BTreeMap<String, Option<String>>,
    ) -> Result<Leaves, Problem> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(&mut known)?;
        let found = known.iter().position(|entry| at.is(entry)).map(|place| known.remove(place));
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
        if entry.leaves.len() > PLACES {
            let why = format!("at most {PLACES} places of a conversation are kept");
            return Err(Problem::new(ErrorKind::TooLarge, why));
        }
        let leaves = entry.leaves.clone();
        known.push(entry);
        let mut all: usize = known.iter().map(|entry| entry.leaves.len()).sum();
        while all > ALL_PLACES {
            all -= known.remove(0).leaves.len();
        }
        self.write(&known)?;
        Ok(leaves)
    }

    /// Another process may have written since: a server or its successor.
    fn read(&self, known: &mut Vec<Entry>) -> Result<(), Problem> {
        let Some(path) = &self.path else { return Ok(()) };
        *known = match fs::read(path) {
            // What cannot be read is as good as forgotten, and not worth a refusal.
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unkept(&error)),
        };
        Ok(())
    }

    fn write(&self, known: &[Entry]) -> Result<(), Problem> {
        let Some(path) = &self.path else { return Ok(()) };
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let bytes = serde_json::to_vec(known).unwrap_or_default();
        let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
        written.map_err(|error| unkept(&error))
    }
}

fn unkept(error: &io::Error) -> Problem {
    Problem::new(ErrorKind::Internal, format!("what was visited cannot be kept: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(visited: &Visited, conversation: &str, places: usize) -> Result<Leaves, Problem> {
        let conversation = ConversationId::from_stored(conversation);
        let project = ProjectId::default();
        let at = Where { who: None, project: &project, conversation: &conversation };
        let places = (0..places).map(|place| (place.to_string(), Some("leaf".to_owned())));
        visited.put(&at, places.collect())
    }

    #[test]
    fn what_was_not_looked_at_for_longest_is_forgotten_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let visited = Visited::new(Some(folder.path().join("tine.visited")));
        for number in 0..=20 {
            put(&visited, &number.to_string(), PLACES).expect("kept");
        }
        let places = |conversation: &str| put(&visited, conversation, 0).expect("kept").len();
        assert_eq!((places("0"), places("1"), places("20")), (0, PLACES, PLACES));
        assert!(put(&visited, "20", PLACES + 1).is_err());
        assert_eq!(places("20"), PLACES);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_written_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tine.visited");
        fs::write(&path, b"{").expect("a file");
        let visited = Visited::new(Some(path));
        assert_eq!(put(&visited, "c", 0).expect("kept").len(), 0);
        assert_eq!(put(&visited, "c", 2).expect("kept").len(), 2);
    }
}
