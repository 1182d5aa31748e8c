//! Where a database is, and how its store is set up.
//!
//! An address is a URL of PostgreSQL, `postgres://user@host:port,host:port/database?…`, with
//! options of our own among its parameters:
//!
//! | parameter | meaning |
//! | --- | --- |
//! | `tine_schema` | the schema that holds the store's tables; `tine` without it |
//! | `tine_partitions` | into how many parts the tables of a *new* store are partitioned; 0, not at all, without it |
//! | `tine_connections` | connections at most; 16 without it |
//!
//! `sslmode` and `sslrootcert` mean what they mean to PostgreSQL's own programs ([`tls`]).

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tine_store::{Result, StoreError};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::tls;

/// How long one host may take to answer and to say that it can be written to.
pub(crate) const HOST_DEADLINE: Duration = Duration::from_secs(3);

/// The schema without another word.
const SCHEMA: &str = "tine";

/// Connections without another word.
const CONNECTIONS: usize = 16;

/// The most partitions that a store can be made with.
const MOST_PARTITIONS: u32 = 1_024;

/// Where a database is.
#[derive(Clone)]
pub struct Address {
    hosts: Vec<Config>,
    tls: MakeRustlsConnect,
    schema: String,
    partitions: u32,
    connections: usize,
    shown: String,
}

impl Address {
    /// Whether a text is meant to be the address of a database.
    pub fn is_meant(text: &str) -> bool {
        ["postgres:", "postgresql:"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads an address. A password that it lacks is taken from `PGPASSWORD`.
    pub fn parse(text: &str) -> Result<Address> {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut schema, mut partitions, mut connections) = (SCHEMA.to_owned(), 0, CONNECTIONS);
        let (mut mode, mut roots) = (tls::Mode::default(), None);
        let mut theirs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("tine_schema", name)) => schema = schema_name(name)?,
                Some(("tine_partitions", count)) => {
                    partitions = within("tine_partitions", count, 0, MOST_PARTITIONS)?;
                }
                Some(("tine_connections", count)) => {
                    connections = within("tine_connections", count, 2, 1_000)? as usize;
                }
                Some(("sslmode", word)) => {
                    mode = tls::Mode::parse(word).ok_or_else(|| {
                        wrong(
                            "`sslmode` is `disable`, `prefer`, `require`, `verify-ca` or \
                             `verify-full`",
                        )
                    })?;
                }
                Some(("sslrootcert", file)) => {
                    let file = percent_decode_str(file).decode_utf8();
                    let file = file.map_err(|_| wrong("`sslrootcert` is not UTF-8"))?;
                    roots = Some(PathBuf::from(&*file));
                }
                _ => theirs.push(pair),
            }
        }
        let theirs = theirs.join("&");
        let url = if theirs.is_empty() { base.to_owned() } else { format!("{base}?{theirs}") };
        let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let source = std::error::Error::source(&error);
            let why = source.map_or_else(|| error.to_string(), ToString::to_string);
            wrong(format!("{why}; write postgres://user@host:port/database"))
        })?;
        let hosts = single_hosts(&config, &schema, mode)?;
        let tls = tls::connector(mode, roots.as_deref()).map_err(wrong)?;
        let shown = shown(&config, &schema);
        Ok(Address { hosts, tls, schema, partitions, connections, shown })
    }

    /// One configuration for each host.
    pub(crate) fn hosts(&self) -> &[Config] {
        &self.hosts
    }

    pub(crate) fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }

    /// The schema that holds the tables.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn partitions(&self) -> u32 {
        self.partitions
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

/// Without the password.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

fn wrong(why: impl Into<String>) -> StoreError {
    StoreError::Address { why: why.into() }
}

fn within(name: &str, text: &str, least: u32, most: u32) -> Result<u32> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| wrong(format!("`{name}` is a number from {least} to {most}")))
}

/// Names that need no quotes, so that nobody is surprised by them elsewhere.
fn schema_name(name: &str) -> Result<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if !begins || !name.chars().all(plain) || name.len() > 63 || name.starts_with("pg_") {
        return Err(wrong(
            "`tine_schema` is made of small letters, digits and underscores, at most 63, and does \
             not begin with a digit or `pg_`",
        ));
    }
    Ok(name.to_owned())
}

fn single_hosts(config: &Config, schema: &str, mode: tls::Mode) -> Result<Vec<Config>> {
    if config.get_hosts().is_empty() {
        return Err(wrong("it names no host; write postgres://user@host:port/database"));
    }
    let ports = config.get_ports();
    let each = config.get_hosts().iter().enumerate().map(|(nth, host)| {
        let mut one = Config::new();
        match host {
            Host::Tcp(name) => one.host(name),
            #[cfg(unix)]
            Host::Unix(folder) => one.host_path(folder),
        };
        one.port(ports.get(nth).or(ports.first()).copied().unwrap_or(5432));
        if let Some(user) = config.get_user() {
            one.user(user);
        }
        match config.get_password() {
            Some(password) => drop(one.password(password)),
            None => {
                if let Ok(password) = std::env::var("PGPASSWORD") {
                    one.password(password);
                }
            }
        }
        if let Some(name) = config.get_dbname() {
            one.dbname(name);
        }
        let theirs = config.get_options().unwrap_or_default();
        one.options(format!("{theirs} -c search_path={schema}").trim_start());
        one.application_name(config.get_application_name().unwrap_or("tine"));
        one.connect_timeout(HOST_DEADLINE);
        one.keepalives_idle(Duration::from_secs(10));
        one.ssl_mode(mode.of_the_line());
        one.channel_binding(config.get_channel_binding());
        one.target_session_attrs(TargetSessionAttrs::ReadWrite);
        one
    });
    Ok(each.collect())
}

fn shown(config: &Config, schema: &str) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .zip(config.get_ports().iter().map(Some).chain(std::iter::repeat(None)))
        .map(|(host, port)| {
            let name = match host {
                Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                Host::Unix(folder) => folder.display().to_string(),
            };
            port.map_or_else(|| name.clone(), |port| format!("{name}:{port}"))
        })
        .collect();
    let database = config.get_dbname().unwrap_or_default();
    let schema = if schema == SCHEMA { String::new() } else { format!("?tine_schema={schema}") };
    format!("postgres://{}/{database}{schema}", hosts.join(","))
}
