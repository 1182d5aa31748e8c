//! Additions for the page: every kind of content, facts with their evidence, and commits to compare,
//! plot and trace.

use tine_core::json::{Json, object};
use tine_core::message::text_block;
use tine_core::{Body, ConversationId, Limits, Message, Metadata, Reference, Role, TurnId};
use tine_engine::{
    Append, Call, Engine, Error, Interpret, NewCommit, PathQuery, Result, Selection, StoreTurn,
    WindowRef,
};

use super::CONVERSATION;
use super::story::StoryClock;

const BRANCH: &str = "notes";

/// A picture of a mountain, in base64.
const PICTURE: &str = include_str!("picture.base64");

const BUDGET: &str = "\
| what | each | together |
| --- | ---: | ---: |
| JL46, both ways | €1,180 | €2,360 |
| Gracery, seven nights | | €1,155 |
| Kamakura, return | €12 | €24 |
| **all of it** | | **€3,539** |

Anna's 300 euros bring it down to **€3,239**.";

const SCRIPT: &str = "\
Save the receipts as `amount;what`, one on a line:

```python
import sys

total = 0.0
for line in sys.stdin:
    amount, what = line.rstrip(\"\\n\").split(\";\", 1)
    total += float(amount)
    print(f\"{total:9.2f}  {what}\")
```

Then `python3 spent.py < receipts.txt` shows the sum after each.";

/// Continues the story.
pub(crate) fn tell(
    engine: &Engine,
    call: &Call,
    clock: &StoryClock,
    id: &ConversationId,
) -> Result<()> {
    let teller = Teller { engine, call, clock, id };
    teller.commits_of_the_story()?;
    teller.notes()?;
    teller.commit("notes", "Who comes along, and what it costs")
}

struct Teller<'a> {
    engine: &'a Engine,
    call: &'a Call,
    clock: &'a StoryClock,
    id: &'a ConversationId,
}

impl Teller<'_> {
    fn commits_of_the_story(&self) -> Result<()> {
        let line = self.line("main")?;
        for (first, last, message) in [
            (0, 3, "When to go"),
            (4, 12, "Flights and a hotel"),
            (13, line.len() - 1, "Day by day, and booked"),
        ] {
            self.clock.pass(30);
            let window = WindowRef { start: line[first].into(), end: line[last].into() };
            let commit = NewCommit::of(self.id.clone(), message).on("main");
            self.engine.commit(self.call, NewCommit { window: Some(window), ..commit })?;
        }
        self.commit("autumn", "Autumn instead")
    }

    fn commit(&self, branch: &str, message: &str) -> Result<()> {
        self.clock.pass(30);
        self.engine.commit(self.call, NewCommit::of(self.id.clone(), message).on(branch))?;
        Ok(())
    }

    /// Returns the turns of a branch, first to last.
    fn line(&self, branch: &str) -> Result<Vec<TurnId>> {
        let query = PathQuery {
            selection: Selection::Whole,
            ..PathQuery::of(self.id.clone()).to(Reference::parse(branch)?)
        };
        Ok(self.engine.path(self.call, query)?.turns.iter().map(|turn| turn.id).collect())
    }

    fn notes(&self) -> Result<()> {
        self.clock.pass(90);
        let said = "Anna Berg will meet us at Narita on 23 March 2024. She prefers a window seat. \
                    I need to send her 300 euros by Friday.";
        let message = Message { created_at: Some(self.now()), ..Message::text(Role::User, said) };
        let store = StoreTurn {
            branch: Some(BRANCH.to_owned()),
            parent: Some(Reference::parse("main")?),
            interpret: Interpret::Wait,
            ..StoreTurn::new(CONVERSATION, "note-1", message)
        };
        self.engine.store_turn(self.call, store)?;
        self.clock.pass(5);
        let thought = "Two people, seven nights. Flights 2 × 1,180, hotel 7 × 165, trains 2 × 12; \
                       Anna's share comes off at the end.";
        self.say(vec![
            blocks(Role::Assistant, vec![block("thinking", thought), text_block(BUDGET)])?,
            user("Write me something that adds up what we spend there."),
            answer(SCRIPT),
            blocks(Role::User, vec![picture(), text_block("Is this the view from Kamakura?")])?,
            answer(
                "Mount Fuji across the bay, on a clear evening: from the beach at Inamuragasaki.",
            ),
        ])
    }

    fn say(&self, messages: Vec<Message>) -> Result<()> {
        for mut message in messages {
            message.created_at = Some(self.now());
            let append = Append::to(self.id.clone(), vec![message]);
            self.engine.append(self.call, Append { branch: Some(BRANCH.to_owned()), ..append })?;
            self.clock.pass(40);
        }
        Ok(())
    }

    fn now(&self) -> tine_core::Timestamp {
        tine_engine::Clock::now(self.clock)
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

/// Returns an assistant message with its model and its cost.
fn answer(text: &str) -> Message {
    told(Message::text(Role::Assistant, text))
}

fn told(message: Message) -> Message {
    let usage = object([("input_tokens", 1_840.into()), ("output_tokens", 126.into())]);
    let source_info = Some(object([("model", "example-1".into()), ("usage", usage)]));
    Message { metadata: Metadata { source_info, ..Metadata::default() }, ..message }
}

fn blocks(role: Role, blocks: Vec<Json>) -> Result<Message> {
    let body = Body::from_content(Json::Array(blocks), role, &Limits::default())
        .map_err(|source| Error::Message { index: 0, source })?;
    let message = Message { body, ..Message::text(role, "") };
    Ok(if role == Role::Assistant { told(message) } else { message })
}

fn block(kind: &str, text: &str) -> Json {
    object([("type", kind.into()), ("text", text.into())])
}

fn picture() -> Json {
    let source = object([
        ("type", "base64".into()),
        ("media_type", "image/png".into()),
        ("data", PICTURE.into()),
    ]);
    object([("type", "image".into()), ("source", source)])
}
