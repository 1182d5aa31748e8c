//! `tine demo`: creates an example conversation.
//!
//! It never touches the user's stores: without `--store` or `--server` it uses a store of its own,
//! whatever the environment names.
//! `--fresh` deletes only a store with the marker file of this command. For a server, the example
//! is created in memory and sent as a bundle, so that its hashes are the same everywhere.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tine_client::Client;
use tine_core::{ConversationId, ErrorKind};
use tine_engine::{Engine, SystemEntropy};
use tine_formats::bundle::write_bundle;
use tine_server::demo::{CONVERSATION, StoryClock};
use tine_sqlite::DATABASE_FILE;
use tine_store::{MemoryStore, OpenMode, Store};

use crate::arguments::{Globals, local_only_error};
use crate::command_error::{CommandError, Result};
use crate::commands::tree::{head, whole_topology, write_tree};
use crate::session::{self, CliSession, SessionEngine};
use crate::store_location::StoreLocation;
use crate::terminal::Paging;
use crate::terminal::text::shell_word;
use crate::user_dirs;

/// Marks the folder of a store that this command created.
const MARKER_FILE: &str = "made-by-tine-demo.txt";

#[derive(Debug, Args)]
#[command(after_help = "\
The example is created in a store of its own, the folder tine-demo in the user's data folder, \
unless --store or --server names another one. TINE_STORE and TINE_SERVER are ignored.

Examples:
  tine demo
  tine demo --fresh
  tine demo --store ./playground")]
pub(crate) struct DemoArgs {
    /// Delete the example first; refused for a store that `tine demo` did not create
    #[arg(long)]
    fresh: bool,
}

pub(crate) fn demo(globals: &Globals, args: &DemoArgs) -> Result<()> {
    if globals.server_argument().is_some_and(|set| !set.value.is_empty())
        && let Some(client) = session::client(globals)?
    {
        return demo_on_server(globals, args, client);
    }
    let place = match globals.store_argument() {
        Some(named) => StoreLocation::parse(&named)?,
        None => StoreLocation::Folder(user_dirs::demo_store()?),
    };
    let store = match &place {
        StoreLocation::Folder(folder) => open_in_folder(folder, &place, args.fresh)?,
        StoreLocation::Database(_) if args.fresh => {
            let why = "--fresh does not work in a database; `tine store purge --whole -c \
                       tokyo-trip` erases the example";
            return Err(CommandError::refused(ErrorKind::Unsupported, why));
        }
        StoreLocation::Database(_) => place.open(OpenMode::Create)?,
    };
    let clock = Arc::new(StoryClock::default());
    let story_clock = Arc::clone(&clock);
    let engine = Engine::with(store, clock, Arc::new(SystemEntropy), session::limits());
    let session = CliSession::with_engine(SessionEngine::Local(engine.clone()), globals)?;
    let id = ConversationId::new(CONVERSATION, session.limits())?;
    if !conversation_exists(&session, &id)? {
        tine_server::demo::tell(&engine, &session.call, &story_clock, &id)?;
    }
    let store = globals.store_argument().unwrap_or_else(|| place.to_string().into());
    show(&session, &id, &format!("TINE_STORE={}", shell_word(&store.display().to_string())))
}

/// Opens the store in a folder, recreates it if `fresh` is set, and adds the marker to a new one.
fn open_in_folder(folder: &Path, place: &StoreLocation, fresh: bool) -> Result<Arc<dyn Store>> {
    if fresh {
        remove_demo_store(folder)?;
    }
    let is_new = !folder.join(DATABASE_FILE).exists();
    let store = place.open(OpenMode::Create)?;
    if is_new {
        write_marker(folder)?;
    }
    Ok(store)
}

fn demo_on_server(globals: &Globals, args: &DemoArgs, client: Client) -> Result<()> {
    if args.fresh {
        let instead = "`tine store purge --whole -c tokyo-trip` erases the example";
        return Err(local_only_error("tine demo --fresh", client.address(), instead));
    }
    let place = format!("TINE_SERVER={}", client.address());
    let session = CliSession::with_engine(SessionEngine::Remote(client), globals)?;
    let id = ConversationId::new(CONVERSATION, session.limits())?;
    if let (SessionEngine::Remote(client), false) =
        (&session.engine, conversation_exists(&session, &id)?)
    {
        let clock = Arc::new(StoryClock::default());
        let story_clock = Arc::clone(&clock);
        let (store, entropy) = (Arc::new(MemoryStore::new()), Arc::new(SystemEntropy));
        let engine = Engine::with(store, clock, entropy, session::limits());
        tine_server::demo::tell(&engine, &session.call, &story_clock, &id)?;
        let mut bundle = Vec::new();
        write_bundle(&engine, &session.call, std::slice::from_ref(&id), &mut bundle)?;
        client.import(Some(&session.call.project), &mut bundle.as_slice())?;
    }
    show(&session, &id, &place)
}

fn conversation_exists(session: &CliSession, id: &ConversationId) -> Result<bool> {
    match session.engine.conversation(&session.call, id) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn show(session: &CliSession, id: &ConversationId, place: &str) -> Result<()> {
    let topology = whole_topology(session, id, None, false)?;
    if session.answered_json(|| topology.clone())? {
        return Ok(());
    }
    let head = head(session, id)?;
    let main = session.engine.branch(&session.call, id, "main").ok().and_then(|main| main.tip);
    let paint = session.screen.paint;
    session.screen.text(Paging::Direct, |out| {
        write_tree(out, session, Some(&head), &topology, main, None)?;
        writeln!(out, "\n{}", paint.bold("Try next:"))?;
        writeln!(out, "  export {place} TINE_CONVERSATION={id}")?;
        for (command, what) in NEXT {
            writeln!(out, "  {command:<40} {}", paint.dim(what))?;
        }
        Ok(())
    })
}

const NEXT: [(&str, &str); 7] = [
    ("tine serve", "open it in a browser, at http://127.0.0.1:8000"),
    ("tine log -n 4", "the last turns of main"),
    ("tine show hotel --siblings", "one turn in full, and its siblings"),
    ("tine append 'Can we see Mount Fuji?'", "append to main"),
    ("tine fork hotel --name cheaper", "continue from an earlier turn, on a new branch"),
    ("tine undo", "undo the last change; `tine ops` lists all"),
    ("tine store verify", "recompute every hash"),
];

fn write_marker(folder: &Path) -> Result<()> {
    let text = "`tine demo` created this store, and `tine demo --fresh` deletes it.\n";
    fs::write(folder.join(MARKER_FILE), text).map_err(|error| unwritable(folder, &error))
}

fn unwritable(folder: &Path, error: &std::io::Error) -> CommandError {
    CommandError::refused(ErrorKind::Internal, format!("writing {}: {error}", folder.display()))
}

/// Deletes a demo store: checks the marker, checks that the folder contains nothing else, and
/// deletes only the store's own files.
fn remove_demo_store(folder: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    let names: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    if names.is_empty() {
        return Ok(());
    }
    let refuse = |why: &str| {
        let path = absolute(folder);
        CommandError::refused(
            ErrorKind::Protected,
            format!("{} {why}; nothing was deleted", path.display()),
        )
    };
    if !names.iter().any(|name| name == MARKER_FILE) {
        return Err(refuse("was not created by `tine demo`"));
    }
    let own = |name: &std::ffi::OsString| {
        let prefixes = ["tine.", "writer.", "users."];
        name == MARKER_FILE
            || name.to_str().is_some_and(|name| prefixes.iter().any(|own| name.starts_with(own)))
    };
    if !names.iter().all(own) {
        return Err(refuse("holds other files than the store"));
    }
    // Delete the marker last, so that an interrupted deletion can be repeated.
    let files = names.iter().filter(|name| *name != MARKER_FILE).map(|name| folder.join(name));
    for file in files.chain([folder.join(MARKER_FILE)]) {
        fs::remove_file(&file).map_err(|error| unwritable(&file, &error))?;
    }
    Ok(())
}

fn absolute(folder: &Path) -> PathBuf {
    env::current_dir().map_or_else(|_| folder.to_owned(), |current| current.join(folder))
}
