//! Bundles out of a store and into another one.

use tine_core::{ErrorKind, Json, ProjectId};
use tine_engine::{Delete, DeleteMode, Edit, Engine, Imported, PurgeTarget, TurnRef};
use tine_formats::bundle::{BundleError, read_bundle};

use super::sample;
use super::script;
use super::stories::{
    Folder, call, create, everything, export, id, import, import_file, memory, purge, say,
};

fn new(conversations: u64) -> Imported {
    Imported { conversations, ..Imported::default() }
}

fn counts(engine: &Engine) -> (u64, u64, u64) {
    let totals = engine.stats(&call(), None).unwrap().store;
    (totals.conversations, totals.turns, totals.operations)
}

fn sound(engine: &Engine) {
    assert_eq!(engine.verify().unwrap().problems, []);
}

#[test]
fn a_round_trip_through_either_store_gives_the_same_bytes() {
    let source = memory(1);
    let ids = everything(&source);
    let bundle = export(&source, &ids);
    let held = sample::verify(&bundle).unwrap();

    let folder = Folder::new();
    let (fresh, embedded) = (memory(2), folder.embedded(3));
    for target in [&fresh, &embedded] {
        let imported = import(target, &bundle).unwrap();
        let (turns, operations) = (held.turns, held.operations);
        assert_eq!(imported, Imported { turns, operations, ..new(4) });
        assert!(export(target, &ids) == bundle, "the bytes differ after a round trip");
        sound(target);
    }
    // And from the embedded store on.
    let last = memory(4);
    import_file(&last, &export(&embedded, &ids)).unwrap();
    assert!(export(&last, &ids) == bundle, "the bytes differ after a second trip");
}

#[test]
fn both_stores_export_the_same_story_as_the_same_bytes() {
    let folder = Folder::new();
    let (one, other) = (memory(1), folder.embedded(1));
    let ids = everything(&one);
    everything(&other);
    assert!(export(&one, &ids) == export(&other, &ids));
}

#[test]
fn the_script_recomputes_every_hash_of_an_export() {
    let source = memory(1);
    let ids = everything(&source);
    let bundle = export(&source, &ids);
    let lines = sample::lines(&bundle);
    for kind in ["conversation", "turn", "split", "hidden", "branch", "bookmark", "operation"] {
        sample::place(&lines, &format!(r#""record":"{kind}""#));
    }
    let held = sample::verify(&bundle).unwrap();
    let (content, said) = script::run(&bundle);
    assert!(content, "{said}");
    let expected =
        format!("ok: 4 conversations, {} turns, {} operations", held.turns, held.operations);
    assert!(said.starts_with(&expected), "{said}");
}

/// Each byte of what was said or done, under an end line that fits: here and in the script.
#[test]
fn tampering_with_an_export_is_found_here_and_by_the_script() {
    let source = memory(1);
    let ids = everything(&source);
    let whole = sample::lines(&export(&source, &ids));
    let check = |holding: &str, from: &str, to: &str, named: &str| {
        let mut lines = whole.clone();
        let line = sample::place(&lines, holding);
        assert!(lines[line].contains(from), "{}", lines[line]);
        lines[line] = lines[line].replacen(from, to, 1);
        let bundle = sample::seal(&lines);
        let target = memory(2);
        let error = import(&target, &bundle).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {} of the bundle", line + 1)), "{error}");
        assert_eq!(counts(&target), (0, 0, 0));
        let (content, said) = script::run(&bundle);
        assert!(!content && said.contains(named), "{said}");
    };
    check("Late March", "Late March", "Late Marsh", "turn_hash");
    check("Late March", r#""role":"assistant""#, r#""role":"system""#, "turn_hash");
    check("Late March", r#""created_at":"2"#, r#""created_at":"1"#, "turn_hash");
    check(
        r#""kind":"append""#,
        r#""actor":"Ana""#,
        r#""actor":"Ann""#,
        "operation 2 of trip: hash",
    );
    check(r#""kind":"append""#, r#""at":"2"#, r#""at":"1"#, "operation 2 of trip: hash");
    check(
        r#""kind":"append""#,
        r#""detail":{"#,
        r#""detail":{"a":0,"#,
        "operation 2 of trip: hash",
    );
    check("You plan trips", "trips", "tripe", "root_hash");
}

#[test]
fn importing_twice_adds_nothing() {
    let source = memory(1);
    let ids = everything(&source);
    let bundle = export(&source, &ids);
    let folder = Folder::new();
    for target in [memory(2), folder.embedded(2)] {
        import(&target, &bundle).unwrap();
        let before = counts(&target);
        let unchanged = Imported { unchanged: 4, ..Imported::default() };
        assert_eq!(import(&target, &bundle).unwrap(), unchanged);
        assert_eq!(import_file(&target, &bundle).unwrap(), unchanged);
        assert_eq!(counts(&target), before);
        assert!(export(&target, &ids) == bundle);
    }
    // Nor into the store that it came from.
    let unchanged = Imported { unchanged: 4, ..Imported::default() };
    assert_eq!(import(&source, &bundle).unwrap(), unchanged);
    assert!(export(&source, &ids) == bundle);
}

#[test]
fn a_longer_version_extends_what_is_there() {
    let source = memory(1);
    create(&source, "trip");
    say(&source, "trip", &["One", "Two"]);
    let early = export(&source, &["trip"]);
    let more = say(&source, "trip", &["Three", "Four", "Five"]);
    let turn = TurnRef::of(more[1]);
    let gone = Delete { turn, mode: DeleteMode::Cascade, force: false, dry_run: false };
    source.delete(&call(), gone).unwrap();
    let late = export(&source, &["trip"]);

    let folder = Folder::new();
    for target in [memory(2), folder.embedded(2)] {
        import(&target, &early).unwrap();
        let extended = Imported { extended: 1, turns: 3, operations: 2, ..Imported::default() };
        assert_eq!(import(&target, &late).unwrap(), extended);
        assert!(export(&target, &["trip"]) == late);
        // The shorter one again takes nothing away.
        let unchanged = Imported { unchanged: 1, ..Imported::default() };
        assert_eq!(import(&target, &early).unwrap(), unchanged);
        assert!(export(&target, &["trip"]) == late);
        sound(&target);
    }
}

#[test]
fn diverged_histories_conflict_and_change_nothing() {
    let one = memory(1);
    create(&one, "trip");
    say(&one, "trip", &["One", "Two"]);
    let base = export(&one, &["trip"]);
    let folder = Folder::new();
    for other in [memory(2), folder.embedded(2)] {
        import(&other, &base).unwrap();
        say(&one, "trip", &["This way"]);
        say(&other, "trip", &["That way"]);
        let before = export(&other, &["trip"]);
        let error = import(&other, &export(&one, &["trip"])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.to_string().contains("`trip` (line 2 of the bundle)"), "{error}");
        assert!(export(&other, &["trip"]) == before);
        sound(&other);
    }
}

/// Each conversation is whole or not there; what came before a refused one stays.
#[test]
fn a_rejected_conversation_does_not_affect_those_before_it() {
    let (one, other) = (memory(1), memory(2));
    for (engine, text) in [(&one, "This way"), (&other, "That way")] {
        create(engine, "trip");
        say(engine, "trip", &[text]);
    }
    create(&one, "fine");
    say(&one, "fine", &["Hello"]);
    let bundle = export(&one, &["fine", "trip"]);
    let before = export(&other, &["trip"]);
    let error = import(&other, &bundle).unwrap_err();
    let BundleError::Refused { conversation, imported, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!((conversation, imported.conversations), (&id("trip"), 1));
    assert!(export(&other, &["fine"]) == export(&one, &["fine"]));
    assert!(export(&other, &["trip"]) == before);
    sound(&other);
}

#[test]
fn a_bundle_is_imported_into_the_requested_project() {
    let source = memory(1);
    create(&source, "trip");
    say(&source, "trip", &["One", "Two"]);
    let bundle = export(&source, &["trip"]);
    let work = ProjectId::new("work", source.limits()).unwrap();
    let target = memory(2);
    read_bundle(&target, Some(&work), &mut bundle.as_slice()).unwrap();
    assert_eq!(target.conversation(&call(), &id("trip")).unwrap_err().kind(), ErrorKind::NotFound);
    let mut out = Vec::new();
    let there = call().in_project(work);
    tine_formats::bundle::write_bundle(&target, &there, &[id("trip")], &mut out).unwrap();
    let mut lines = sample::lines(&out);
    sample::change(&mut lines[1], |line| drop(line.insert("project_id", Json::from("default"))));
    assert!(sample::seal(&lines) == bundle);
}

#[test]
fn purged_turns_are_not_imported_again() {
    let source = memory(1);
    create(&source, "trip");
    let turns = say(&source, "trip", &["my number is secret", "Noted."]);
    let early = export(&source, &["trip"]);
    let folder = Folder::new();
    for target in [memory(2), folder.embedded(2)] {
        import(&target, &early).unwrap();
        purge(&target, PurgeTarget::Turn(TurnRef::of(turns[0])));
        let before = export(&target, &["trip"]);
        assert!(!String::from_utf8_lossy(&before).contains("secret"));
        import(&target, &early).unwrap();
        assert!(export(&target, &["trip"]) == before);
    }
    // And an erasure travels.
    let copy = memory(3);
    import(&copy, &early).unwrap();
    purge(&source, PurgeTarget::Turn(TurnRef::of(turns[0])));
    let late = export(&source, &["trip"]);
    import(&copy, &late).unwrap();
    assert!(export(&copy, &["trip"]) == late);
    sound(&copy);
}

#[test]
fn deleted_turns_stay_deleted() {
    let source = memory(1);
    create(&source, "trip");
    let turns = say(&source, "trip", &["One", "Two", "Three"]);
    let early = export(&source, &["trip"]);
    let target = memory(2);
    import(&target, &early).unwrap();
    let turn = TurnRef::of(turns[1]);
    let gone = Delete { turn, mode: DeleteMode::Cascade, force: false, dry_run: false };
    target.delete(&call(), gone).unwrap();
    import(&target, &early).unwrap();
    let path = target.path(&call(), tine_engine::PathQuery::of(id("trip"))).unwrap();
    assert_eq!(path.turns.len(), 1);
}

/// A cut or altered bundle stores nothing, also of the conversations before the fault.
#[test]
fn nothing_of_an_incomplete_bundle_is_stored() {
    let source = memory(1);
    let ids = everything(&source);
    let bundle = export(&source, &ids);
    let folder = Folder::new();
    let (fresh, embedded) = (memory(2), folder.embedded(2));
    let ends: Vec<usize> = (0..bundle.len()).filter(|at| bundle[*at] == b'\n').collect();
    let inside = (0..bundle.len()).step_by(bundle.len() / 50);
    let cuts =
        ends[..ends.len() - 1].iter().map(|at| at + 1).chain(ends.iter().copied()).chain(inside);
    for cut in cuts {
        let (fault, filed) =
            (import(&fresh, &bundle[..cut]), import_file(&embedded, &bundle[..cut]));
        assert_eq!(fault.unwrap_err().kind(), ErrorKind::Invalid, "cut at {cut}");
        assert_eq!(filed.unwrap_err().kind(), ErrorKind::Invalid, "cut at {cut}");
    }
    for at in (0..bundle.len()).step_by(bundle.len() / 200) {
        let mut changed = bundle.clone();
        changed[at] ^= 1;
        import(&fresh, &changed).unwrap_err();
        import_file(&embedded, &changed).unwrap_err();
    }
    assert_eq!((counts(&fresh), counts(&embedded)), ((0, 0, 0), (0, 0, 0)));
}

#[test]
fn an_unknown_conversation_cannot_be_exported() {
    let mut out = Vec::new();
    let asked = tine_formats::bundle::write_bundle(&memory(1), &call(), &[id("nobody")], &mut out);
    assert_eq!(asked.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(sample::verify(&out).unwrap_err().kind(), ErrorKind::Invalid);
}

/// An output that takes so many bytes and no more.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = bytes.len().min(self.0);
        self.0 -= room;
        if room == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(room) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_as_such() {
    let source = memory(1);
    create(&source, "trip");
    say(&source, "trip", &["One"]);
    let asked = tine_formats::bundle::write_bundle(&source, &call(), &[id("trip")], &mut Full(100));
    let error = asked.unwrap_err();
    assert!(matches!(error, BundleError::Write { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Internal);
}

/// A copy that went on by itself continues the ids, the log and the bytes.
#[test]
fn an_imported_conversation_continues_like_the_original() {
    let source = memory(1);
    create(&source, "trip");
    let turns = say(&source, "trip", &["One", "Two"]);
    let target = memory(2);
    import(&target, &export(&source, &["trip"])).unwrap();
    let body = tine_core::Body::Text("Deux".to_owned());
    let branch = Some("main".to_owned());
    let edit = Edit { turn: TurnRef::of(turns[1]), body, branch, reuse: true };
    target.edit(&call(), edit).unwrap();
    target.undo(&call(), &id("trip"), None).unwrap();
    target.undo(&call(), &id("trip"), Some(2)).unwrap();
    sound(&target);
    let late = export(&target, &["trip"]);
    import(&source, &late).unwrap();
    assert!(export(&source, &["trip"]) == late);
}
