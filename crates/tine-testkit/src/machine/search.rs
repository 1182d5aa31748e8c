//! After any sequence, a search for a word finds just the shown turns that say it.

use std::collections::{BTreeMap, BTreeSet};

use tine_core::tokenizer::{self, TermKind};
use tine_core::{TurnId, search_text};
use tine_engine::{Engine, SearchQuery};
use tine_store::Content;

use super::compare::same;
use super::{Checked, Machine};

/// Words that are looked for in one check.
const WORDS: usize = 6;

impl Machine {
    /// Looks for some words of the turns that are shown, on both engines.
    pub(crate) fn check_search(&self) -> Checked {
        let mut holders: BTreeMap<String, BTreeSet<TurnId>> = BTreeMap::new();
        for ix in self.there() {
            for row in self.model.shown(ix) {
                let view = self.model.view(row.turn);
                let Content::Kept(body) = &view.content else { continue };
                for piece in search_text::pieces(body, &view.metadata) {
                    tokenizer::for_each_term(&piece, &mut |term, sort, _| {
                        if sort == TermKind::Word {
                            holders.entry(term.to_owned()).or_default().insert(view.id);
                        }
                    });
                }
            }
        }
        // Others at each check, so that all come up in the end.
        let count = holders.len().max(1);
        let first = usize::try_from(self.steps).unwrap_or(0) * WORDS % count;
        let some = holders.iter().cycle().skip(first).take(WORDS.min(holders.len()));
        let gone = ("nobodysaidthis".to_owned(), BTreeSet::new());
        for (word, expected) in some.chain([(&gone.0, &gone.1)]) {
            self.check_word(&self.memory, word, expected)?;
            if let Some(embedded) = &self.embedded {
                self.check_word(embedded, word, expected)?;
            }
        }
        Ok(())
    }

    fn check_word(&self, engine: &Engine, word: &str, expected: &BTreeSet<TurnId>) -> Checked {
        let words = format!("\"{word}\"");
        let query = SearchQuery { archived: true, limit: Some(1_000), ..SearchQuery::of(words) };
        let page = engine.search(&self.call, query);
        let page = page.map_err(|error| format!("a search for {word} failed: {error}"))?;
        let found: BTreeSet<TurnId> = page.hits.iter().map(|hit| hit.turn).collect();
        same(&format!("turns that say {word}"), &found, expected)
    }
}
