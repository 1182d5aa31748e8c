//! The address of a database, with the options of its store.
//!
//! An address is a PostgreSQL URL, `postgres://user@host:port,host:port/database?…`, with
//! additional parameters:
//!
//! | parameter | meaning |
//! | --- | --- |
//! | `tine_schema` | the schema of the store's tables; default `tine` |
//! | `tine_partitions` | the number of partitions of a *new* store's tables; default 0, not partitioned |
//! | `tine_connections` | the maximum number of connections; default 16 |
//!
//! `sslmode` and `sslrootcert` have the same meaning as in libpq ([`tls`]).

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tine_store::{Result, StoreError};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::tls;

/// How long one host may take to accept a connection and report that it is writable.
pub(crate) const HOST_DEADLINE: Duration = Duration::from_secs(3);

const DEFAULT_SCHEMA: &str = "tine";

const DEFAULT_CONNECTIONS: usize = 16;

/// The maximum number of partitions.
const MAX_PARTITIONS: u32 = 1_024;

/// The address of a database and the options of its store.
#[derive(Clone)]
pub struct PostgresAddress {
    hosts: Vec<Config>,
    tls: MakeRustlsConnect,
    schema: String,
    partitions: u32,
    connections: usize,
    display: String,
}

impl PostgresAddress {
    /// Returns whether a text has the scheme of a PostgreSQL URL.
    pub fn is_postgres_url(text: &str) -> bool {
        ["postgres:", "postgresql:"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Parses an address. If it has no password, `PGPASSWORD` is used.
    pub fn parse(text: &str) -> Result<PostgresAddress> {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut schema, mut partitions, mut connections) =
            (DEFAULT_SCHEMA.to_owned(), 0, DEFAULT_CONNECTIONS);
        let (mut mode, mut roots) = (tls::SslVerification::default(), None);
        let mut other_parameters = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("tine_schema", name)) => schema = parse_schema(name)?,
                Some(("tine_partitions", count)) => {
                    partitions = parse_number("tine_partitions", count, 0, MAX_PARTITIONS)?;
                }
                Some(("tine_connections", count)) => {
                    connections = parse_number("tine_connections", count, 2, 1_000)? as usize;
                }
                Some(("sslmode", text)) => {
                    mode = tls::SslVerification::parse(text).ok_or_else(|| {
                        invalid(
                            "`sslmode` is `disable`, `prefer`, `require`, `verify-ca` or \
                             `verify-full`",
                        )
                    })?;
                }
                Some(("sslrootcert", file)) => {
                    let file = percent_decode_str(file).decode_utf8();
                    let file = file.map_err(|_| invalid("`sslrootcert` is not UTF-8"))?;
                    roots = Some(PathBuf::from(&*file));
                }
                _ => other_parameters.push(pair),
            }
        }
        let parameters = other_parameters.join("&");
        let url = match parameters.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{parameters}"),
        };
        let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let source = std::error::Error::source(&error);
            let why = source.map_or_else(|| error.to_string(), ToString::to_string);
            invalid(format!("{why}; write postgres://user@host:port/database"))
        })?;
        let hosts = host_configs(&config, &schema, mode)?;
        let tls = tls::connector(mode, roots.as_deref()).map_err(invalid)?;
        let display = display(&config, &schema);
        Ok(PostgresAddress { hosts, tls, schema, partitions, connections, display })
    }

    /// Returns one configuration for each host.
    pub(crate) fn hosts(&self) -> &[Config] {
        &self.hosts
    }

    pub(crate) fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }

    /// Returns the schema of the tables.
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

impl std::fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PostgresAddress").field(&self.display).finish()
    }
}

/// Omits the password.
impl std::fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.display)
    }
}

fn invalid(why: impl Into<String>) -> StoreError {
    StoreError::Address { why: why.into() }
}

fn parse_number(name: &str, text: &str, min: u32, max: u32) -> Result<u32> {
    let number = text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| invalid(format!("`{name}` is a number from {min} to {max}")))
}

/// Checks a schema name. Only names that need no quotes are allowed.
fn parse_schema(name: &str) -> Result<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if !starts_well || !name.chars().all(plain) || name.len() > 63 || name.starts_with("pg_") {
        return Err(invalid(
            "`tine_schema` is made of small letters, digits and underscores, at most 63, and does \
             not begin with a digit or `pg_`",
        ));
    }
    Ok(name.to_owned())
}

fn host_configs(config: &Config, schema: &str, mode: tls::SslVerification) -> Result<Vec<Config>> {
    if config.get_hosts().is_empty() {
        return Err(invalid("it names no host; write postgres://user@host:port/database"));
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
        let options = config.get_options().unwrap_or_default();
        one.options(format!("{options} -c search_path={schema}").trim_start());
        one.application_name(config.get_application_name().unwrap_or("tine"));
        one.connect_timeout(HOST_DEADLINE);
        one.keepalives_idle(Duration::from_secs(10));
        one.ssl_mode(mode.to_ssl_mode());
        one.channel_binding(config.get_channel_binding());
        one.target_session_attrs(TargetSessionAttrs::ReadWrite);
        one
    });
    Ok(each.collect())
}

fn display(config: &Config, schema: &str) -> String {
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
    let schema =
        if schema == DEFAULT_SCHEMA { String::new() } else { format!("?tine_schema={schema}") };
    format!("postgres://{}/{database}{schema}", hosts.join(","))
}
