//! Commits on the command line. Every test here runs again over a server (see `remote`).
//!
//! | promise | test |
//! | --- | --- |
//! | a commit seals what is new; messages keep spaces and quotes | `making::*` |
//! | a log of turns says where commits end | `making::a_log_of_turns_says_where_commits_end` |
//! | the graph shows branches, merges and heads | `making::the_graph_shows_branches_and_merges` |
//! | words that differ are marked with colours and without | `comparing::words_that_differ_are_marked` |
//! | a merge says what changes, what conflicts and what to do next | `merging::a_merge_says_what_changes_and_what_is_left_to_decide` |
//! | several conflicts are decided in one call | `merging::several_fields_are_decided_in_one_call` |
//! | `bisect run` takes exit codes as git does | `finding::a_command_tells_good_from_bad_by_its_exit_code` |
//! | a private key is the user's own and never shown | `keys::a_private_key_is_for_the_user_alone_and_never_shown` |

mod comparing;
mod finding;
mod keys;
mod making;
mod merging;

use crate::harness::Home;

/// The conversation `trip`: a commit on `main`, from whose end the branch `osaka` was forked; one
/// turn more on `main` and two on `osaka`; and what each side knows of the trip.
pub fn with_osaka() -> Home {
    let home = Home::new();
    let say = |branch: &str, role: &str, second: u8, text: &str| {
        let at = format!("2024-01-15T10:30:{second:02}Z");
        home.ok(&["append", "-b", branch, "-r", role, "--at", &at, text]);
    };
    home.ok(&["new", "trip", "--system", "Be brief."]);
    say("main", "user", 0, "Where in Japan? The budget is 2000 euros.");
    say("main", "assistant", 5, "Tokyo in late March, for the cherry blossom.");
    fact(&home, "main", r#""city":"Tokyo","budget":2000,"hotel":"Park""#);
    home.ok(&["commit", "-m", "Where to"]);
    home.ok(&["fork", "main", "--name", "osaka"]);
    say("main", "user", 10, "Rather Kyoto, and four nights in Gion.");
    fact(&home, "main", r#""city":"Kyoto","hotel":"Gion Inn""#);
    say("osaka", "user", 20, "What about Osaka instead?");
    say("osaka", "assistant", 25, "Osaka is cheaper and has better food.");
    fact(&home, "osaka", r#""city":"Osaka","budget":1500,"hotel":"Namba Inn""#);
    home
}

/// Lets a turn say something of the trip; gives the trip's id.
pub fn fact(home: &Home, turn: &str, fields: &str) -> String {
    let shown = home.json(&["show", turn]);
    let turn = shown["turn_id"].as_str().expect("a turn has an id");
    let facts = format!(
        r#"{{"entities":[{{"entity_type":"trip","turn":"{turn}",
            "fields":{{"name":"the trip",{fields}}}}}]}}"#
    );
    let out = home.ok_with(&["--json", "store", "facts"], facts.as_bytes());
    let stored: serde_json::Value = serde_json::from_str(&out).expect("a document");
    stored["entities"][0]["entity_id"].as_str().expect("an entity has an id").to_owned()
}

/// The id of the trip.
pub fn trip(home: &Home) -> String {
    let listed = home.json(&["entity", "list", "--type", "trip"]);
    listed["items"][0]["entity_id"].as_str().expect("there is one").to_owned()
}
