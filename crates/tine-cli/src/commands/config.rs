//! `tine config`: shows the settings in effect, and sets those of the user's file.

use std::env;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use tine_core::{ErrorKind, ProjectId};
use tine_engine::RULES;
use tine_llm::Provider;

use super::host_files;
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
Options override environment variables, these override the user's tine.toml, and that overrides \
the tine.toml in the folder of the store. An example:

  store = \"/var/lib/tine\"          or server = \"http://127.0.0.1:8000\" and token_file = \"…\"
  project = \"default\"
  actor = \"ada\"
  listen = \"127.0.0.1:8000\"        address of `tine serve`

  [interpret]
  default = \"local\"                interpreter to use by default

  [models.local]                   see docs/models.md
  kind = \"ollama\"
  model = \"llama3.2\"

API keys are never in a file: `key_env` names the environment variable that holds one.

Examples:
  tine config
  tine config get actor
  tine config set actor ada
  tine config path")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    subcommand: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// List the settings in effect and where each comes from
    List,
    /// Print one setting in effect
    Get {
        /// Name of the setting, such as `actor`
        name: String,
    },
    /// Set a setting in the user's file
    Set {
        /// Name of the setting, such as `actor`
        name: String,
        /// New value
        value: String,
    },
    /// Remove a setting from the user's file
    Unset {
        /// Name of the setting, such as `actor`
        name: String,
    },
    /// Print the path of the user's file
    Path,
}

impl ConfigArgs {
    /// Runs the subcommands that work even if the settings cannot be read.
    pub(crate) fn run_without_settings(&self, globals: &Globals) -> Option<Result<()>> {
        match &self.subcommand {
            Some(ConfigCommand::Path) => Some(path(globals)),
            Some(ConfigCommand::Set { name, value }) => Some(change(globals, name, Some(value))),
            Some(ConfigCommand::Unset { name }) => Some(change(globals, name, None)),
            _ => None,
        }
    }
}

/// Settings that `get` and `set` know.
const NAMES: [&str; 7] =
    ["store", "server", "token_file", "project", "actor", "listen", "interpret.default"];

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

fn path(globals: &Globals) -> Result<()> {
    #[derive(Serialize)]
    struct ConfigPathDocument {
        path: String,
        from: String,
        exists: bool,
    }
    let screen = Screen::new(globals);
    let file = user_file(globals)?;
    let (path, from) = (file.value.display().to_string(), file.origin.to_string());
    if screen.json {
        return screen.document(&ConfigPathDocument { path, from, exists: file.value.exists() });
    }
    screen.line(&path)
}

pub(crate) fn config(globals: &Globals, args: &ConfigArgs) -> Result<()> {
    match &args.subcommand {
        Some(ConfigCommand::Get { name }) => get(globals, name),
        _ => list(globals),
    }
}

fn check_name(name: &str) -> Result<()> {
    if NAMES.contains(&name) {
        return Ok(());
    }
    let why = match name.starts_with("models.") {
        true => {
            "models are set in the file itself; `tine config path` prints where it is".to_owned()
        }
        false => format!("there is no setting `{name}`; expected one of {}", NAMES.join(", ")),
    };
    Err(CommandError::invalid(why))
}

fn get(globals: &Globals, name: &str) -> Result<()> {
    check_name(name)?;
    let screen = Screen::new(globals);
    let found = match name {
        "token_file" => globals.settings.token_file.as_ref().map(|set| SettingDocument {
            name: "token_file",
            value: Some(set.value.display().to_string()),
            from: set.origin.to_string(),
        }),
        _ => effective(globals)?.into_iter().find(|it| it.name == name),
    };
    let Some((found, value)) = found.and_then(|it| Some((it.value.clone()?, it))) else {
        let why = format!("`{name}` is not set; `tine config set {name} VALUE` sets it");
        return Err(CommandError::refused(ErrorKind::NotFound, why));
    };
    if screen.json {
        return screen.document(&value);
    }
    screen.line(&visible(&found))
}

/// Sets or removes a setting in the user's file, which keeps its comments and layout.
fn change(globals: &Globals, name: &str, value: Option<&str>) -> Result<()> {
    check_name(name)?;
    let file = user_file(globals)?;
    let screen = Screen::new(globals);
    let edited = host_files::edit_file(&file.value, |text| {
        let failed = |why| CommandError::invalid(format!("{}: {why}", file.value.display()));
        let edited = host_files::toml::set_key(text, name, value).map_err(failed)?;
        settings::check(&file.value, &edited)?;
        Ok(edited)
    })?;
    if screen.json {
        let document = serde_json::json!({ "name": name, "value": value, "changed": edited });
        return screen.document(&document);
    }
    let shown = file.value.display();
    screen.line(&match (value, edited) {
        (Some(_), _) => format!("`{name}` is set in {shown}"),
        (None, true) => format!("`{name}` is removed from {shown}"),
        (None, false) => format!("`{name}` is not set in {shown}"),
    })
}

fn user_file(globals: &Globals) -> Result<Setting<PathBuf>> {
    settings::user_file(globals.config.as_deref())?.ok_or_else(|| {
        CommandError::invalid("the home folder is unknown; name a file with --config")
    })
}

fn list(globals: &Globals) -> Result<()> {
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
