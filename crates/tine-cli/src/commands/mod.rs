//! The commands, one file per family: arguments, request and answer.

pub(crate) mod acp;
pub(crate) mod annotations;
pub(crate) mod append;
mod backup;
pub(crate) mod blame;
pub(crate) mod branch_moves;
pub(crate) mod branches;
pub(crate) mod commits;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod conversations;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod drift;
pub(crate) mod edits;
pub(crate) mod entities;
pub(crate) mod export;
pub(crate) mod families;
pub(crate) mod history;
pub(crate) mod host_files;
pub(crate) mod import;
pub(crate) mod interpret;
pub(crate) mod keys;
pub(crate) mod list;
pub(crate) mod maintenance;
pub(crate) mod manual;
pub(crate) mod mcp;
pub(crate) mod merge;
pub(crate) mod migrate;
pub(crate) mod observations;
pub(crate) mod pack;
pub(crate) mod paths;
pub(crate) mod projects;
pub(crate) mod purge;
pub(crate) mod relations;
pub(crate) mod repair;
pub(crate) mod repl;
pub(crate) mod resolve;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod sources;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod sync;
pub(crate) mod timeline;
pub(crate) mod token;
pub(crate) mod tree;
pub(crate) mod usage;
pub(crate) mod use_conversation;
pub(crate) mod watch;

use tine_store::OpenMode;

use crate::arguments::{Arguments, Command, Globals};
use crate::command_error::Result;
use crate::session::CliSession;

/// Runs the command that the arguments name.
pub(crate) fn run(mut arguments: Arguments) -> Result<()> {
    if let Command::Config(args) = &arguments.command
        && let Some(done) = args.run_without_settings(&arguments.globals)
    {
        return done;
    }
    arguments.globals.read_settings()?;
    dispatch(&arguments.globals, arguments.command)
}

fn dispatch(globals: &Globals, command: Command) -> Result<()> {
    let open = || CliSession::open(globals, OpenMode::Existing);
    match command {
        Command::Turn(_) | Command::Relation(_) | Command::Server(_) => {
            dispatch(globals, command.member())
        }
        Command::Run(family) => interpret::run(&open()?, family.subcommand),
        Command::Repl(_) => repl::repl(globals),
        Command::Demo(args) => demo::demo(globals, &args),
        Command::New(args) => conversations::new(globals, args),
        Command::Ls(args) => list::ls(&open()?, &args),
        Command::Use(args) => use_conversation::use_conversation(globals, &open()?, &args),
        Command::Status(_) => status::status(globals),
        Command::Usage(args) => usage::usage(globals, &open()?, &args),
        Command::Doctor(_) => doctor::doctor(globals),
        Command::Projects(_) => projects::projects(&open()?),
        Command::Derive(args) => conversations::derive(&open()?, args),
        Command::Archive(args) => conversations::archive(&open()?, &args),
        Command::Append(args) => append::append(globals, args),
        Command::Log(args) => paths::log(&open()?, args),
        Command::Turns(args) => paths::turns(&open()?, args),
        Command::Path(args) => paths::path(&open()?, args),
        Command::Search(args) => search::search(&open()?, args),
        Command::Show(args) => show::show(&open()?, &args),
        Command::Tree(args) => tree::tree(&open()?, &args),
        Command::Branch(args) => branches::branch(&open()?, args),
        Command::Fork(args) => branches::fork(&open()?, args),
        Command::Edit(args) => edits::edit(&open()?, args),
        Command::Split(args) => edits::split(&open()?, &args),
        Command::Delete(args) => edits::delete(&open()?, &args),
        Command::Revert(args) => branch_moves::revert(&open()?, args),
        Command::Restore(args) => branch_moves::restore(&open()?, args),
        Command::Tails(_) => branch_moves::tails(&open()?),
        Command::Commit(args) => commits::run(globals, args),
        Command::Commits(args) => commits::commits(&open()?, args),
        Command::Diff(args) => diff::diff(&open()?, &args),
        Command::Merge(args) => merge::merge(&open()?, args),
        Command::Resolve(args) => resolve::resolve(&open()?, args),
        Command::Inject(args) => merge::inject(&open()?, args),
        Command::Blame(args) => blame::blame(&open()?, args),
        Command::Bisect(args) => blame::bisect(&open()?, args),
        Command::Drift(args) => drift::drift(&open()?, &args),
        Command::Key(args) => keys::key(globals, args),
        Command::Undo(args) => history::undo(&open()?, &args),
        Command::Redo(args) => history::redo(&open()?, &args),
        Command::Ops(args) => history::ops(&open()?, &args),
        Command::Watch(args) => watch::watch(globals, &args),
        Command::Bookmark(args) => annotations::bookmark(&open()?, args),
        Command::Tag(args) => annotations::tag(&open()?, args),
        Command::Title(args) => annotations::title(&open()?, args),
        Command::Store(args) => store::store(globals, args),
        Command::Source(args) => sources::source(globals, args),
        Command::Observations(args) => observations::observations(&open()?, &args),
        Command::Entity(args) => entities::entity(&open()?, args),
        Command::Timeline(args) => timeline::timeline(&open()?, &args),
        Command::Relate(args) => relations::relate(&open()?, &args),
        Command::Relations(args) => relations::relations(&open()?, &args),
        Command::Unrelate(args) => relations::unrelate(&open()?, &args),
        Command::Interpret(args) => interpret::run(&open()?, args.into()),
        Command::Purge(args) => purge::purge(&open()?, &args),
        Command::Verify(args) => maintenance::verify(globals, &args),
        Command::Stats(args) => maintenance::stats(&open()?, &args),
        Command::Backup(args) => maintenance::backup(&open()?, &args),
        Command::Migrate(args) => migrate::migrate(globals, &args),
        Command::Pack(args) => pack::pack(&open()?, &args),
        Command::Export(args) => export::export(&open()?, &args),
        Command::Import(args) => import::import(globals, &args),
        Command::Sync(args) => sync::sync(globals, &args),
        Command::Serve(args) => serve::serve(globals, args),
        Command::Mcp(args) => mcp::mcp(globals, args),
        Command::Acp(args) => acp::acp(globals, args),
        Command::Token(args) => token::token(globals, args),
        Command::Config(args) => config::config(globals, &args),
        Command::Completions(args) => completions::completions(globals, &args),
        Command::Manual(args) => manual::manual(globals, &args),
    }
}
