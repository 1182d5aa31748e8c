//! Diff, blame, bisect, drift and inject.

use tine_core::commit::FieldState;
use tine_core::{ConversationId, ErrorKind, Json, TurnId};
use tine_engine::{
    BisectQuery, BlameOf, BlameQuery, Diff, DiffQuery, Edit, Inject, Predicate, TurnChange,
    TurnRef, WordChange,
};

use crate::world::{World, bot, for_each_store, reference, user};

fn diff(world: &World, talk: &ConversationId, from: &str, to: &str) -> Diff {
    let (from, to) = (from.to_owned(), to.to_owned());
    let query = DiffQuery { conversation: Some(talk.clone()), from, to, limit: None };
    world.engine.diff(&world.call, query).expect("a comparison")
}

fn spelled(change: &TurnChange) -> String {
    match change {
        TurnChange::Equal { to, .. } => format!("={}", to.text),
        TurnChange::Lost { from: turn } => format!("-{}", turn.text),
        TurnChange::Gained { to: turn } => format!("+{}", turn.text),
        TurnChange::Changed { words, .. } => words
            .iter()
            .map(|word| match word {
                WordChange::Kept(text) => text.clone(),
                WordChange::Lost(text) => format!("[-{text}-]"),
                WordChange::Gained(text) => format!("{{+{text}+}}"),
            })
            .collect(),
    }
}

fn spell(diff: &Diff) -> Vec<String> {
    diff.changes.iter().map(spelled).collect()
}

fn hash(world: &World, id: TurnId) -> tine_core::TurnHash {
    world.engine.turn(&world.call, TurnRef::of(id)).expect("a turn").hash
}

#[test]
fn branches_are_compared_from_where_they_diverge_down_to_words() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["Plan a trip.", "Where to?", "To Tokyo in March.", "Fine."]);
        let edit = Edit {
            turn: TurnRef::of(said[2]),
            body: tine_core::Body::Text("To Kyoto in March, please.".into()),
            branch: None,
            reuse: true,
        };
        let edited = world.engine.edit(&world.call, edit).expect("an edit").turn.id;
        world.fork_at(&talk, edited, "side");
        world.say_under(&talk, edited, "side", bot("Fine."));
        let compared = diff(world, &talk, "main", "side");
        assert_eq!(compared.common, Some(hash(world, said[1])));
        assert_eq!((compared.from.turns, compared.to.turns), (2, 2));
        assert_eq!(spell(&compared), ["To [-Tokyo-]{+Kyoto+} in March{+, please+}.", "=Fine."]);
        let words = |seen: &[tine_core::commit::FacetTerm]| -> Vec<String> {
            seen.iter().map(|seen| seen.text.clone()).collect()
        };
        assert!(words(&compared.keywords.gained).contains(&"Kyoto".to_owned()));
        assert!(words(&compared.keywords.lost).contains(&"Tokyo".to_owned()));
        let kyoto = compared.keywords.gained.iter().find(|seen| seen.text == "Kyoto");
        let at = kyoto.and_then(|seen| seen.at.clone()).expect("its evidence");
        assert_eq!((at.turn, at.span), (hash(world, edited), (3, 8)));
        // Compared with an ancestor, everything after it is gone.
        assert_eq!(spell(&diff(world, &talk, "main", "main~2")), ["-To Tokyo in March.", "-Fine."]);
        assert_eq!(spell(&diff(world, &talk, "main", "main")), Vec::<String>::new());
    });
}

#[test]
fn ranges_of_turns_are_compared_with_one_another() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["a", "b", "c", "d"]);
        world.say_under(&talk, said[1], "side", user("x"));
        assert_eq!(spell(&diff(world, &talk, "main~3..main~2", "main~1..main")), ["[-b-]{+d+}"]);
        // From where the two part.
        assert_eq!(spell(&diff(world, &talk, "main...side", "main...side")), ["=x"]);
        let query = DiffQuery {
            conversation: Some(talk.clone()),
            from: "main..side".into(),
            to: "main".into(),
            limit: None,
        };
        let error = world.engine.diff(&world.call, query).expect_err("no stretch");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        let unknown = DiffQuery {
            conversation: Some(talk.clone()),
            from: "nowhere".into(),
            to: "main".into(),
            limit: None,
        };
        let error = world.engine.diff(&world.call, unknown).expect_err("nothing of that name");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn commits_are_compared_by_what_they_hold() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["Plan a trip to Tokyo."]);
        let trip = world.trip(said[0], &[("city", "Tokyo".into()), ("budget", 5_000_u64.into())]);
        let first = world.commit(&talk, "main", "first");
        let more = world.say(&talk, &["Rather to Kyoto, whatever it costs."]);
        world.trip(more[0], &[("city", "Kyoto".into()), ("budget", Json::Null)]);
        let second = world.commit(&talk, "main", "second");
        let compared = diff(world, &talk, &first.hash.to_string(), &second.hash.short());
        assert_eq!(compared.bases, vec![first.hash]);
        assert_eq!(compared.from.commits, vec![]);
        assert_eq!(compared.to.commits, vec![second.hash]);
        let facts: Vec<_> =
            compared.facts.iter().map(|it| (it.entity, it.field.as_str())).collect();
        assert_eq!(facts, [(trip, "budget"), (trip, "city")]);
        assert_eq!(compared.facts[0].to, None);
        let Some(FieldState::Value(city)) = &compared.facts[1].to else {
            panic!("a value");
        };
        assert_eq!(city.json, Some("Kyoto".into()));
        // A commit and a turn are compared as turns.
        assert_eq!(spell(&diff(world, &talk, &first.hash.short(), "main")).len(), 1);
    });
}

#[test]
fn blame_finds_the_turn_and_span_also_through_merges() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["Plan a trip to Tokyo.", "Tokyo it is."]);
        let first = world.commit(&talk, "main", "first");
        let other =
            world.say_under(&talk, said[0], "side", bot("The Zenith hotel, café included."));
        let trip = world.trip(other, &[("hotel", "Zenith".into())]);
        let merge = world.merge(&talk, "side", "main").commit.expect("a merge");
        let blame = |of: BlameOf| {
            let at = TurnRef::within(talk.clone(), reference("main"));
            world.engine.blame(&world.call, BlameQuery { at, of })
        };
        let found = blame(BlameOf::Text("Tokyo".into())).expect("a turn").remove(0);
        assert_eq!((found.turn_id, found.span), (Some(said[0]), Some((15, 20))));
        assert_eq!((found.commit, found.merge), (Some(first.hash), None));
        let found_turn = blame(BlameOf::Text("café".into())).expect("a turn").remove(0);
        assert_eq!((found_turn.turn_id, found_turn.span), (Some(other), Some((18, 22))));
        assert_eq!(found_turn.merge, Some(merge.hash));
        let field = BlameOf::Field { entity: trip, field: "hotel".into() };
        let field = blame(field).expect("a turn").remove(0);
        assert_eq!((field.turn_id, field.value), (Some(other), Some("Zenith".into())));
        let unknown = blame(BlameOf::Text("Osaka".into())).expect_err("no turn has this text");
        assert_eq!(unknown.kind(), ErrorKind::NotFound);
        let nothing = BlameOf::Field { entity: trip, field: "pool".into() };
        assert_eq!(blame(nothing).expect_err("no such field").kind(), ErrorKind::Invalid);
    });
}

#[test]
fn bisect_finds_the_first_turn_for_which_something_holds() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let texts: Vec<String> = (0..40).map(|n| format!("turn number {n}.")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let said = world.say(&talk, &texts);
        let trip = world.trip(said[3], &[("city", "Tokyo".into())]);
        world.trip(said[25], &[("city", "Kyoto".into())]);
        let bisect = |predicate: Predicate| {
            let at = TurnRef::within(talk.clone(), reference("main"));
            world.engine.bisect(&world.call, BisectQuery { at, predicate })
        };
        let found = bisect(Predicate::Contains("number 17".into())).expect("a turn");
        assert_eq!(found.turn.id, said[17]);
        let value = Some(Json::from("Kyoto"));
        let fact = |value| Predicate::Fact { entity: trip, field: "city".into(), value };
        let found = bisect(fact(value)).expect("a turn");
        assert_eq!(found.turn.id, said[25]);
        assert!(found.tested <= 8, "{}", found.tested);
        assert_eq!(bisect(fact(None)).expect("a turn").turn.id, said[3]);
        let never = bisect(fact(Some("Nara".into()))).expect_err("it never holds");
        assert_eq!(never.kind(), ErrorKind::Invalid);
    });
}

#[test]
fn drift_is_a_series_from_nothing_in_common_to_the_same() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        world.say(&talk, &["The weather in Tokyo is lovely in spring."]);
        world.commit(&talk, "main", "weather");
        world.say(&talk, &["The weather in Tokyo is lovely in spring."]);
        world.commit(&talk, "main", "weather again");
        world.say(&talk, &["Rust compiles slowly; borrow checker errors everywhere."]);
        world.commit(&talk, "main", "something else");
        let series = world.engine.drift(&world.call, &talk, "main").expect("a series");
        let series_values: Vec<_> =
            series.iter().map(|it| (it.from_parent, it.from_first)).collect();
        assert_eq!(series_values[0], (None, None));
        assert_eq!(series_values[1], (Some(0.0), Some(0.0)));
        let (parent, first) = series_values[2];
        assert!(
            parent.expect("a number") > 0.9 && first.expect("a number") > 0.9,
            "{series_values:?}"
        );
    });
}

#[test]
fn a_turn_is_copied_elsewhere_with_its_origin() {
    for_each_store(|world| {
        let (here, there) = (world.talk("here"), world.talk("there"));
        let said = world.say(&there, &["Something useful."]);
        world.say(&here, &["Begin."]);
        let request = |turn| Inject { turn, conversation: here.clone(), branch: None };
        let done = world.engine.inject(&world.call, request(TurnRef::of(said[0]))).expect("a turn");
        assert_eq!(done.turn.origin.derived_from, Some(said[0]));
        assert_eq!(world.path(&here, "main"), "Begin. Something useful.");
        assert_eq!(done.branch.tip, Some(done.turn.id));
        let root = TurnRef::within(there.clone(), reference("root"));
        world.refused(ErrorKind::Protected, |engine, call| engine.inject(call, request(root)));
        world.engine.undo(&world.call, &here, None).expect("an undo");
        assert_eq!(world.path(&here, "main"), "Begin.");
        world.verified();
    });
}

#[test]
fn rings_are_there_whenever_they_are_asked_for() {
    for_each_store(|world| {
        let talk = world.talk("trip");
        let said = world.say(&talk, &["What's the best time to visit Tokyo?"]);
        let rings = || world.engine.rings(&world.call, TurnRef::of(said[0])).expect("rings");
        let before = rings();
        let words: Vec<_> = before.rings.keywords.iter().map(|it| it.text.as_str()).collect();
        assert!(["best time", "visit", "Tokyo"].iter().all(|it| words.contains(it)), "{words:?}");
        assert_eq!(before.rings.intent.as_str(), "question");
        let facets: Vec<_> = before.rings.facets.iter().map(|it| it.name).collect();
        assert_eq!(facets, ["timing", "travel"]);
        // A commit keeps them; they stay the same.
        world.commit(&talk, "main", "first");
        assert_eq!(rings(), before);
    });
}
