//! Settings files: `tine.toml`.
//!
//! Invariants:
//!
//! - Arguments override the environment, the environment overrides files, and the user's file
//!   overrides the one in the store's folder.
//! - Unknown keys are refused with file and line, so that a misspelt setting is not silently
//!   ignored. Invalid values are refused by key.
//! - API keys of models are never read or shown here: files name the variable that holds them.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tine_analysis::{Account, Finding, Interpreter, InterpreterInfo, Material};
use tine_api::{ModelPrice, Prices};
use tine_core::json::Object;
use tine_core::{ErrorKind, Json};
use tine_engine::{Interpreters, RULES};
use tine_llm::{Model, ModelInterpreter, Provider};

use crate::command_error::{CommandError, Result};
use crate::user_dirs;

/// Name of a settings file.
const FILE_NAME: &str = "tine.toml";

/// Maximum size of a settings file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The built-in model, which repeats its input.
pub(crate) const ECHO: &str = "echo";

/// Names that a configured model cannot have.
const RESERVED_NAMES: [&str; 3] = [RULES, "agent", ECHO];

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    Argument(&'static str),
    /// An environment variable.
    Variable(&'static str),
    File(PathBuf),
    Default,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Argument(name) | SettingOrigin::Variable(name) => f.write_str(name),
            SettingOrigin::File(path) => write!(f, "{}", path.display()),
            SettingOrigin::Default => f.write_str("default"),
        }
    }
}

/// A setting and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: SettingOrigin,
}

/// Returns the value of the argument, the environment variable or the file, in this order of
/// precedence. An empty variable counts as unset.
pub(crate) fn by_precedence(
    argument: (&'static str, Option<String>),
    variable: &'static str,
    file: Option<&Setting<String>>,
) -> Option<Setting<String>> {
    if let (name, Some(value)) = argument {
        return Some(Setting { value, origin: SettingOrigin::Argument(name) });
    }
    if let Ok(value) = env::var(variable)
        && !value.is_empty()
    {
        return Some(Setting { value, origin: SettingOrigin::Variable(variable) });
    }
    file.cloned()
}

/// The merged settings of all files.
#[derive(Clone, Debug, Default)]
pub(crate) struct CliSettings {
    /// The files that were read, highest precedence first.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) store: Option<Setting<PathBuf>>,
    pub(crate) server: Option<Setting<String>>,
    pub(crate) token_file: Option<Setting<PathBuf>>,
    pub(crate) project: Option<Setting<String>>,
    pub(crate) actor: Option<Setting<String>>,
    pub(crate) listen: Option<Setting<String>>,
    pub(crate) interpreter: Option<Setting<String>>,
    pub(crate) models: BTreeMap<String, Setting<Provider>>,
    pub(crate) prices: BTreeMap<String, Setting<ModelPrice>>,
}

/// The contents of one settings file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    store: Option<PathBuf>,
    server: Option<String>,
    token_file: Option<PathBuf>,
    project: Option<String>,
    actor: Option<String>,
    listen: Option<String>,
    interpret: Option<InterpretTable>,
    #[serde(default)]
    models: BTreeMap<String, tine_llm::ProviderSettings>,
    #[serde(default)]
    prices: BTreeMap<String, ModelPrice>,
}

/// The table `[interpret]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InterpretTable {
    default: Option<String>,
}

impl CliSettings {
    /// Loads the user's settings: the named file, or the default file if it exists.
    pub(crate) fn load_user_file(named: Option<&Path>) -> Result<CliSettings> {
        let mut settings = CliSettings::default();
        let Some(file) = user_file(named)? else { return Ok(settings) };
        let there = settings.load_file(&file.value, false)?;
        if !there && file.origin != SettingOrigin::Default {
            let why = format!("the settings file {} does not exist", file.value.display());
            return Err(CommandError::refused(ErrorKind::NotFound, why));
        }
        Ok(settings)
    }

    /// Loads the file in a store's folder, if it exists. Values that are already set stay.
    pub(crate) fn load_store_file(&mut self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE_NAME);
        let same = |loaded: &PathBuf| match (loaded.canonicalize(), path.canonicalize()) {
            (Ok(loaded), Ok(path)) => loaded == path,
            _ => false,
        };
        if !self.files.iter().any(same) {
            self.load_file(&path, true)?;
        }
        Ok(())
    }

    /// Adds the settings of a file that are not yet set. Returns whether the file exists.
    fn load_file(&mut self, path: &Path, of_store: bool) -> Result<bool> {
        let Some(text) = read(path, of_store)? else { return Ok(false) };
        self.add(path, &text, of_store)?;
        Ok(true)
    }

    /// Adds the settings of a file's text that are not yet set.
    fn add(&mut self, path: &Path, text: &str, of_store: bool) -> Result<()> {
        let written: SettingsFile = toml::from_str(text).map_err(|error| {
            let place = error.span().map_or(0, |span| span.start);
            parse_error(path, text, place, error.message())
        })?;
        let wrong = |key: &str, why: &str| {
            CommandError::invalid(format!("{}: `{key}` {why}", path.display()))
        };
        let elsewhere = "selects a store, and is not allowed in the folder of a store";
        let misplaced = [
            ("store", written.store.is_some()),
            ("server", written.server.is_some()),
            ("token_file", written.token_file.is_some()),
        ];
        if let Some((key, _)) = misplaced.iter().find(|(_, set)| *set && of_store) {
            return Err(wrong(key, elsewhere));
        }
        if written.store.is_some() && written.server.is_some() {
            return Err(wrong("server", "and `store` are both set; leave one out"));
        }
        for (name, model) in written.models {
            let provider = Provider::new(&name, model)
                .map_err(|error| CommandError::invalid(format!("{}: {error}", path.display())))?;
            if RESERVED_NAMES.contains(&name.as_str()) {
                let key = format!("models.{name}");
                return Err(wrong(&key, "has a reserved name; choose another"));
            }
            let origin = SettingOrigin::File(path.to_owned());
            self.models.entry(name).or_insert(Setting { value: provider, origin });
        }
        for (name, price) in written.prices {
            if name.is_empty() || !price.is_valid() {
                let key = format!("prices.{name}");
                return Err(wrong(&key, "needs a model's name and dollars for a million tokens"));
            }
            let origin = SettingOrigin::File(path.to_owned());
            self.prices.entry(name).or_insert(Setting { value: price, origin });
        }
        let texts = [
            ("server", &mut self.server, written.server),
            ("project", &mut self.project, written.project),
            ("actor", &mut self.actor, written.actor),
            ("listen", &mut self.listen, written.listen),
            (
                "interpret.default",
                &mut self.interpreter,
                written.interpret.and_then(|it| it.default),
            ),
        ];
        for (key, place, value) in texts {
            if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
                return Err(wrong(key, "is empty; leave it out instead"));
            }
            set_if_unset(place, path, value);
        }
        // Paths in a file are relative to the file.
        let beside = path.parent().unwrap_or(Path::new(""));
        let paths = [
            ("store", &mut self.store, written.store),
            ("token_file", &mut self.token_file, written.token_file),
        ];
        for (key, place, value) in paths {
            if value.as_ref().is_some_and(|value| value.as_os_str().is_empty()) {
                return Err(wrong(key, "is empty; leave it out instead"));
            }
            set_if_unset(place, path, value.map(|value| beside.join(value)));
        }
        self.files.push(path.to_owned());
        Ok(())
    }

    /// Returns a configured model, or the built-in one.
    pub(crate) fn model(&self, name: &str) -> Result<tine_llm::reply::Responder> {
        if name == ECHO {
            return Ok(tine_llm::reply::Responder::Echo);
        }
        let Some(set) = self.models.get(name) else {
            let names: Vec<&str> = self.models.keys().map(String::as_str).chain([ECHO]).collect();
            let why = format!("there is no model `{name}`; expected one of {}", names.join(", "));
            return Err(CommandError::refused(ErrorKind::NotFound, why));
        };
        let model = Model::new(set.value.clone());
        let model = model.map_err(|error| CommandError::invalid(error.to_string()))?;
        Ok(tine_llm::reply::Responder::Provider(model))
    }

    /// Returns the prices that estimate costs.
    pub(crate) fn prices(&self) -> Prices {
        Prices(self.prices.iter().map(|(name, set)| (name.clone(), set.value)).collect())
    }

    /// Returns the available interpreters: the rules and each configured model.
    pub(crate) fn interpreters(&self) -> Result<Interpreters> {
        let mut interpreters = Interpreters::rules();
        for (name, model) in &self.models {
            interpreters = interpreters.with(match Model::new(model.value.clone()) {
                Ok(usable) => Arc::new(ModelInterpreter::new(usable).named(name)),
                Err(error) => Arc::new(UnavailableModel::of(&model.value, error.to_string())),
            });
        }
        let Some(default) = &self.interpreter else { return Ok(interpreters) };
        interpreters.by_default(&default.value).map_err(|error| {
            CommandError::invalid(format!("{}: `interpret.default`: {error}", default.origin))
        })
    }
}

/// Stands for a model that cannot be used on this machine. Only runs that use it fail.
struct UnavailableModel {
    about: InterpreterInfo,
    why: String,
}

impl UnavailableModel {
    fn of(provider: &Provider, why: String) -> Self {
        let about = InterpreterInfo {
            name: provider.name().to_owned(),
            version: String::new(),
            kind: tine_analysis::InterpreterKind::Model,
            provider: Some(provider.name().to_owned()),
            model: Some(provider.model().to_owned()),
            parameters: Json::Object(Object::new()),
            seed: provider.seed(),
        };
        UnavailableModel { about, why }
    }

    fn fail<T>(&self) -> std::result::Result<T, tine_analysis::InterpreterFailure> {
        Err(tine_analysis::InterpreterFailure { message: self.why.clone(), transient: false })
    }
}

impl Interpreter for UnavailableModel {
    fn about(&self) -> InterpreterInfo {
        self.about.clone()
    }

    fn interpret(
        &self,
        _: &Material<'_>,
        _: &mut Account,
    ) -> std::result::Result<Vec<Finding>, tine_analysis::InterpreterFailure> {
        self.fail()
    }

    fn replay(
        &self,
        _: &Material<'_>,
        _: Option<&[u8]>,
    ) -> std::result::Result<Vec<Finding>, tine_analysis::InterpreterFailure> {
        self.fail()
    }
}

/// Checks the text of a user's settings file.
pub(crate) fn check(path: &Path, text: &str) -> Result<()> {
    CliSettings::default().add(path, text, false)
}

fn set_if_unset<T>(place: &mut Option<Setting<T>>, path: &Path, value: Option<T>) {
    if let (None, Some(value)) = (&place, value) {
        *place = Some(Setting { value, origin: SettingOrigin::File(path.to_owned()) });
    }
}

/// Returns the path of the user's file, whether or not it exists, and its origin.
pub(crate) fn user_file(named: Option<&Path>) -> Result<Option<Setting<PathBuf>>> {
    if let Some(path) = named {
        if path.as_os_str().is_empty() {
            return Err(CommandError::invalid("--config is empty; give a file"));
        }
        return Ok(Some(Setting {
            value: path.to_owned(),
            origin: SettingOrigin::Argument("--config"),
        }));
    }
    if let Some(path) = env::var_os("TINE_CONFIG").filter(|path| !path.is_empty()) {
        let origin = SettingOrigin::Variable("TINE_CONFIG");
        return Ok(Some(Setting { value: path.into(), origin }));
    }
    let folder = user_dirs::config_folder();
    let origin = SettingOrigin::Default;
    Ok(folder.map(|folder| Setting { value: folder.join(FILE_NAME), origin }))
}

/// Reads a file, if it exists. A store's folder without read permission is skipped: opening the
/// store reports it.
fn read(path: &Path, of_store: bool) -> Result<Option<String>> {
    let unreadable = |error: io::Error| {
        let kind = if error.kind() == io::ErrorKind::NotFound {
            ErrorKind::NotFound
        } else {
            ErrorKind::Invalid
        };
        CommandError::refused(kind, format!("{} cannot be read: {error}", path.display()))
    };
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) if of_store && error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    };
    if found.len() > MAX_FILE_BYTES {
        let why = format!("{} is too large for a settings file", path.display());
        return Err(CommandError::refused(ErrorKind::TooLarge, why));
    }
    fs::read_to_string(path).map(Some).map_err(unreadable)
}

/// Creates an error with the file, the line and, for an invalid value, its key. The line itself is
/// not repeated, because it may contain a misplaced secret.
fn parse_error(path: &Path, text: &str, place: usize, why: &str) -> CommandError {
    let before = text.get(..place).unwrap_or(text);
    let number = before.matches('\n').count() + 1;
    let why = why.trim().replace('\n', "; ");
    let key = key_at(text, number).filter(|_| !why.starts_with("unknown field"));
    let key = key.map_or(String::new(), |key| format!("`{key}`: "));
    CommandError::invalid(format!("{}, line {number}: {key}{why}", path.display()))
}

/// Returns the key that a line sets, prefixed with its table.
fn key_at(text: &str, number: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(number).map(str::trim).collect();
    let (key, _) = lines.last()?.split_once('=')?;
    let header = lines.iter().rev().find(|line| line.starts_with('['));
    let table = header.and_then(|line| line.strip_prefix('[')?.split(']').next());
    let key = key.trim();
    Some(match table {
        Some(table) => format!("{}.{key}", table.trim()),
        None => key.to_owned(),
    })
}
