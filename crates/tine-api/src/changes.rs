//! Changing the tree: appending, forking, editing, splitting, deleting; branches and bookmarks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde::{Deserializer, Serializer};
use tine_core::json::{self, Json};
use tine_core::request::{limits_or_stored, refuse};
use tine_core::{
    Body, BranchId, ConversationId, Message, Name, Reference, Timestamp, TurnHash, TurnId,
};

use crate::bodies::{
    ContentForm, FreeForm, MessageForm, Speaker, content_json, message, message_json, messages,
    object_of, or_true, present, request_form, size, written_as, yes,
};
use crate::{Error, TurnRef, TurnView, unset_conversation, unset_turn};

/// What to do when a branch does not end where the caller expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// Refuse with `conflict` and the actual tip.
    #[default]
    Refuse,
    /// Append at the expected tip on a new branch `{branch}-1`, `{branch}-2` …
    Fork,
}

/// Messages to be appended.
#[derive(Clone, Debug)]
pub struct Append {
    /// The conversation.
    pub conversation: ConversationId,
    /// In order; at least one.
    pub messages: Vec<Message>,
    /// The turn to append to, or `root`; the tip of the branch by default.
    pub parent: Option<Reference>,
    /// The branch that follows, by name or id; `main` by default.
    pub branch: Option<String>,
    /// The expected tip of the branch; a different tip is a conflict.
    pub expected_tip: Option<Reference>,
    /// How to resolve a conflict.
    pub on_conflict: OnConflict,
    /// Whether equal turns are reused instead of made again.
    pub reuse: bool,
}

impl Append {
    /// Appends to the tip of `main`.
    pub fn to(conversation: ConversationId, messages: Vec<Message>) -> Self {
        Append {
            conversation,
            messages,
            parent: None,
            branch: None,
            expected_tip: None,
            on_conflict: OnConflict::Refuse,
            reuse: true,
        }
    }

    /// Starts at the root, for clients that send the whole list each time.
    pub fn from_root(self) -> Self {
        Append { parent: Reference::parse("root").ok(), ..self }
    }

    /// Starts at a turn, for a branch.
    pub fn under(self, parent: Reference, branch: &str) -> Self {
        Append { parent: Some(parent), branch: Some(branch.to_owned()), ..self }
    }
}

request_form! { Append => AppendJson; }
written_as! { Append => AppendJson; }

/// Messages to be appended: a list, or the fields of a single message.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Append")]
struct AppendJson {
    /// The messages, in order; at least one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<MessageForm>>")]
    messages: Option<Vec<FreeForm>>,
    /// The role of a single message. Excludes `messages`, like the other fields of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Speaker>,
    /// The content of a single message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ContentForm>")]
    content: Option<FreeForm>,
    /// Tool calls in OpenAI's form; converted to blocks of type `tool-use`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<serde_json::Value>>")]
    tool_calls: Option<FreeForm>,
    /// The id of the tool call that the message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    /// When the message was sent; the current time by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    /// `complete`, or `partial` for a stream that was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Additional metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    metadata: Option<FreeForm>,
    /// The turn to append to, or `root`; the tip of the branch by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Reference>,
    /// The branch to move, by name or id; `main` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// The expected tip of the branch; a different tip is a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_tip: Option<Reference>,
    /// How to resolve a conflict; `refuse` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_conflict: Option<OnConflict>,
    /// Whether to reuse existing turns with equal content; `true` by default. `false` always
    /// creates new siblings.
    #[serde(skip_serializing_if = "Option::is_none")]
    reuse: Option<bool>,
}

impl TryFrom<AppendJson> for Append {
    type Error = Error;

    fn try_from(form: AppendJson) -> crate::Result<Self> {
        let limits = limits_or_stored();
        let single = form.role.is_some() || form.content.is_some() || form.tool_calls.is_some();
        let messages = match (form.messages, single) {
            (Some(_), true) => {
                let why = "give either `messages` or one message by `role` and `content`, not both";
                return Err(Error::invalid(why));
            }
            (Some(given), false) => messages(given.into_iter().map(|it| it.0).collect(), &limits)?,
            (None, _) => {
                let fields = object_of([
                    ("role", form.role.map(|role| Json::from(role.as_str()))),
                    ("content", form.content.map(|it| it.0)),
                    ("tool_calls", form.tool_calls.map(|it| it.0)),
                    ("tool_call_id", form.tool_call_id.map(Json::from)),
                    ("created_at", form.created_at.map(Json::from)),
                    ("status", form.status.map(Json::from)),
                    ("metadata", form.metadata.map(|it| it.0)),
                ]);
                vec![message(fields, 0, &limits)?]
            }
        };
        Ok(Append {
            conversation: unset_conversation(),
            messages,
            parent: form.parent,
            branch: form.branch,
            expected_tip: form.expected_tip,
            on_conflict: form.on_conflict.unwrap_or_default(),
            reuse: form.reuse.unwrap_or(true),
        })
    }
}

impl From<&Append> for AppendJson {
    fn from(request: &Append) -> Self {
        let messages = request.messages.iter().map(|one| FreeForm(message_json(one)));
        AppendJson {
            messages: Some(messages.collect()),
            parent: request.parent.clone(),
            branch: request.branch.clone(),
            expected_tip: request.expected_tip.clone(),
            on_conflict: Some(request.on_conflict),
            reuse: Some(request.reuse),
            ..AppendJson::default()
        }
    }
}

/// What an append did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Appended {
    /// One for each message, in order, each with its outcome.
    pub turns: Vec<TurnView>,
    /// The branch that followed, as it is now.
    pub branch: BranchView,
    /// The turn that the branch ends on; `null` is the root.
    pub tip: Option<TurnId>,
    /// Whether a lost race was resolved by forking.
    pub forked: bool,
    /// Whether this is the answer of an earlier call with the same key.
    pub replayed: bool,
    /// Whether that earlier work has been undone since.
    pub undone: bool,
    /// How many secrets of each kind were redacted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Branch")]
pub struct BranchView {
    /// The conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The id of the branch; it does not change when the branch is renamed.
    #[serde(rename = "branch_id")]
    pub id: BranchId,
    /// The name of the branch.
    pub name: Name,
    /// The turn it ends on; `null` is the root.
    pub tip: Option<TurnId>,
    /// The hash of that turn.
    pub tip_hash: Option<TurnHash>,
    /// The turn it was forked from.
    pub forked_from: Option<TurnId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Counts its changes.
    pub version: u64,
}

/// Where a fork is cut.
#[derive(Clone, Debug)]
pub enum ForkPoint {
    /// After this turn; `root` for an empty branch.
    At(Reference),
    /// Before this turn.
    Before(Reference),
}

/// A branch to be created.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The conversation in which names are looked up; ids and hashes do without.
    pub conversation: Option<ConversationId>,
    /// Where.
    pub point: ForkPoint,
    /// A name. By default `fork-1`, `fork-2` …: the smallest free number while fewer than sixteen
    /// are taken, after that a number that follows a taken one, so gaps may stay.
    pub name: Option<Name>,
}

/// A branch to be moved back or forward on its line.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveBranch {
    /// The conversation.
    #[serde(skip, default = "unset_conversation")]
    pub conversation: ConversationId,
    /// The branch, by name or id.
    #[serde(skip)]
    pub branch: String,
    /// The new tip: a turn, or `root`. By default, a restore undoes the last revert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Reference>,
    /// The expected tip of the branch; a different tip is a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_tip: Option<Reference>,
}

/// Another version of a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EditTurn")]
pub struct Edit {
    /// The turn; it stays as it is.
    #[serde(skip, default = "unset_turn")]
    pub turn: TurnRef,
    /// The content of the new version: a text, or blocks.
    #[serde(
        rename = "content",
        serialize_with = "write_content",
        deserialize_with = "read_content"
    )]
    #[schemars(with = "ContentForm")]
    pub body: Body,
    /// The branch to move to the new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Whether to reuse an existing sibling with equal content; `true` by default.
    #[serde(default = "yes", deserialize_with = "or_true")]
    #[schemars(with = "Option<bool>", default = "Option::<bool>::default")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub reuse: bool,
}

fn write_content<S: Serializer>(body: &Body, out: S) -> Result<S::Ok, S::Error> {
    json::exact::serialize(&content_json(body), out)
}

/// Reads content. The engine checks it against the role of the turn.
fn read_content<'de, D: Deserializer<'de>>(input: D) -> Result<Body, D::Error> {
    let body = Body::of_any_role(json::exact::deserialize(input)?, &limits_or_stored());
    body.map_err(|error| refuse(Error::message(0, &error)))
}

/// Another answer of a model, beside one of its answers.
#[derive(Clone, Debug)]
pub struct Regenerate {
    /// The id of the new turn.
    pub id: TurnId,
    /// The existing answer; it stays as it is.
    pub turn: TurnRef,
    /// The new answer, of role `assistant`.
    pub message: Message,
    /// The branch that moves to it.
    pub branch: Option<String>,
}

/// What an edit did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edited {
    /// The new version, or the equal sibling that existed, with its outcome.
    pub turn: TurnView,
    /// The branch that moved, if one was given.
    pub branch: Option<BranchView>,
    /// How many secrets of each kind were redacted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redacted: BTreeMap<String, u64>,
}

/// A turn to be shown as two.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitTurn {
    /// The turn.
    #[serde(skip, default = "unset_turn")]
    pub turn: TurnRef,
    /// The length of the first half, in Unicode scalar values.
    #[serde(deserialize_with = "offset")]
    #[schemars(with = "u64")]
    pub offset: usize,
}

fn offset<'de, D: Deserializer<'de>>(input: D) -> Result<usize, D::Error> {
    size("the offset", u64::deserialize(input)?).map_err(refuse)
}

/// What a split did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SplitDone {
    /// The turn that is now shown as two.
    #[serde(rename = "split")]
    pub whole: TurnId,
    /// The first half.
    pub left: TurnView,
    /// The second half.
    pub right: TurnView,
}

/// What is deleted along with a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteMode {
    /// Everything below it.
    Cascade,
    /// Nothing; its children are shown under its parent.
    Reparent,
}

/// A turn to be deleted.
#[derive(Clone, Debug)]
pub struct Delete {
    /// The turn.
    pub turn: TurnRef,
    /// What is deleted along with it.
    pub mode: DeleteMode,
    /// Deletes it although other records refer to it.
    pub force: bool,
    /// Only reports what would be deleted.
    pub dry_run: bool,
}

/// What a deletion did, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deleted {
    /// The turn that was named.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
    /// Turns that are no longer shown, including that one.
    pub turns: usize,
    /// Branches whose tips moved to the nearest live ancestor.
    pub moved_branches: Vec<BranchView>,
    /// Bookmarks that moved there.
    pub moved_bookmarks: Vec<Name>,
    /// Bookmarks that were removed because that ancestor is the root.
    pub removed_bookmarks: Vec<Name>,
    /// Whether it was only a preview.
    pub dry_run: bool,
}

/// A change of a turn's metadata. Absent fields keep their values.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetadataPatch {
    /// The title; `null` clears it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub title: Option<Option<String>>,
    /// The automatic title; `null` clears it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub auto_title: Option<Option<String>>,
    /// Tags to add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_tags: Vec<String>,
    /// Tags to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_tags: Vec<String>,
    /// Replaces all tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Replaces the custom data; `null` clears it.
    #[serde(default, with = "json::exact::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub custom_data: Option<Json>,
    /// Replaces the source information; `null` clears it.
    #[serde(default, with = "json::exact::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub source_info: Option<Json>,
    /// Whether to replace a title that is already set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// A bookmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Bookmark")]
pub struct BookmarkView {
    /// The name of the bookmark.
    pub name: Name,
    /// The turn's conversation.
    #[serde(rename = "conversation_id")]
    pub conversation: ConversationId,
    /// The turn.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
    /// The turn's hash.
    pub turn_hash: TurnHash,
    /// When it was set.
    pub created_at: Timestamp,
}
