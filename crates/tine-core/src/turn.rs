//! The content of a turn and where it comes from.

use crate::facts::Slot;
use crate::{Body, Digest, Role, TurnId};

/// The content of a turn, or its digest after a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The canonical content.
    Kept(Body),
    /// Purged. The digest remains, so that an import recognises the content and does not restore it.
    Purged(Digest),
}

/// The turns or host slot that a turn was made from; empty for a plain append.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnOrigin {
    /// The turn that it is an edited version of.
    pub edited_from: Option<TurnId>,
    /// The turn that it is a copy of.
    pub derived_from: Option<TurnId>,
    /// The turn that it is one half of.
    pub part_of: Option<TurnId>,
    /// The host's slot that it is a version of; role and call are those of the turn.
    pub slot: Option<Slot>,
}

/// Set when a slot follows the ids. Its role and call are those of the turn.
const SLOT_BIT: u8 = 1 << 3;

impl TurnOrigin {
    /// Returns the stored form; `None` for a plain append.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let fields = [self.edited_from, self.derived_from, self.part_of];
        let mut bytes = vec![0];
        for (bit, id) in fields.iter().enumerate() {
            if let Some(id) = id {
                bytes[0] |= 1 << bit;
                bytes.extend_from_slice(id.as_bytes());
            }
        }
        if let Some(slot) = &self.slot {
            bytes[0] |= SLOT_BIT;
            bytes.extend_from_slice(&slot.part.to_le_bytes());
            bytes.extend_from_slice(slot.turn_id.as_bytes());
        }
        (bytes[0] != 0).then_some(bytes)
    }

    /// Reads the stored form; `role` and `tool_call_id` are those of the turn.
    pub fn from_bytes(bytes: &[u8], role: Role, tool_call_id: Option<&str>) -> Option<TurnOrigin> {
        let (flags, mut rest) = bytes.split_first()?;
        let mut fields = [None; 3];
        for (bit, field) in fields.iter_mut().enumerate() {
            if flags >> bit & 1 == 1 {
                let (id, tail) = rest.split_first_chunk::<16>()?;
                *field = Some(TurnId::from_bytes(*id));
                rest = tail;
            }
        }
        let [edited_from, derived_from, part_of] = fields;
        let mut slot = None;
        if flags & SLOT_BIT != 0 {
            let (part, turn_id) = rest.split_first_chunk::<4>()?;
            slot = Some(Slot {
                turn_id: String::from_utf8(turn_id.to_vec()).ok()?,
                role,
                tool_call_id: tool_call_id.map(str::to_owned),
                part: u32::from_le_bytes(*part),
            });
            rest = &[];
        }
        rest.is_empty().then_some(TurnOrigin { edited_from, derived_from, part_of, slot })
    }
}
