//! What is set once and not typed each time: the file `tine.toml`.
//!
//! Invariants:
//!
//! - An argument counts more than the environment, the environment more than a file, and the
//!   user's file more than the one in the store's folder.
//! - What nobody knows is refused, with the file and the line: a misspelt setting must not be a
//!   missing one. A value that cannot be used is refused by its key.
//! - No key of a model is ever read here, let alone shown: files name the variable that holds it.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tine_analysis::{About, Account, Finding, Interpreter, Material};
use tine_core::json::Object;
use tine_core::{Json, Kind};
use tine_engine::{Interpreters, RULES};
use tine_llm::{Model, ModelInterpreter, Provider};

use crate::failure::{Failure, Result};
use crate::user_dirs;

/// The name of the file, wherever it lies.
const FILE: &str = "tine.toml";

/// The largest file that is read.
const FILE_BYTES: u64 = 1 << 20;

/// The model that is built in, and only repeats what it is told.
pub(crate) const ECHO: &str = "echo";

/// Names that a model cannot have: they stand for something else.
const TAKEN: [&str; 3] = [RULES, "agent", ECHO];

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    /// An argument.
    Argument(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// A file.
    File(PathBuf),
    /// Nobody has set it.
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

/// The first of an argument, a variable and a file that sets something. An empty variable sets
/// nothing.
pub(crate) fn chosen(
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

/// Everything that files set.
#[derive(Clone, Debug, Default)]
pub(crate) struct CliSettings {
    /// The files that were read, the one that counts more first.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) store: Option<Setting<PathBuf>>,
    pub(crate) server: Option<Setting<String>>,
    pub(crate) token_file: Option<Setting<PathBuf>>,
    pub(crate) project: Option<Setting<String>>,
    pub(crate) actor: Option<Setting<String>>,
    pub(crate) listen: Option<Setting<String>>,
    pub(crate) interpreter: Option<Setting<String>>,
    pub(crate) models: BTreeMap<String, Setting<Provider>>,
}

/// A file as it is written.
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
    models: BTreeMap<String, tine_llm::Settings>,
}

/// The table `[interpret]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InterpretTable {
    default: Option<String>,
}

impl CliSettings {
    /// Reads the user's file: the one that is named, or the one in the user's folder if there
    /// is one.
    pub(crate) fn of_user(named: Option<&Path>) -> Result<CliSettings> {
        let mut settings = CliSettings::default();
        let Some(file) = user_file(named)? else { return Ok(settings) };
        let there = settings.add(&file.value, false)?;
        if !there && file.origin != SettingOrigin::Default {
            let why = format!("there is no file of settings {}", file.value.display());
            return Err(Failure::refused(Kind::NotFound, why));
        }
        Ok(settings)
    }

    /// Reads the file in a store's folder too, if there is one. What is set already stays.
    pub(crate) fn add_store(&mut self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        let same = |known: &PathBuf| match (known.canonicalize(), path.canonicalize()) {
            (Ok(known), Ok(path)) => known == path,
            _ => false,
        };
        if !self.files.iter().any(same) {
            self.add(&path, true)?;
        }
        Ok(())
    }

    /// Adds what a file sets and nothing has set yet; answers whether the file is there.
    fn add(&mut self, path: &Path, of_store: bool) -> Result<bool> {
        let Some(text) = read(path, of_store)? else { return Ok(false) };
        let written: SettingsFile = toml::from_str(&text).map_err(|error| {
            let place = error.span().map_or(0, |span| span.start);
            unusable(path, &text, place, error.message())
        })?;
        let wrong =
            |key: &str, why: &str| Failure::invalid(format!("{}: `{key}` {why}", path.display()));
        let elsewhere = "says where the store is, and cannot stand in the store's own folder";
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
                .map_err(|error| Failure::invalid(format!("{}: {error}", path.display())))?;
            if TAKEN.contains(&name.as_str()) {
                let key = format!("models.{name}");
                return Err(wrong(&key, "has a name that is taken; give it another"));
            }
            let origin = SettingOrigin::File(path.to_owned());
            self.models.entry(name).or_insert(Setting { value: provider, origin });
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
            fill(place, path, value);
        }
        // Paths in a file are those of somebody who looks at the file.
        let beside = path.parent().unwrap_or(Path::new(""));
        let paths = [
            ("store", &mut self.store, written.store),
            ("token_file", &mut self.token_file, written.token_file),
        ];
        for (key, place, value) in paths {
            if value.as_ref().is_some_and(|value| value.as_os_str().is_empty()) {
                return Err(wrong(key, "is empty; leave it out instead"));
            }
            fill(place, path, value.map(|value| beside.join(value)));
        }
        self.files.push(path.to_owned());
        Ok(true)
    }

    /// Who answers: a model that is configured, or the one that is built in.
    pub(crate) fn model(&self, name: &str) -> Result<tine_llm::reply::Model> {
        if name == ECHO {
            return Ok(tine_llm::reply::Model::Echo);
        }
        let Some(set) = self.models.get(name) else {
            let known: Vec<&str> = self.models.keys().map(String::as_str).chain([ECHO]).collect();
            let why = format!("there is no model `{name}`; there is {}", known.join(", "));
            return Err(Failure::refused(Kind::NotFound, why));
        };
        let model = Model::new(set.value.clone());
        let model = model.map_err(|error| Failure::invalid(error.to_string()))?;
        Ok(tine_llm::reply::Model::Provider(model))
    }

    /// The interpreters that can be asked: the rules, and each model.
    pub(crate) fn interpreters(&self) -> Result<Interpreters> {
        let mut interpreters = Interpreters::rules();
        for (name, model) in &self.models {
            interpreters = interpreters.with(match Model::new(model.value.clone()) {
                Ok(asked) => Arc::new(ModelInterpreter::new(asked).named(name)),
                Err(error) => Arc::new(Unusable::of(&model.value, error.to_string())),
            });
        }
        let Some(default) = &self.interpreter else { return Ok(interpreters) };
        interpreters.by_default(&default.value).map_err(|error| {
            Failure::invalid(format!("{}: `interpret.default`: {error}", default.origin))
        })
    }
}

/// A model that cannot be asked on this machine. That fails the runs that ask it, and no other
/// command.
struct Unusable {
    about: About,
    why: String,
}

impl Unusable {
    fn of(provider: &Provider, why: String) -> Self {
        let about = About {
            name: provider.name().to_owned(),
            version: String::new(),
            kind: tine_analysis::Kind::Model,
            provider: Some(provider.name().to_owned()),
            model: Some(provider.model().to_owned()),
            parameters: Json::Object(Object::new()),
            seed: provider.seed(),
        };
        Unusable { about, why }
    }

    fn fail<T>(&self) -> std::result::Result<T, tine_analysis::Failure> {
        Err(tine_analysis::Failure { message: self.why.clone(), transient: false })
    }
}

impl Interpreter for Unusable {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn interpret(
        &self,
        _: &Material<'_>,
        _: &mut Account,
    ) -> std::result::Result<Vec<Finding>, tine_analysis::Failure> {
        self.fail()
    }

    fn replay(
        &self,
        _: &Material<'_>,
        _: Option<&[u8]>,
    ) -> std::result::Result<Vec<Finding>, tine_analysis::Failure> {
        self.fail()
    }
}

fn fill<T>(place: &mut Option<Setting<T>>, path: &Path, value: Option<T>) {
    if let (None, Some(value)) = (&place, value) {
        *place = Some(Setting { value, origin: SettingOrigin::File(path.to_owned()) });
    }
}

/// The user's file, whether it is there or not, and who says so.
pub(crate) fn user_file(named: Option<&Path>) -> Result<Option<Setting<PathBuf>>> {
    if let Some(path) = named {
        if path.as_os_str().is_empty() {
            return Err(Failure::invalid("--config is empty; give a file"));
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
    Ok(folder.map(|folder| Setting { value: folder.join(FILE), origin }))
}

/// The text of a file, if it is there. Of a store's folder that cannot be looked into the store
/// itself tells.
fn read(path: &Path, of_store: bool) -> Result<Option<String>> {
    let unreadable = |error: io::Error| {
        let kind =
            if error.kind() == io::ErrorKind::NotFound { Kind::NotFound } else { Kind::Invalid };
        Failure::refused(kind, format!("{} cannot be read: {error}", path.display()))
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
    if found.len() > FILE_BYTES {
        let why = format!("{} is too large for a file of settings", path.display());
        return Err(Failure::refused(Kind::TooLarge, why));
    }
    fs::read_to_string(path).map(Some).map_err(unreadable)
}

/// A refusal with the file, the line and, where a value is wrong, its key. The line itself is
/// not repeated: whoever puts a key where it does not belong must not find it in a log.
fn unusable(path: &Path, text: &str, place: usize, why: &str) -> Failure {
    let before = text.get(..place).unwrap_or(text);
    let number = before.matches('\n').count() + 1;
    let why = why.trim().replace('\n', "; ");
    let key = key_at(text, number).filter(|_| !why.starts_with("unknown field"));
    let key = key.map_or(String::new(), |key| format!("`{key}`: "));
    Failure::invalid(format!("{}, line {number}: {key}{why}", path.display()))
}

/// The key that is set on a line, with the table that it stands in.
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
