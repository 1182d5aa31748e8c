//! Search: which turns a query finds, and what a hit shows.

use tine_core::{Body, ConversationId, ErrorKind, Limits, Message, Role, TurnId, json};
use tine_engine::{
    Append, ConversationPatch, Delete, DeleteMode, MetadataPatch, NewConversation, Purge,
    PurgeTarget, SearchHit, SearchPage, SearchQuery, SplitTurn, TurnRef, WindowQuery,
};

use crate::world::{World, bot, for_each_store, ids, reference, spoken, start, user};

pub fn page(world: &World, query: SearchQuery) -> SearchPage {
    world.engine.search(&world.call, query).expect("a search that is accepted")
}

pub fn hits(world: &World, words: &str) -> Vec<SearchHit> {
    page(world, SearchQuery::of(words)).hits
}

/// The turns that say it, in the order in which they were made.
pub fn found(world: &World, words: &str) -> Vec<TurnId> {
    let mut turns: Vec<TurnId> = hits(world, words).iter().map(|hit| hit.turn).collect();
    turns.sort();
    turns
}

/// Which of some texts, each said once in a conversation of its own, are found.
#[track_caller]
fn finds(texts: &[&str], words: &str, expected: &[usize]) {
    for_each_store(|world| {
        let said: Vec<TurnId> = texts
            .iter()
            .enumerate()
            .map(|(number, text)| world.say(&world.talk(&format!("talk-{number}")), &[text])[0])
            .collect();
        let found = found(world, words);
        let numbers: Vec<usize> =
            (0..texts.len()).filter(|number| found.contains(&said[*number])).collect();
        assert_eq!(numbers, expected, "{words:?} in {texts:?}");
    });
}

/// The highlighted parts of a hit.
fn marked(hit: &SearchHit) -> Vec<String> {
    let snippet: Vec<char> = hit.snippet.chars().collect();
    hit.highlights.iter().map(|(from, to)| snippet[*from..*to].iter().collect()).collect()
}

fn blocks(text: &str, role: Role) -> Message {
    let limits = Limits::default();
    let content = json::parse(text.as_bytes(), limits.json_depth).expect("JSON");
    let body = Body::from_content(content, role, &limits).expect("sound blocks");
    Message { body, ..Message::text(role, "") }
}

fn titled(title: &str) -> MetadataPatch {
    MetadataPatch { title: Some(Some(title.to_owned())), force: true, ..MetadataPatch::default() }
}

/// The turns next to a hit.
fn around(hit: &SearchHit) -> WindowQuery {
    let branch = hit.window.branch.as_ref().map(ToString::to_string);
    WindowQuery { turn: TurnRef::of(hit.turn), branch, before: 1, after: 1 }
}

#[test]
fn words_side_by_side_must_all_be_there() {
    let texts = ["the red fox", "the red hen", "a brown fox"];
    finds(&texts, "red fox", &[0]);
    finds(&texts, "red AND fox", &[0]);
    finds(&texts, "fox", &[0, 2]);
    finds(&texts, "fo", &[]);
}

#[test]
fn a_phrase_is_found_in_its_order() {
    let texts = ["to be or not to be", "be to or not", "not to-be"];
    finds(&texts, "\"to be\"", &[0, 2]);
    finds(&texts, "“to be”", &[0, 2]);
    finds(&texts, "\"not to b\"*", &[0, 2]);
    finds(&texts, "\"or not to be\"", &[0]);
}

#[test]
fn a_phrase_does_not_reach_from_one_block_into_the_next() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let two = r#"[{"type":"text","text":"ends here"},{"type":"text","text":"begins there"}]"#;
        world.append(Append::to(talk, vec![blocks(two, Role::User)]));
        assert_eq!(hits(world, "\"here begins\"").len(), 0);
        assert_eq!(hits(world, "here begins").len(), 1);
    });
}

#[test]
fn a_beginning_finds_every_word_with_it() {
    let texts = ["internationalisation", "intern", "winter"];
    finds(&texts, "intern*", &[0, 1]);
    finds(&texts, "inter* -intern", &[0]);
}

#[test]
fn or_joins_its_neighbours_and_minus_leaves_out() {
    let texts = ["red apple", "green apple", "red pear", "green pear tree"];
    finds(&texts, "apple OR pear", &[0, 1, 2, 3]);
    finds(&texts, "red apple OR pear", &[0, 2]);
    finds(&texts, "apple OR pear -green", &[0, 2]);
    finds(&texts, "pear -\"pear tree\"", &[2]);
    finds(&texts, "-red apple", &[1]);
    finds(&texts, "or", &[]);
}

#[test]
fn case_accents_and_width_do_not_matter() {
    let texts = ["Crème brûlée", "CREME BRULEE", "cre\u{300}me", "straße", "ＡＢＣ１２３", "Ёлка"];
    finds(&texts, "creme", &[0, 1, 2]);
    finds(&texts, "CRÈME", &[0, 1, 2]);
    finds(&texts, "STRASSE", &[3]);
    finds(&texts, "abc123", &[4]);
    finds(&texts, "елка", &[5]);
}

#[test]
fn two_characters_of_chinese_japanese_or_korean_are_enough() {
    let texts = ["我们明天去东京旅行", "東京都に住んでいます", "서울에서 만나요", "ﾃﾞｰﾀﾍﾞｰｽ"];
    finds(&texts, "明天", &[0]);
    finds(&texts, "旅行", &[0]);
    finds(&texts, "京都", &[1]);
    finds(&texts, "住んで", &[1]);
    finds(&texts, "서울", &[2]);
    finds(&texts, "만나", &[2]);
    finds(&texts, "データ", &[3]);
    finds(&texts, "东 京", &[0]);
    finds(&texts, "行", &[0]);
    finds(&texts, "東", &[1]);
    finds(&texts, "天明", &[]);
}

#[test]
fn scripts_mix_in_a_text_and_in_a_query() {
    let texts = ["Tokyo東京タワー2024年", "use Rust编写数据库 today", "naïve 東京"];
    finds(&texts, "東京タワー", &[0]);
    finds(&texts, "tokyo東京", &[0]);
    finds(&texts, "rust 数据", &[1]);
    finds(&texts, "Rust编写", &[1]);
    finds(&texts, "2024", &[0]);
    finds(&texts, "naive 東京", &[2]);
}

#[test]
fn every_text_in_a_turn_is_found_and_encoded_data_is_not() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let data = "QUJD".repeat(300);
        let call = format!(
            r#"[{{"type":"text","text":"let me look"}},
                {{"type":"thinking","text":"pondering deeply","signature":"sigsig"}},
                {{"type":"tool-use","id":"callid1","name":"search_flights",
                  "parameters":{{"from":"Berlin","legs":[{{"to":"Osaka"}}],"raw":"{data}"}}}}]"#
        );
        let answer = r#"[{"type":"tool-result","content":[{"type":"text","text":"JL46 direct"}]}]"#;
        let summary = r#"[{"type":"summary","text":"they compared airlines"},
                          {"type":"image","source":{"data":"UElDVFVSRQ"},"caption":"a gate"}]"#;
        let tool = Message { tool_call_id: Some("callid1".into()), ..blocks(answer, Role::Tool) };
        let mut last = user("fine");
        last.metadata.title = Some("Booking settled".into());
        let messages =
            vec![blocks(&call, Role::Assistant), tool, blocks(summary, Role::User), last];
        let said = ids(&world.append(Append::to(talk, messages)));
        for (words, turn) in [
            ("let me look", 0),
            ("pondering", 0),
            ("search_flights", 0),
            ("flights", 0),
            ("berlin osaka", 0),
            ("jl46", 1),
            ("airlines", 2),
            ("gate", 2),
            ("booking settled", 3),
        ] {
            assert_eq!(found(world, words), [said[turn]], "{words}");
        }
        for absent in ["sigsig", "UElDVFVSRQ", "callid1", "QUJD*", "legs", "parameters"] {
            assert_eq!(found(world, absent), [], "{absent}");
        }
    });
}

#[test]
fn a_hit_names_the_turn_its_branches_and_the_window_around_it() {
    for_each_store(|world| {
        let mut new = NewConversation::named("talk").expect("an id");
        new.title = Some("A week in Tokyo".into());
        world.engine.create_conversation(&world.call, new).expect("a conversation");
        let talk = ConversationId::from_stored("talk");
        let said = world.say(&talk, &["one", "two blossoms", "three", "four"]);
        world.fork_at(&talk, said[1], "autumn");
        let leaf = world.say_under(&talk, said[0], "berlin", user("blossoms elsewhere"));
        world.engine.patch_metadata(&world.call, world.turn(said[1]), titled("Spring")).expect("t");
        let found = hits(world, "two blossoms");
        let [hit] = &found[..] else { panic!("{found:?}") };
        assert_eq!((hit.turn, hit.role, &hit.conversation), (said[1], Role::Assistant, &talk));
        assert_eq!(hit.conversation_title.as_deref(), Some("A week in Tokyo"));
        assert_eq!(hit.title.as_deref(), Some("Spring"));
        let turn = world.engine.turn(&world.call, world.turn(said[1])).expect("the turn");
        assert_eq!((hit.hash, hit.created_at, hit.depth), (turn.hash, turn.created_at, 2));
        let names: Vec<String> = hit.branches.iter().map(ToString::to_string).collect();
        assert_eq!((names, hit.branch_count), (vec!["main".to_owned(), "autumn".to_owned()], 2));
        let window = world.engine.window(&world.call, around(hit)).expect("a window");
        let around: Vec<TurnId> = window.turns.iter().map(|turn| turn.id).collect();
        assert_eq!((around, window.focus), (said[..3].to_vec(), 1));
        let other = &hits(world, "elsewhere")[0];
        assert_eq!(other.turn, leaf);
        assert_eq!(other.branches, [tine_core::Name::from_stored("berlin")]);
    });
}

#[test]
fn a_turn_of_a_tail_is_found_and_lies_on_no_branch() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["one", "left aside"]);
        let back = tine_engine::MoveBranch {
            conversation: talk,
            branch: "main".into(),
            to: Some(said[0].into()),
            expected_tip: None,
        };
        world.engine.revert(&world.call, back).expect("a revert");
        let hit = &hits(world, "aside")[0];
        assert_eq!((hit.turn, hit.branch_count, hit.branches.len()), (said[1], 0, 0));
        assert_eq!(world.engine.window(&world.call, around(hit)).expect("w").turns.len(), 2);
    });
}

#[test]
fn a_snippet_shows_the_place_and_marks_it_in_characters() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let before = "Lots of words come first. ".repeat(40);
        let text = format!("{before}Then 👩‍🚀 flies to\nKyōto (京都) and KYOTO again. {before}");
        world.say(&talk, &[&text, "都市です", "short kyoto"]);
        let hit = &page(world, SearchQuery::of("kyoto flies")).hits[0];
        assert!(hit.snippet.starts_with('…') && hit.snippet.ends_with('…'), "{}", hit.snippet);
        assert!(hit.snippet.chars().count() <= 200 && !hit.snippet.contains('\n'));
        assert_eq!(marked(hit), ["flies", "Kyōto", "KYOTO"]);
        assert_eq!(marked(&hits(world, "京都")[0]), ["京都"]);
        let single = hits(world, "都");
        let mut marks: Vec<_> = single.iter().map(marked).collect();
        marks.sort();
        assert_eq!(marks, [["都"], ["都"]]);
        let short = hits(world, "short");
        assert_eq!(
            (short[0].snippet.as_str(), &short[0].highlights),
            ("short kyoto", &vec![(0, 5)])
        );
    });
}

#[test]
fn filters_narrow_by_role_conversation_branch_time_and_tag() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["word a", "word b", "word c"]);
        let side = world.say_under(&talk, said[0], "side", bot("word d"));
        let other = world.say(&world.talk("other"), &["word e"])[0];
        let tag = MetadataPatch { add_tags: vec!["good one".into()], ..Default::default() };
        world.engine.patch_metadata(&world.call, world.turn(said[2]), tag).expect("a tag");
        let check = |query: SearchQuery, expected: &[TurnId]| {
            let label = format!("{query:?}");
            let mut found: Vec<TurnId> =
                page(world, query).hits.iter().map(|hit| hit.turn).collect();
            found.sort();
            assert_eq!(found, expected, "{label}");
        };
        let word = || SearchQuery::of("word");
        let here = || SearchQuery { conversation: Some(talk.clone()), ..word() };
        check(word(), &[said[0], said[1], said[2], side, other]);
        check(SearchQuery { role: Some(Role::Assistant), ..word() }, &[said[1], side]);
        check(here(), &[said[0], said[1], said[2], side]);
        check(SearchQuery { branch: Some("side".into()), ..here() }, &[said[0], side]);
        let branches = world.engine.branches(&world.call, &talk).expect("branches");
        let id = branches.iter().find(|it| it.name.as_str() == "side").expect("it").id.to_string();
        check(SearchQuery { branch: Some(id), ..word() }, &[said[0], side]);
        check(SearchQuery { tags: vec!["good one".into()], ..word() }, &[said[2]]);
        check(SearchQuery { tags: vec!["good".into()], ..word() }, &[]);
        let at = |turn: TurnId| {
            world.engine.turn(&world.call, world.turn(turn)).expect("a turn").created_at
        };
        let between = SearchQuery { from: Some(at(side)), to: Some(at(other)), ..word() };
        check(between, &[side]);
        check(SearchQuery { to: Some(start()), ..word() }, &[]);
        world.refused(ErrorKind::Invalid, |engine, call| {
            engine.search(call, SearchQuery { branch: Some("side".into()), ..SearchQuery::of("x") })
        });
        world.refused(ErrorKind::NotFound, |engine, call| {
            engine.search(call, SearchQuery { branch: Some("nope".into()), ..here() })
        });
        let untag = MetadataPatch { remove_tags: vec!["good one".into()], ..Default::default() };
        world.engine.patch_metadata(&world.call, world.turn(said[2]), untag).expect("no tag");
        check(SearchQuery { tags: vec!["good one".into()], ..word() }, &[]);
    });
}

#[test]
fn a_search_stays_in_its_project() {
    for_each_store(|world| {
        world.say(&world.talk("talk"), &["secret here"]);
        let elsewhere = world
            .call
            .clone()
            .in_project(tine_core::ProjectId::new("elsewhere", &Limits::default()).expect("an id"));
        let mine = NewConversation::named("talk").expect("an id");
        let talk = world.engine.create_conversation(&elsewhere, mine).expect("a conversation").id;
        let append = Append::to(talk, vec![user("secret there")]);
        world.engine.append(&elsewhere, append).expect("an append");
        let there = world.engine.search(&elsewhere, SearchQuery::of("secret")).expect("a search");
        assert_eq!(there.hits.len(), 1);
        assert_eq!(there.hits[0].snippet, "secret there");
        assert_eq!(hits(world, "secret").len(), 1);
    });
}

#[test]
fn better_fits_come_first_and_newer_ones_among_equals() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let padding = "many other words that say nothing about it ".repeat(8);
        let mut texts: Vec<String> = (0..20).map(|n| format!("filler number {n}")).collect();
        texts.push(format!("{padding} otter"));
        texts.push("otter otter otter".to_owned());
        texts.push("equal badger".to_owned());
        texts.push("equal badger".to_owned());
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let said = world.say(&talk, &texts);
        let order =
            |words| -> Vec<TurnId> { hits(world, words).iter().map(|hit| hit.turn).collect() };
        assert_eq!(order("otter"), [said[21], said[20]]);
        assert_eq!(order("badger"), [said[23], said[22]]);
    });
}

#[test]
fn pages_fit_together_also_while_others_write() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let texts: Vec<String> =
            (0..23).map(|n| format!("needle {}", "hay ".repeat(n % 5))).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut expected = world.say(&talk, &texts);
        let mut query = SearchQuery { limit: Some(5), ..SearchQuery::of("needle") };
        let mut seen = Vec::new();
        loop {
            let found = page(world, query.clone());
            assert!(found.hits.len() <= 5);
            seen.extend(found.hits.iter().map(|hit| hit.turn));
            world.say(&talk, &["nothing of the kind"]);
            match found.next {
                Some(next) => query.cursor = Some(next),
                None => break,
            }
        }
        seen.sort();
        expected.sort();
        assert_eq!(seen, expected);
        let other = SearchQuery { words: "hay".into(), ..query.clone() };
        world.refused(ErrorKind::Invalid, |engine, call| engine.search(call, other));
        for cursor in ["", "x", "1.2.3.4", "zzzzzzzz.1.2.3"] {
            let bad = SearchQuery { cursor: Some(cursor.into()), ..query.clone() };
            world.refused(ErrorKind::Invalid, |engine, call| engine.search(call, bad));
        }
        world.refused(ErrorKind::TooLarge, |engine, call| {
            engine.search(call, SearchQuery { limit: Some(100_000), ..SearchQuery::of("x") })
        });
    });
}

#[test]
fn deleted_and_undone_turns_are_not_found_until_they_are_back() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["kept", "gone alpha", "below beta"]);
        let delete = |turn: TurnId, mode| Delete {
            turn: world.turn(turn),
            mode,
            force: false,
            dry_run: false,
        };
        let reparent = delete(said[1], DeleteMode::Reparent);
        world.engine.delete(&world.call, reparent).expect("a deletion");
        assert_eq!((found(world, "alpha"), found(world, "beta")), (vec![], vec![said[2]]));
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        assert_eq!(found(world, "alpha"), [said[1]]);
        let cascade = delete(said[1], DeleteMode::Cascade);
        world.engine.delete(&world.call, cascade).expect("a deletion");
        assert_eq!((found(world, "alpha"), found(world, "beta")), (vec![], vec![]));
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        let late = world.say(&talk, &["undone gamma"])[0];
        assert_eq!(found(world, "gamma"), [late]);
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        assert_eq!(found(world, "gamma"), []);
        world.engine.redo(&world.call, &talk, None).expect("a redo");
        assert_eq!(found(world, "gamma"), [late]);
    });
}

#[test]
fn the_halves_of_a_split_turn_are_found_and_the_whole_is_not() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["alpha common beta common"]);
        let split = SplitTurn { turn: world.turn(said[0]), offset: 13 };
        let halves = world.engine.split(&world.call, split).expect("a split");
        assert_eq!(found(world, "alpha"), [halves.left.id]);
        assert_eq!(found(world, "beta"), [halves.right.id]);
        assert_eq!(found(world, "common"), [halves.left.id, halves.right.id]);
        assert_eq!(found(world, "alpha beta"), []);
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        assert_eq!(found(world, "alpha beta"), [said[0]]);
        assert_eq!(found(world, "common"), [said[0]]);
    });
}

#[test]
fn a_title_is_found_as_long_as_it_is_there() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["something"]);
        let title = |title: &str| {
            world
                .engine
                .patch_metadata(&world.call, world.turn(said[0]), titled(title))
                .expect("t");
        };
        title("zebra");
        assert_eq!(found(world, "zebra"), said);
        title("giraffe");
        assert_eq!((found(world, "zebra"), found(world, "giraffe")), (vec![], said.clone()));
        world.engine.undo(&world.call, &talk, None).expect("an undo");
        assert_eq!((found(world, "giraffe"), found(world, "zebra")), (vec![], said.clone()));
        assert_eq!(found(world, "something zebra"), said);
    });
}

#[test]
fn archived_conversations_are_searched_on_request_alone() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["needle"]);
        let archive = ConversationPatch { archived: Some(true), ..ConversationPatch::default() };
        world.engine.patch_conversation(&world.call, &talk, archive).expect("archived");
        assert_eq!(found(world, "needle"), []);
        let asked = SearchQuery { archived: true, ..SearchQuery::of("needle") };
        let hit = &page(world, asked).hits[0];
        assert_eq!((hit.turn, hit.archived), (said[0], true));
        let named = SearchQuery { conversation: Some(talk), ..SearchQuery::of("needle") };
        assert_eq!(page(world, named).hits.len(), 1);
    });
}

#[test]
fn purged_turns_are_not_found_and_no_byte_of_them_stays_in_any_file() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["hello", "zqxjneedleword other", "bye"]);
        let tag = MetadataPatch {
            title: Some(Some("zqxjtitleword".into())),
            tags: Some(vec!["zqxjtagword".into()]),
            ..MetadataPatch::default()
        };
        world.engine.patch_metadata(&world.call, world.turn(said[1]), tag).expect("a title");
        assert_eq!(found(world, "zqxjneedleword zqxjtitleword"), [said[1]]);
        assert_eq!(
            files_with(world, "zqxjneedleword"),
            files_of_store(world),
            "it is in the index"
        );
        let target = PurgeTarget::Turn(world.turn(said[1]));
        let ask = Purge { target: target.clone(), confirm: None };
        let confirm = world.engine.purge(&world.call, ask).expect("a question").confirm;
        world.engine.purge(&world.call, Purge { target, confirm }).expect("an erasure");
        for word in ["zqxj", "needleword", "titleword", "tagword"] {
            assert_eq!(files_with(world, word), Vec::<String>::new(), "{word}");
        }
        assert_eq!((found(world, "zqxj*"), found(world, "hello")), (vec![], vec![said[0]]));
        for word in ["zqxj", "needleword", "titleword", "tagword"] {
            assert_eq!(files_with(world, word), Vec::<String>::new(), "{word}, after a search");
        }
    });
}

/// The files of the store in which some bytes are found: the records (file or log), the index.
fn files_with(world: &World, word: &str) -> Vec<String> {
    let Some(folder) = &world.folder else { return Vec::new() };
    let mut names = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder.path()).expect("the store's folder") {
        let entry = entry.expect("an entry");
        let bytes = std::fs::read(entry.path()).expect("a readable file");
        if bytes.windows(word.len()).any(|window| window == word.as_bytes()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            names.insert(name.trim_end_matches("-wal").to_owned());
        }
    }
    names.into_iter().collect()
}

fn files_of_store(world: &World) -> Vec<String> {
    let both = ["search.db".to_owned(), "tine.db".to_owned()];
    world.folder.iter().flat_map(|_| both.clone()).collect()
}

#[test]
fn a_purged_conversation_is_not_found() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        world.say(&talk, &["needle one", "needle two"]);
        let kept = world.say(&world.talk("kept"), &["needle three"]);
        assert_eq!(found(world, "needle").len(), 3);
        let target = PurgeTarget::Conversation(talk);
        let ask = Purge { target: target.clone(), confirm: None };
        let confirm = world.engine.purge(&world.call, ask).expect("a question").confirm;
        world.engine.purge(&world.call, Purge { target, confirm }).expect("an erasure");
        assert_eq!(found(world, "needle"), kept);
    });
}

#[test]
fn bad_queries_are_refused_clearly_or_read_sensibly() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["it's 5\" wide AND (very) NEAR^2 {col}: a+b or OR"]);
        for nothing in ["", "   ", "!!! ???", "\"\"", "-", "*", "- -", "\"", "OR", "()", "«»"] {
            let error = world.refused(ErrorKind::Invalid, |engine, call| {
                engine.search(call, SearchQuery::of(nothing))
            });
            assert!(error.to_string().contains("word"), "{nothing:?}: {error}");
        }
        for only_not in ["-word", "-\"a b\" -c*"] {
            let error = world.refused(ErrorKind::Invalid, |engine, call| {
                engine.search(call, SearchQuery::of(only_not))
            });
            assert!(error.to_string().contains("only excludes"), "{error}");
        }
        for read in [
            "\"it's 5",
            "it's",
            "5\"",
            "wide AND",
            "OR wide",
            "wide OR",
            "(very)",
            "NEAR^2",
            "{col}:",
            "col:",
            "a+b",
            "wide*",
            "\"very near\"*",
            "wide --nope",
            "(very)\u{0}NEAR",
            "'; DROP TABLE said; --",
            "\\wide\\",
            "wide - very",
        ] {
            let answered = world.engine.search(&world.call, SearchQuery::of(read));
            let found = answered.unwrap_or_else(|error| panic!("{read:?}: {error}")).hits;
            let expected = usize::from(!read.contains("DROP"));
            assert_eq!(found.len(), expected, "{read:?}");
        }
        for large in ["x".repeat(100_000), "\"".repeat(100_000), "a ".repeat(2_000)] {
            world.refused(ErrorKind::TooLarge, |engine, call| {
                engine.search(call, SearchQuery::of(large))
            });
        }
        assert_eq!(found(world, &"x OR ".repeat(127).replace("x OR ", "very OR ")), said);
    });
}

#[test]
fn an_empty_store_has_no_hits() {
    for_each_store(|world| assert_eq!(page(world, SearchQuery::of("x")), SearchPage::default()));
}

#[test]
fn imported_turns_are_found() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = ids(&world.append(Append::to(talk.clone(), spoken(&["needle", "other"]))));
        world.engine.patch_metadata(&world.call, world.turn(said[1]), titled("zebra")).expect("t");
        let records = world.export();
        let fresh = World::seeded(std::sync::Arc::new(tine_store::MemoryStore::new()), 2);
        let folder = tine_testkit::stores::TempFolder::new();
        let store = tine_sqlite::SqliteStore::open(folder.path()).expect("a store");
        let embedded = World::seeded(std::sync::Arc::new(store), 3);
        for target in [fresh, embedded] {
            let mut source = records.iter().cloned().map(Ok);
            target.engine.import(None, &mut source).expect("an import");
            assert_eq!(found(&target, "needle"), [said[0]]);
            assert_eq!(found(&target, "zebra"), [said[1]]);
        }
    });
}

#[test]
fn a_large_integer_or_a_reference_in_the_words_is_only_a_word() {
    for_each_store(|world| {
        let talk = world.talk("talk");
        let said = world.say(&talk, &["id 9007199254740993 main~2"]);
        assert_eq!(found(world, "9007199254740993"), said);
        assert_eq!(found(world, reference("main~2").as_str()), said);
    });
}
