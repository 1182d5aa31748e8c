//! `tine acp`: an agent for an editor, over standard input and output.

use std::io;
use std::sync::Arc;

use clap::Args;
use tine_acp::{Agent, Model};
use tine_core::{Kind, Limits, ProjectId};
use tine_engine::{Call, Engine, SystemClock, SystemEntropy};
use tine_store::embedded::Mode;

use crate::arguments::Globals;
use crate::failure::{Failure, Result};
use crate::logging::{self, Level};
use crate::settings::ECHO;
use crate::store_place::StorePlace;

#[derive(Debug, Args)]
#[command(after_help = "\
An editor (Zed, JetBrains Air, Neovim …) starts this command itself and talks to it in the Agent
Client Protocol. Every session is a branch of the store and every message a turn: whatever is said
can be read, forked, searched and verified with every other command, and a session can be forked
at any message. Several may work on one store at once, beside `tine serve` and other commands.

Examples:
  tine acp                      repeat what is said, to try it out
  tine acp --model claude       let the model answer that tine.toml calls `claude`")]
pub(crate) struct AcpArgs {
    /// Who answers: a model of tine.toml, or `echo`
    #[arg(long, value_name = "NAME", default_value = ECHO)]
    model: String,
    /// What is logged on standard error
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log: Level,
}

pub(crate) fn acp(globals: &Globals, args: &AcpArgs) -> Result<()> {
    globals.only_here("tine acp", "run it where the store is")?;
    let model = model(globals, &args.model)?;
    logging::as_lines(args.log);
    let limits = Limits::default();
    let project = match globals.project() {
        Some(set) => ProjectId::new(set.value, &limits)?,
        None => ProjectId::default(),
    };
    let store = StorePlace::of(globals)?.open(Mode::Create)?;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let engine = Engine::with(store, clock, entropy, limits);
    let agent = Agent::new(engine, Call::by(globals.actor()).in_project(project), model);
    tine_acp::serve(&agent, io::stdin(), io::stdout())
        .map_err(|error| Failure::refused(Kind::Internal, format!("serving broke off: {error}")))
}

fn model(globals: &Globals, name: &str) -> Result<Model> {
    if name == ECHO {
        return Ok(Model::Echo);
    }
    let models = &globals.settings.models;
    let Some(set) = models.get(name) else {
        let known: Vec<&str> = models.keys().map(String::as_str).chain([ECHO]).collect();
        let why = format!("there is no model `{name}`; there is {}", known.join(", "));
        return Err(Failure::refused(Kind::NotFound, why));
    };
    let model = tine_models::Model::new(set.value.clone());
    Ok(Model::Provider(model.map_err(|error| Failure::invalid(error.to_string()))?))
}
