//! How much there is.

use tine_core::ConversationId;

use crate::tree::resolve;
use crate::tree::topology;
use crate::{Call, Engine, Result, Stats};

impl Engine {
    /// Totals of the store, and of one conversation if it is named.
    pub fn stats(&self, call: &Call, conversation: Option<&ConversationId>) -> Result<Stats> {
        self.read(|records| {
            let conversation = match conversation {
                Some(id) => {
                    let found = resolve::conversation(records, call, id)?;
                    Some(topology::totals(records, &found)?)
                }
                None => None,
            };
            Ok(Stats { store: records.totals()?, conversation, usage: None })
        })
    }
}
