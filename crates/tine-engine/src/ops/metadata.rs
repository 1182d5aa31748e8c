//! Titles, tags and data beside a turn.

use std::collections::BTreeSet;

use tine_core::json::{Json, object};
use tine_core::metadata::MetadataKey;
use tine_store::Content;

use crate::log::change::{LoggedChange, text};
use crate::log::mutation::Mutation;
use crate::tree::resolve;
use crate::{Call, Engine, Error, MetadataPatch, Result, TurnRef, TurnView};

impl Engine {
    /// Changes a turn's metadata. A title that is set is replaced only with `force`.
    pub fn patch_metadata(
        &self,
        call: &Call,
        turn: TurnRef,
        patch: MetadataPatch,
    ) -> Result<TurnView> {
        let (turn, _) =
            self.mutate(call, "metadata", (turn, patch), payload, |mutation, request| {
                let (turn, patch) = request;
                let place = resolve::place(mutation.reader(), mutation.call, turn)?;
                let loc = place.require_turn_for("given metadata")?;
                mutation.open(place.conversation)?;
                apply(mutation, loc, patch)?;
                mutation.viewed_turn(loc)
            })?;
        self.load_turn(call, turn)
    }
}

fn payload((turn, patch): &(TurnRef, MetadataPatch)) -> Json {
    let tags = |tags: &[String]| Json::Array(tags.iter().cloned().map(Json::from).collect());
    object([
        ("conversation_id", turn.conversation.as_ref().map(text).into()),
        ("turn", turn.turn.as_str().into()),
        ("title", patch.title.clone().map(Json::from).into()),
        ("auto_title", patch.auto_title.clone().map(Json::from).into()),
        ("add_tags", tags(&patch.add_tags)),
        ("remove_tags", tags(&patch.remove_tags)),
        ("tags", patch.tags.as_deref().map(tags).into()),
        ("custom_data", patch.custom_data.clone().into()),
        ("source_info", patch.source_info.clone().into()),
        ("force", patch.force.into()),
    ])
}

fn apply(
    mutation: &mut Mutation<'_>,
    loc: tine_store::TurnLoc,
    patch: &MetadataPatch,
) -> Result<()> {
    let turn = mutation.tree().turn(loc)?;
    if matches!(turn.content, Content::Purged(_)) {
        return Err(Error::Unsupported(
            "the turn was purged, so its metadata cannot be changed".to_owned(),
        ));
    }
    if let (Some(set), Some(wanted)) = (&turn.metadata.title, &patch.title)
        && wanted.as_ref() != Some(set)
        && !patch.force
    {
        return Err(Error::TitleSet { title: set.clone() });
    }
    let mut wanted = Vec::new();
    if let Some(title) = &patch.title {
        wanted.push((MetadataKey::Title, title.clone().into()));
    }
    if let Some(title) = &patch.auto_title {
        wanted.push((MetadataKey::AutoTitle, title.clone().into()));
    }
    if let Some(data) = &patch.custom_data {
        wanted.push((MetadataKey::CustomData, data.clone()));
    }
    if let Some(info) = &patch.source_info {
        wanted.push((MetadataKey::SourceInfo, info.clone()));
    }
    let mut tags: BTreeSet<String> = match &patch.tags {
        Some(tags) => tags.iter().cloned().collect(),
        None => turn.metadata.tags.clone(),
    };
    tags.extend(patch.add_tags.iter().cloned());
    tags.retain(|tag| !patch.remove_tags.contains(tag));
    wanted.push((MetadataKey::Tags, Json::Array(tags.into_iter().map(Json::from).collect())));

    let mut next = turn.metadata.clone();
    for (key, value) in wanted {
        let before = next.get(key);
        next.set(key, value, mutation.engine.limits())?;
        let after = next.get(key);
        if before != after {
            mutation.changed(LoggedChange::Metadata { turn: turn.id, key, before, after });
        }
    }
    if next != turn.metadata {
        mutation.depends_on(turn.operation);
        mutation.records.set_metadata(loc, &next)?;
    }
    Ok(())
}

/// Returns the title to show: a person's, else a machine's for as long as no turn follows.
pub(crate) fn shown_title(metadata: &tine_core::Metadata, has_children: bool) -> Option<String> {
    match (&metadata.title, &metadata.auto_title) {
        (Some(title), _) => Some(title.clone()),
        (None, Some(title)) if !has_children => Some(title.clone()),
        _ => None,
    }
}
