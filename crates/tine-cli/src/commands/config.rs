//! `tine config`: shows the effective settings.

use std::env;

use clap::{Args, Subcommand};
use serde::Serialize;
use tine_core::ProjectId;
use tine_engine::RULES;
use tine_llm::Provider;

use super::serve::listen_setting;
use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::knowledge_view::{row, write_rows};
use crate::settings::{self, Setting, SettingOrigin};
use crate::store_location::StoreLocation;
use crate::terminal::text::visible;
use crate::terminal::{Paging, Screen};

#[derive(Debug, Args)]
#[command(after_help = "\
Settings come from arguments, then the environment, then `tine.toml`: the user's, and the one in \
the store's folder. An example:

  store = \"/var/lib/tine\"          or server = \"http://127.0.0.1:8000\" and token_file = \"…\"
  project = \"default\"
  actor = \"ada\"
  listen = \"127.0.0.1:8000\"        where `tine serve` listens

  [interpret]
  default = \"local\"                the interpreter that is asked when none is named

  [models.local]                   as docs/models.md has it
  kind = \"ollama\"
  model = \"llama3.2\"

Keys of models are never in a file: `key_env` names the variable that holds one.

Examples:
  tine config
  tine config path
  tine config --config other.toml --json")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    subcommand: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print where the user's file is, or would be
    Path,
}

impl ConfigArgs {
    /// Returns whether the subcommand is `path`.
    pub(crate) fn is_path(&self) -> bool {
        matches!(self.subcommand, Some(ConfigCommand::Path))
    }
}

/// A setting in the JSON output.
#[derive(Serialize)]
struct SettingDocument {
    name: &'static str,
    value: Option<String>,
    from: String,
}

/// A model in the JSON output; never includes its key.
#[derive(Serialize)]
struct ModelDocument {
    name: String,
    kind: &'static str,
    model: String,
    base_url: String,
    key_env: Option<String>,
    key_is_set: Option<bool>,
    from: String,
}

#[derive(Serialize)]
struct ConfigDocument {
    files: Vec<String>,
    settings: Vec<SettingDocument>,
    models: Vec<ModelDocument>,
}

pub(crate) fn path(globals: &Globals) -> Result<()> {
    #[derive(Serialize)]
    struct ConfigPathDocument {
        path: String,
        from: String,
        exists: bool,
    }
    let screen = Screen::new(globals);
    let Some(file) = settings::user_file(globals.config.as_deref())? else {
        return Err(CommandError::invalid("no home folder is known; name a file with --config"));
    };
    let (path, from) = (file.value.display().to_string(), file.origin.to_string());
    if screen.json {
        return screen.document(&ConfigPathDocument { path, from, exists: file.value.exists() });
    }
    screen.line(&path)
}

pub(crate) fn show(globals: &Globals) -> Result<()> {
    // Validates the settings as a whole, including the default interpreter.
    globals.settings.interpreters()?;
    let document = ConfigDocument {
        files: globals.settings.files.iter().map(|it| it.display().to_string()).collect(),
        settings: effective(globals)?,
        models: globals.settings.models.values().map(model).collect(),
    };
    let screen = Screen::new(globals);
    if screen.json {
        return screen.document(&document);
    }
    screen.text(Paging::Direct, |out| {
        let mut rows = Vec::new();
        for file in &document.files {
            rows.push(row("file", visible(file)));
        }
        for setting in &document.settings {
            let value = setting.value.as_deref().unwrap_or("–");
            let from = screen.paint.dim(&format!("({})", visible(&setting.from)));
            rows.push(row(setting.name, format!("{}  {from}", visible(value))));
        }
        for model in &document.models {
            let key = match (&model.key_env, model.key_is_set) {
                (Some(name), Some(true)) => format!("key in {name}"),
                (Some(name), _) => format!("key in {name}, which is not set"),
                (None, _) => "no key".to_owned(),
            };
            let from = screen.paint.dim(&format!("({})", visible(&model.from)));
            let ModelDocument { kind, model: model_name, base_url, .. } = model;
            let model_name = visible(model_name);
            let line = format!("{kind} {model_name} at {base_url}, {key}  {from}");
            rows.push(row(&format!("models.{}", model.name), line));
        }
        write_rows(out, &screen, 0, &rows)
    })
}

fn effective(globals: &Globals) -> Result<Vec<SettingDocument>> {
    let setting = |name, set: Setting<String>| {
        let (value, from) = (Some(set.value), set.origin.to_string());
        SettingDocument { name, value, from }
    };
    let default = |value: &str| Setting { value: value.to_owned(), origin: SettingOrigin::Default };
    let mut all = Vec::new();
    match globals.server_setting()? {
        Some(server) => {
            all.push(setting("server", server));
            match globals.token_origin() {
                Some(token) => all.push(setting("token", token)),
                None => {
                    let from = SettingOrigin::Default.to_string();
                    all.push(SettingDocument { name: "token", value: None, from });
                }
            }
        }
        None => {
            let place = StoreLocation::from_globals(globals)?.to_string();
            let origin = globals.store_setting().map_or(SettingOrigin::Default, |set| set.origin);
            all.push(setting("store", Setting { value: place, origin }));
        }
    }
    let project = globals.project();
    all.push(setting("project", project.unwrap_or_else(|| default(ProjectId::default().as_str()))));
    all.push(setting("actor", globals.actor_setting()));
    all.push(setting("listen", listen_setting(globals, None)));
    let interpreter = globals.settings.interpreter.clone();
    all.push(setting("interpret.default", interpreter.unwrap_or_else(|| default(RULES))));
    Ok(all)
}

fn model(set: &Setting<Provider>) -> ModelDocument {
    let provider = &set.value;
    let key_env = provider.key_env().map(str::to_owned);
    let is_set = |name: &String| env::var_os(name).is_some_and(|key| !key.is_empty());
    ModelDocument {
        name: provider.name().to_owned(),
        kind: provider.kind().name(),
        model: provider.model().to_owned(),
        base_url: provider.base_url().to_owned(),
        key_is_set: key_env.as_ref().map(is_set),
        key_env,
        from: set.origin.to_string(),
    }
}
