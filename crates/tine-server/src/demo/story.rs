//! The example: two people plan a trip to Tokyo with an agent, and change their minds.
//!
//! It is created by the operations of the engine with a clock of its own, so that its turns have the
//! same hashes on every machine. The first two turns are those of the documentation.

use std::sync::atomic::{AtomicI64, Ordering};

use tine_core::json::{self, object};
use tine_core::message::text_block;
use tine_core::{
    Body, ConversationId, Json, Limits, Message, Reference, Role, Status, Timestamp, TurnId,
};
use tine_engine::{
    Append, Call, Clock, Delete, DeleteMode, Edit, Engine, Error, Fork, ForkPoint, MetadataPatch,
    MoveBranch, NewConversation, Result, SplitTurn, TurnRef,
};

/// 2024-01-15T10:30:00Z.
const BEGINNING_MS: i64 = 1_705_314_600_000;

/// A clock that only the story advances.
#[derive(Debug)]
pub struct StoryClock(AtomicI64);

impl Default for StoryClock {
    fn default() -> Self {
        StoryClock(AtomicI64::new(BEGINNING_MS))
    }
}

impl StoryClock {
    pub(crate) fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }
}

impl Clock for StoryClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

struct Teller<'a> {
    engine: &'a Engine,
    call: Call,
    clock: &'a StoryClock,
    id: &'a ConversationId,
}

/// Creates the conversation and everything in it.
pub fn tell(engine: &Engine, call: &Call, clock: &StoryClock, id: &ConversationId) -> Result<()> {
    let call = Call { actor: "demo".to_owned(), ..call.clone() };
    let teller = Teller { engine, call, clock, id };
    teller.begin()?;
    teller.flights_and_hotel()?;
    teller.autumn()?;
    teller.berlin()?;
    teller.days()?;
    teller.second_thoughts()
}

impl Teller<'_> {
    fn begin(&self) -> Result<()> {
        let request = NewConversation {
            id: Some(self.id.clone()),
            system_prompt: Some("You are a travel agent. Be brief; name prices.".to_owned()),
            config: object([("model", "example-1".into()), ("temperature", 0.into())]),
            title: Some("A week in Tokyo".to_owned()),
            metadata: Json::Null,
        };
        self.engine.create_conversation(&self.call, request)?;
        self.main(vec![user("What's the best time to visit Tokyo?"), answer("Late March 🌸")])?;
        self.main(vec![
            user("How long do the blossoms last?"),
            answer("About a week from full bloom. This year that should be around 24 March."),
        ])?;
        Ok(())
    }

    fn flights_and_hotel(&self) -> Result<()> {
        let trip = [("from", "CDG"), ("to", "HND"), ("out", "2024-03-23"), ("back", "2024-03-30")];
        let found = self.main(vec![
            user("Then find us a week there: two people, from Paris."),
            calls("I'll look for flights first.", &[("call-1", "search_flights", &trip)])?,
            Message::tool(
                "call-1",
                r#"[{"flight":"JL46","eur":1180},{"flight":"AF274","eur":1240}]"#,
            ),
            answer("JL46, direct, 23 to 30 March: €1,180 each."),
        ])?;
        self.bookmark("flights", found[3])?;
        self.tag(found[3], "budget")?;
        let shinjuku = [("area", "Shinjuku"), ("nights", "7"), ("guests", "2")];
        let asakusa = [("area", "Asakusa"), ("nights", "7"), ("guests", "2")];
        let hotels = self.main(vec![
            user("Good. And a hotel near a station?"),
            calls(
                "Two areas are worth comparing.",
                &[("call-2", "search_hotels", &shinjuku), ("call-3", "search_hotels", &asakusa)],
            )?,
            Message::tool("call-2", r#"[{"hotel":"Gracery","eur":165}]"#),
            Message::tool("call-3", r#"[{"hotel":"Kanoya Ryokan","eur":140}]"#),
            answer("Gracery in Shinjuku, €165 a night, four minutes from the station."),
        ])?;
        self.bookmark("hotel", hotels[4])?;
        // Another answer to the same question: a sibling, on a branch of its own.
        let again = answer("Kanoya Ryokan in Asakusa, €140 a night with breakfast. Tatami rooms.");
        self.branch_off(hotels[3], "ryokan", vec![again])?;
        self.on(
            "ryokan",
            vec![user("Is there a bath?"), answer("A shared onsen, open until eleven.")],
        )?;
        Ok(())
    }

    fn autumn(&self) -> Result<()> {
        let from = self.turn_at("main~11")?;
        let question = user("And in autumn?");
        self.branch_off(
            from,
            "autumn",
            vec![question, answer("Early November, for the maples 🍁")],
        )?;
        let mut cut_off = answer("Hotels cost about a third less than in spring, and the");
        cut_off.status = Status::Partial;
        let broken = self.on("autumn", vec![user("Is it cheaper?"), cut_off])?;
        let whole = "About a third less than in spring; flights from €890.";
        self.edit(broken[1], whole, "autumn")?;
        self.on(
            "autumn",
            vec![
                user("How do we say \"two people\" in a restaurant?"),
                answer("「二人です」 (futari desu)。席に着いたら「おすすめは何ですか」と聞いてみてください。"),
            ],
        )?;
        Ok(())
    }

    fn berlin(&self) -> Result<()> {
        let question = self.turn_at("main~8")?;
        self.clock.pass(40);
        let point = ForkPoint::Before(Reference::from(question));
        self.engine.fork(&self.call, self.fork(point, "berlin")?)?;
        self.edit(question, "Then find me five days there: one person, from Berlin.", "berlin")?;
        self.on("berlin", vec![answer("Via Helsinki, 23 to 28 March: €960.")])?;
        Ok(())
    }

    fn days(&self) -> Result<()> {
        let plan = self.main(vec![
            user("We take it. Plan our days?"),
            answer(
                "Days 1–3: Shinjuku and the Gyoen, Yanaka on foot, Ueno with the museums. \
                 Days 4–7: Nikko, a free day, Shimokitazawa, and the fish market before the flight.",
            ),
        ])?;
        self.title(plan[0], "Day by day")?;
        self.clock.pass(30);
        let first_half =
            "Days 1–3: Shinjuku and the Gyoen, Yanaka on foot, Ueno with the museums. ";
        let split = SplitTurn { turn: self.named(plan[1]), offset: first_half.chars().count() };
        self.engine.split(&self.call, split)?;
        let trip = self.main(vec![
            user("Swap Nikko for something closer."),
            answer("Hakone: 85 minutes from Shinjuku, €38 return."),
        ])?;
        self.edit(trip[1], "Kamakura: one hour, €12 return, and the sea.", "main")?;
        Ok(())
    }

    fn second_thoughts(&self) -> Result<()> {
        let here = self.turn_at("main")?;
        self.main(vec![
            user("Could we do it all for €3,000?"),
            answer("Not with JL46. With a stop in Helsinki and the ryokan: €2,910."),
            user("What do we lose?"),
            answer("Nine hours of your life, and the view of Shinjuku."),
        ])?;
        self.clock.pass(60);
        let back = MoveBranch {
            conversation: self.id.clone(),
            branch: "main".to_owned(),
            to: Some(Reference::from(here)),
            expected_tip: None,
        };
        self.engine.revert(&self.call, back)?;
        let agreed = self.main(vec![
            user("Kamakura it is. Book it all."),
            answer("Booked: two seats on JL46, seven nights at the Gracery. €3,515 together."),
        ])?;
        self.tag(agreed[1], "booked")?;
        let aside = vec![user("Unrelated: what is a tine?"), answer("One prong of a fork.")];
        let aside = self.branch_off(agreed[1], "aside", aside)?;
        self.clock.pass(15);
        let delete = Delete {
            turn: self.named(aside[0]),
            mode: DeleteMode::Cascade,
            force: false,
            dry_run: false,
        };
        self.engine.delete(&self.call, delete)?;
        self.engine.delete_branch(&self.call, self.id, "aside")?;
        Ok(())
    }

    fn main(&self, messages: Vec<Message>) -> Result<Vec<TurnId>> {
        self.on("main", messages)
    }

    fn on(&self, branch: &str, messages: Vec<Message>) -> Result<Vec<TurnId>> {
        let append = Append::to(self.id.clone(), Vec::new());
        self.say(Append { branch: Some(branch.to_owned()), ..append }, messages)
    }

    fn branch_off(&self, at: TurnId, name: &str, messages: Vec<Message>) -> Result<Vec<TurnId>> {
        let append = Append::to(self.id.clone(), Vec::new());
        self.say(append.under(Reference::from(at), name), messages)
    }

    /// Appends messages, each at a later time.
    fn say(&self, append: Append, mut messages: Vec<Message>) -> Result<Vec<TurnId>> {
        for message in &mut messages {
            message.created_at = Some(self.clock.now());
            self.clock.pass(if message.role == Role::Assistant { 55 } else { 5 });
        }
        let done = self.engine.append(&self.call, Append { messages, ..append })?;
        Ok(done.turns.into_iter().map(|turn| turn.id).collect())
    }

    fn edit(&self, turn: TurnId, text: &str, branch: &str) -> Result<()> {
        self.clock.pass(20);
        let edit = Edit {
            turn: self.named(turn),
            body: Body::Text(text.to_owned()),
            branch: Some(branch.to_owned()),
            reuse: true,
        };
        self.engine.edit(&self.call, edit)?;
        self.clock.pass(20);
        Ok(())
    }

    fn fork(&self, point: ForkPoint, name: &str) -> Result<Fork> {
        let name = tine_core::Name::new(name, &Limits::default())?;
        Ok(Fork { conversation: Some(self.id.clone()), point, name: Some(name) })
    }

    fn bookmark(&self, name: &str, turn: TurnId) -> Result<()> {
        let name = tine_core::Name::new(name, &Limits::default())?;
        self.engine.set_bookmark(&self.call, name, self.named(turn))?;
        Ok(())
    }

    fn tag(&self, turn: TurnId, tag: &str) -> Result<()> {
        let patch = MetadataPatch { add_tags: vec![tag.to_owned()], ..MetadataPatch::default() };
        self.engine.patch_metadata(&self.call, self.named(turn), patch)?;
        Ok(())
    }

    fn title(&self, turn: TurnId, title: &str) -> Result<()> {
        let patch =
            MetadataPatch { title: Some(Some(title.to_owned())), ..MetadataPatch::default() };
        self.engine.patch_metadata(&self.call, self.named(turn), patch)?;
        Ok(())
    }

    fn turn_at(&self, reference: &str) -> Result<TurnId> {
        let turn = TurnRef::within(self.id.clone(), Reference::parse(reference)?);
        Ok(self.engine.turn(&self.call, turn)?.id)
    }

    fn named(&self, turn: TurnId) -> TurnRef {
        TurnRef::within(self.id.clone(), turn)
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn answer(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// A tool call: its id, the tool and its arguments.
type ToolCall<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// Returns an assistant message with a text and tool calls.
fn calls(text: &str, calls: &[ToolCall<'_>]) -> Result<Message> {
    let mut blocks = vec![text_block(text)];
    for (id, name, parameters) in calls {
        let parameters: json::Object =
            parameters.iter().map(|(key, value)| ((*key).to_owned(), Json::from(*value))).collect();
        blocks.push(object([
            ("type", "tool-use".into()),
            ("id", (*id).into()),
            ("name", (*name).into()),
            ("parameters", parameters.into()),
        ]));
    }
    let body = Body::from_content(Json::Array(blocks), Role::Assistant, &Limits::default())
        .map_err(|source| Error::Message { index: 0, source })?;
    Ok(Message { body, ..Message::text(Role::Assistant, "") })
}
