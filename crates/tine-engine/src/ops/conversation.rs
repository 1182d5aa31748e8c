//! Conversations: making, deriving, listing, naming and archiving them.

use serde::{Deserialize, Serialize};
use tine_core::json::{Json, Object, object};
use tine_core::{ConversationId, Message, Name, hash};
use tine_store::{
    Branch, Content, Conversation, ConversationKey, DerivedFrom, Root, TurnLoc, TurnOrigin,
    Visibility,
};

use crate::log::activity;
use crate::log::change::{ConversationField, LoggedChange, text};
use crate::log::mutation::{Mutation, Receipt};
use crate::ops::append::{equal_child, make_chain, refuse_purged};
use crate::tree::path;
use crate::tree::resolve;
use crate::tree::views::{self, ViewOrId};
use crate::{
    Call, ConversationPatch, ConversationView, Derive, Derived, Engine, Error, Listing,
    NewConversation, Page, Result, TurnRef,
};

impl Engine {
    /// Makes a conversation with its branch `main`.
    pub fn create_conversation(
        &self,
        call: &Call,
        request: NewConversation,
    ) -> Result<ConversationView> {
        check_root_parts(&request.config, &request.metadata)?;
        let payload = |request: &NewConversation| {
            object([
                ("conversation_id", request.id.as_ref().map(text).into()),
                ("system_prompt", request.system_prompt.clone().into()),
                ("config", request.config.clone()),
                ("title", request.title.clone().into()),
                ("metadata", request.metadata.clone()),
            ])
        };
        let (made, _) = self.mutate(call, "create", request, payload, |mutation, request| {
            let root = Root {
                system_prompt: request.system_prompt.clone(),
                config: request.config.clone(),
            };
            let title = request.title.clone().filter(|title| !title.trim().is_empty());
            let metadata = object_or_empty(&request.metadata);
            create(mutation, request.id.clone(), root, title, metadata, None)?;
            Ok(ViewOrId::view(mutation.conversation_view()?))
        })?;
        self.load_conversation(call, made)
    }

    /// Selects or makes the conversation that is this one under another root, and takes a path
    /// over into it.
    ///
    /// The path is appended from the root by longest common prefix, with new ids and the old
    /// times, and `main` moves to its end. Where the conversation holds the whole path already,
    /// nothing is made and `main` stays where it is, be it further down, elsewhere or at the root:
    /// what others said there since is not taken from under them.
    pub fn derive(&self, call: &Call, request: Derive) -> Result<Derived> {
        if let Some(config) = &request.config {
            check_root_parts(config, &Json::Null)?;
        }
        let payload = |request: &Derive| {
            object([
                ("conversation_id", text(&request.conversation)),
                ("id", request.id.as_ref().map(text).into()),
                ("system_prompt", request.system_prompt.clone().into()),
                ("config", request.config.clone().into()),
                ("at", request.at.as_ref().map(|at| Json::from(at.as_str())).into()),
            ])
        };
        let (receipt, _) = self.mutate(call, "derive", request, payload, derive)?;
        Ok(Derived {
            conversation: self.load_conversation(call, receipt.conversation)?,
            created: receipt.created,
            turns: receipt.turns,
        })
    }

    /// Returns one conversation with its overview.
    pub fn conversation(&self, call: &Call, id: &ConversationId) -> Result<ConversationView> {
        self.read(|records| {
            let found = resolve::conversation(records, call, id)?;
            let overview = Some(activity::read_overview(records, &found)?);
            Ok(ConversationView { overview, ..views::conversation(records, &found)? })
        })
    }

    /// Loads the conversation of an answer, if it is given by id, even if its creation was undone
    /// since: a replay repeats the first answer.
    fn load_conversation(
        &self,
        call: &Call,
        conversation: ViewOrId<ConversationView>,
    ) -> Result<ConversationView> {
        match conversation {
            ViewOrId::View(view) => Ok(*view),
            ViewOrId::Id(id) => self.read(|records| {
                let found = records.conversation(&call.project, &id)?;
                let found = tine_store::required(found, || format!("conversation {id}"))?;
                views::conversation(records, &found)
            }),
        }
    }

    /// Conversations of the project in the order in which they were made.
    pub fn conversations(
        &self,
        call: &Call,
        include_archived: bool,
        page: Page,
    ) -> Result<Listing<ConversationView>> {
        let limit = self.page_limit(page.limit)?;
        let start = match &page.cursor {
            Some(cursor) => {
                let number = cursor.parse().map_err(|_| bad_cursor(cursor))?;
                Some(ConversationKey(number))
            }
            None => None,
        };
        self.read(|records| {
            let mut items = Vec::new();
            let mut after = start;
            loop {
                let found = records.conversations(&call.project, after, limit)?;
                let Some(last) = found.last() else {
                    return Ok(Listing { items, next: None });
                };
                after = Some(last.key);
                for conversation in &found {
                    let shown = match conversation.visibility {
                        Visibility::Shown => true,
                        Visibility::Archived => include_archived,
                        Visibility::Undone | Visibility::ProjectLog => false,
                    };
                    if !shown {
                        continue;
                    }
                    items.push(views::conversation(records, conversation)?);
                    if items.len() == limit {
                        let next = Some(conversation.key.0.to_string());
                        return Ok(Listing { items, next });
                    }
                }
            }
        })
    }

    /// Changes title, metadata or visibility.
    pub fn patch_conversation(
        &self,
        call: &Call,
        id: &ConversationId,
        patch: ConversationPatch,
    ) -> Result<ConversationView> {
        if let Some(metadata) = &patch.metadata {
            check_root_parts(&Json::Null, metadata)?;
        }
        let payload = |(id, patch): &(ConversationId, ConversationPatch)| {
            object([
                ("conversation_id", text(id)),
                ("title", patch.title.clone().map(Json::from).into()),
                ("metadata", patch.metadata.clone().into()),
                ("archived", patch.archived.into()),
                ("force", patch.force.into()),
            ])
        };
        let request = (id.clone(), patch);
        let rules = |mutation: &mut Mutation<'_>, request: &(ConversationId, ConversationPatch)| {
            let (id, patch) = request;
            let found = resolve::conversation(mutation.reader(), mutation.call, id)?;
            mutation.open(found)?;
            patch_fields(mutation, patch)?;
            Ok(ViewOrId::view(mutation.conversation_view()?))
        };
        let (patched, _) = self.mutate(call, "conversation", request, payload, rules)?;
        self.load_conversation(call, patched)
    }

    pub(crate) fn page_limit(&self, wanted: Option<usize>) -> Result<usize> {
        let most = self.limits().page_rows;
        match wanted {
            None => Ok(most),
            Some(0) => {
                Err(Error::invalid("a page holds at least one row; `limit` is 0; give 1 or more"))
            }
            Some(given) if given > most => {
                Err(Error::TooLarge { what: "rows in a page", limit: most, given })
            }
            Some(wanted) => Ok(wanted),
        }
    }
}

pub(crate) fn bad_cursor(cursor: &str) -> Error {
    Error::invalid(format!("`{cursor}` is not a cursor; pass the `next` of an earlier page"))
}

pub(crate) fn check_root_parts(config: &Json, metadata: &Json) -> Result<()> {
    for (name, value) in [("config", config), ("metadata", metadata)] {
        if !matches!(value, Json::Null | Json::Object(_)) {
            let found = value.type_name();
            return Err(Error::invalid(format!("`{name}` must be an object, not {found}")));
        }
    }
    Ok(())
}

pub(crate) fn object_or_empty(json: &Json) -> Json {
    match json {
        Json::Object(_) => json.clone(),
        _ => Json::Object(Object::new()),
    }
}

/// Adds a conversation with an empty branch `main` and opens it for the log.
pub(crate) fn create(
    mutation: &mut Mutation<'_>,
    id: Option<ConversationId>,
    root: Root,
    title: Option<String>,
    metadata: Json,
    derived_from: Option<DerivedFrom>,
) -> Result<()> {
    let id = match id {
        Some(id) => id,
        None => ConversationId::from_stored(mutation.new_turn_id().to_string()),
    };
    if id.as_str().starts_with('~') {
        return Err(Error::invalid(format!(
            "`{id}`: ids that begin with ~ are reserved for Tine; choose another id"
        )));
    }
    mutation.ensure_project()?;
    let project = &mutation.call.project;
    if let Some(taken) = mutation.reader().conversation(project, &id)? {
        let advice = match taken.visibility {
            Visibility::Undone => "; its making was undone: redo that, or choose another id",
            _ => "; choose another id, or append to that one",
        };
        return Err(Error::Exists { what: "conversation", name: id.to_string(), advice });
    }
    let mut conversation = Conversation {
        key: ConversationKey(0),
        project: project.clone(),
        id,
        root_hash: hash::root_hash(root.system_prompt.as_deref(), &root.config),
        root: Some(root),
        title,
        metadata,
        created_at: mutation.now,
        derived_from,
        visibility: Visibility::Shown,
    };
    conversation.key = mutation.records.insert_conversation(&conversation)?;
    mutation.fact("root_hash", text(&conversation.root_hash));
    mutation.open(conversation)?;
    let branch = Branch {
        conversation: mutation.key(),
        id: mutation.new_branch_id(),
        name: Name::main(),
        tip: None,
        forked_from: None,
        created_at: mutation.now,
        version: 1,
    };
    mutation.put_branch(None, &branch)?;
    // Undoing the making of a conversation makes it as if it were not there.
    mutation.changed(LoggedChange::Conversation {
        field: ConversationField::Visibility,
        before: visibility_json(Visibility::Undone),
        after: visibility_json(Visibility::Shown),
    });
    Ok(())
}

pub(crate) fn visibility_json(visibility: Visibility) -> Json {
    match visibility {
        Visibility::Shown => "shown".into(),
        Visibility::Archived => "archived".into(),
        Visibility::Undone => "undone".into(),
        Visibility::ProjectLog => "project_log".into(),
    }
}

pub(crate) fn visibility_from(json: &Json) -> Option<Visibility> {
    match json.as_str()? {
        "shown" => Some(Visibility::Shown),
        "archived" => Some(Visibility::Archived),
        "undone" => Some(Visibility::Undone),
        "project_log" => Some(Visibility::ProjectLog),
        _ => None,
    }
}

#[derive(Serialize, Deserialize)]
struct DeriveReceipt {
    #[serde(rename = "conversation_id")]
    conversation: ViewOrId<ConversationView>,
    created: bool,
    turns: usize,
}

impl Receipt for DeriveReceipt {}

fn derive(mutation: &mut Mutation<'_>, request: &Derive) -> Result<DeriveReceipt> {
    let call = mutation.call;
    let original = resolve::conversation(mutation.reader(), call, &request.conversation)?;
    refuse_purged(&original)?;
    let old = original.root.clone().unwrap_or(Root { system_prompt: None, config: Json::Null });
    let root = Root {
        system_prompt: request.system_prompt.clone(),
        config: request.config.clone().unwrap_or(old.config),
    };
    let root_hash = hash::root_hash(root.system_prompt.as_deref(), &root.config);
    let (source, at) = match &request.at {
        None => (None, None),
        Some(at) => {
            let wanted = TurnRef::within(original.id.clone(), at.clone());
            let place = resolve::place(mutation.reader(), call, &wanted)?;
            let turns = path::shown(mutation.reader(), &place)?;
            (turns.last().map(|turn| turn.id), Some(turns))
        }
    };

    let shown = |found: &Conversation| {
        found.root_hash == root_hash && found.visibility.is_there() && found.root.is_some()
    };
    let existing = if shown(&original) {
        Some(original.clone())
    } else {
        let derived = mutation.reader().derivatives(&call.project, &original.id)?;
        derived.into_iter().find(shown)
    };
    let created = existing.is_none();
    match existing {
        Some(existing) => mutation.open(existing)?,
        None => {
            let origin = DerivedFrom { conversation: original.id.clone(), turn: source };
            let metadata = Json::Object(Object::new());
            let title = original.title.clone();
            create(mutation, request.id.clone(), root, title, metadata, Some(origin))?;
        }
    }
    let turns = take_over(mutation, at.unwrap_or_default())?;
    let conversation = ViewOrId::view(mutation.conversation_view()?);
    Ok(DeriveReceipt { conversation, created, turns })
}

/// Re-appends a path with new ids and the old times, so that the hashes come out the same.
fn take_over(mutation: &mut Mutation<'_>, turns: Vec<tine_store::Turn>) -> Result<usize> {
    let mut messages = Vec::with_capacity(turns.len());
    for turn in &turns {
        let Content::Kept(body) = &turn.content else {
            return Err(Error::Unsupported(format!(
                "the path holds the purged turn {}; derive at a turn before it",
                turn.id
            )));
        };
        messages.push(Message {
            role: turn.role,
            body: body.clone(),
            tool_call_id: turn.tool_call_id.clone(),
            created_at: Some(turn.created_at),
            status: turn.status,
            metadata: turn.metadata.clone(),
        });
    }
    let mut end: Option<TurnLoc> = None;
    let mut common = 0;
    while let Some(message) = messages.get(common) {
        match equal_child(&mutation.tree(), end, message)? {
            Some(found) => end = Some(found.loc),
            None => break,
        }
        common += 1;
    }
    let origin = |index: usize| TurnOrigin {
        derived_from: Some(turns[common + index].id),
        ..TurnOrigin::default()
    };
    let made = make_chain(mutation, end, &messages[common..], origin)?.turns;
    let Some(last) = made.last() else {
        return Ok(0);
    };
    let branch = mutation.reader().branch(mutation.key(), &Name::main())?;
    if let Some(branch) = branch {
        mutation.move_branch(&branch, Some(last.loc))?;
    }
    Ok(made.len())
}

pub(crate) fn patch_fields(mutation: &mut Mutation<'_>, patch: &ConversationPatch) -> Result<()> {
    let mut next = mutation.conversation().clone();
    if let Some(title) = &patch.title {
        let title = title.clone().filter(|title| !title.trim().is_empty());
        match &next.title {
            Some(set) if title.as_ref() != Some(set) && !patch.force => {
                return Err(Error::TitleSet { title: set.clone() });
            }
            _ => {}
        }
        note(mutation, ConversationField::Title, &next.title, &title);
        next.title = title;
    }
    if let Some(metadata) = &patch.metadata {
        let metadata = object_or_empty(metadata);
        note(mutation, ConversationField::Metadata, &next.metadata, &metadata);
        next.metadata = metadata;
    }
    if let Some(archived) = patch.archived {
        let visibility = if archived { Visibility::Archived } else { Visibility::Shown };
        let (before, after) = (visibility_json(next.visibility), visibility_json(visibility));
        note(mutation, ConversationField::Visibility, &before, &after);
        next.visibility = visibility;
    }
    if next != *mutation.conversation() {
        mutation.records.update_conversation(&next)?;
        mutation.conversation = Some(next);
    }
    Ok(())
}

fn note<T: Clone + PartialEq + Into<Json>>(
    mutation: &mut Mutation<'_>,
    field: ConversationField,
    before: &T,
    after: &T,
) {
    if before != after {
        let (before, after) = (before.clone().into(), after.clone().into());
        mutation.changed(LoggedChange::Conversation { field, before, after });
    }
}
