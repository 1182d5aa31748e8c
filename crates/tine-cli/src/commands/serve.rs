//! `tine serve`: serves the store over HTTP until it is stopped.

use std::io::{self, IsTerminal};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;
use tine_core::{ErrorKind, Limits};
use tine_engine::{Engine, SystemClock, SystemEntropy};
use tine_server::{Options, Server, TokenFile, TokenRule};
use tine_store::{OpenMode, PackOptions, Store};

use crate::arguments::Globals;
use crate::command_error::{CommandError, Result};
use crate::logging::{self, LogLevel};
use crate::settings::{self, Setting, SettingOrigin};
use crate::store_location::StoreLocation;

/// Interval at which older turns are packed.
const PACK_EVERY: Duration = Duration::from_secs(60);

/// Interval at which new turns are indexed.
const INDEX_EVERY: Duration = Duration::from_secs(2);

/// File of recently viewed conversations, which is not part of the store.
const VISITED: &str = "tine.visited";

/// Threads besides those of requests: bundles, model replies, indexing.
const OTHER_THREADS: usize = 512;

/// Default address to listen on.
const LISTEN: &str = "127.0.0.1:8000";

/// Returns the address to listen on and the origin of the setting.
pub(crate) fn listen_setting(globals: &Globals, argument: Option<String>) -> Setting<String> {
    let file = globals.settings.listen.as_ref();
    settings::by_precedence(("--listen", argument), "TINE_LISTEN", file)
        .unwrap_or_else(|| Setting { value: LISTEN.to_owned(), origin: SettingOrigin::Default })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Requests need a token as soon as one exists (`tine server token create`), and always if the server
listens beyond loopback or is given a --host name.

Examples:
  tine serve                                   at http://127.0.0.1:8000
  tine serve --model claude                    let a model of tine.toml reply on the page
  tine serve --listen 0.0.0.0:8000 --host tine.example.org
  curl http://127.0.0.1:8000/api/v1/conversations")]
pub(crate) struct ServeArgs {
    /// Address to listen on [env: TINE_LISTEN] [default: 127.0.0.1:8000]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Host name to accept requests for; can be repeated. Requires a token
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Require a token also on loopback, even while none exists
    #[arg(long)]
    require_token: bool,
    /// Accept requests without a token; loopback only
    #[arg(long, conflicts_with = "require_token")]
    no_token: bool,
    /// Address or network of a reverse proxy whose X-Forwarded-For and X-Forwarded-Proto headers
    /// are believed; can be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = network)]
    trusted_proxy: Vec<IpNet>,
    /// Replace text that looks like a secret (keys, tokens, passwords in URLs) before it is recorded
    #[arg(long)]
    redact: bool,
    /// Model that replies on request, from tine.toml, or `echo`, which repeats its input; can be
    /// repeated, and the first is the default
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// Maximum requests per second and client address
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    rate: u32,
    /// Maximum concurrent requests
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    concurrency: usize,
    /// Time for running requests to finish when the server stops
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    grace: u64,
    /// Log level; logs go to standard error, as JSON Lines unless it is a terminal
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: LogLevel,
    /// Do not pack older turns in the background
    #[arg(long)]
    no_pack: bool,
}

pub(crate) fn serve(globals: &Globals, args: ServeArgs) -> Result<()> {
    globals.require_local("tine serve", "name the store to serve with --store PATH")?;
    let on_terminal = io::stderr().is_terminal();
    if on_terminal {
        logging::as_lines(args.log);
    } else {
        logging::as_json(args.log);
    }
    let named = listen_setting(globals, args.listen.clone()).value;
    let listen = address(&named)?;
    let location = StoreLocation::from_globals(globals)?;
    let store = location.open(OpenMode::Create)?;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let engine = Engine::with(Arc::clone(&store), clock, entropy, Limits::default())
        .with_interpreters(globals.settings.interpreters()?);
    let token_rule = token_rule(&args, listen)?;
    let tokens = match location.token_file() {
        Ok(file) => Some(file),
        Err(error) if token_rule == TokenRule::Always => return Err(error),
        Err(_) => None,
    };
    if !args.host.is_empty() && token_rule == TokenRule::Always {
        require_any_token(tokens.as_deref())?;
    }
    let options = Options {
        actor: globals.actor(),
        tokens,
        visited: location.companion_file(VISITED).ok(),
        token_rule,
        hosts: args.host,
        trusted_proxies: args.trusted_proxy,
        connections: connections(),
        redact: args.redact,
        models: models(globals, args.model)?,
        prices: globals.settings.prices(),
        concurrency: args.concurrency,
        rate: args.rate,
        grace: Duration::from_secs(args.grace),
        ..Options::default()
    };
    let internal = |why: String| CommandError::refused(ErrorKind::Internal, why);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // Requests that wait for the store block a thread; others must serve connections.
        .max_blocking_threads(args.concurrency.saturating_add(OTHER_THREADS))
        .build()
        .map_err(|error| internal(format!("the server cannot start: {error}")))?;
    runtime.block_on(async {
        tokio::spawn(keep_indexed(engine.clone()));
        let server = Server::bind(engine, listen, options).await.map_err(|error| {
            internal(format!("cannot listen on {named}: {error}; --listen chooses another address"))
        })?;
        let at = format!("http://{}", server.address());
        // Before the address is printed, so that the server can be stopped as soon as it is known.
        let stopped = stop_signal();
        if !on_terminal {
            tracing::info!(address = at, store = %location, "listening");
        }
        eprintln!("tine serves {location} on {at}");
        let stopper = server.stopper();
        tokio::spawn(async move {
            stopped.await;
            tracing::info!("stopping");
            stopper.stop();
        });
        if !args.no_pack {
            tokio::spawn(keep_packed(store));
        }
        server.run().await.map_err(|error| internal(format!("the server failed: {error}")))
    })
}

/// Returns when a request needs a token.
fn token_rule(args: &ServeArgs, listen: SocketAddr) -> Result<TokenRule> {
    let loopback = listen.ip().is_loopback();
    match (args.no_token, loopback) {
        (true, true) => Ok(TokenRule::Never),
        (true, false) => {
            let why = format!("--no-token is allowed on loopback only, and {listen} is not");
            Err(CommandError::invalid(format!(
                "{why}; create a token with `tine server token create`"
            )))
        }
        (false, true) if !args.require_token && args.host.is_empty() => Ok(TokenRule::IfAnyExists),
        (false, _) => Ok(TokenRule::Always),
    }
}

/// Refuses to serve other machines through a proxy while no client could authenticate.
fn require_any_token(file: Option<&Path>) -> Result<()> {
    let unreadable = |error| CommandError::invalid(format!("cannot read the tokens: {error}"));
    let tokens = file.map(TokenFile::read).transpose().map_err(unreadable)?;
    if tokens.is_some_and(|file| !file.tokens.is_empty()) {
        return Ok(());
    }
    Err(CommandError::invalid(
        "--host makes the server reachable from other machines, but no token exists; create one \
         with `tine server token create NAME`, or pass --no-token to accept every request",
    ))
}

/// Parses the value of --trusted-proxy.
fn network(text: &str) -> std::result::Result<IpNet, String> {
    tine_server::parse_network(text)
        .ok_or_else(|| format!("expected an IP address or a network like 10.0.0.0/8, got `{text}`"))
}

/// Returns the models that can reply, by name.
fn models(
    globals: &Globals,
    names: Vec<String>,
) -> Result<Vec<(String, tine_llm::reply::Responder)>> {
    let model = |name: String| {
        let model = globals.settings.model(&name)?;
        Ok((name, model))
    };
    names.into_iter().map(model).collect()
}

/// Keeps the search index up to date, so that searches have little left to index. Failures are
/// harmless, because a search updates the index itself.
async fn keep_indexed(engine: Engine) {
    loop {
        tokio::time::sleep(INDEX_EVERY).await;
        let engine = engine.clone();
        let indexed = tokio::task::spawn_blocking(move || engine.refresh_search()).await;
        match indexed {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "indexing failed"),
            Err(error) => tracing::error!(%error, "indexing met a defect"),
        }
    }
}

/// Packs older turns periodically. A failure is retried at the next interval; turns are readable
/// in either form.
async fn keep_packed(store: Arc<dyn Store>) {
    loop {
        tokio::time::sleep(PACK_EVERY).await;
        let store = Arc::clone(&store);
        let packed = tokio::task::spawn_blocking(move || store.pack(PackOptions::default())).await;
        match packed {
            Ok(Ok(packed)) if packed.turns > 0 => tracing::info!(turns = packed.turns, "packed"),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "packing failed"),
            Err(error) => tracing::error!(%error, "packing met a defect"),
        }
    }
}

/// File descriptors reserved for the store, its readers and the log.
const KEPT_DESCRIPTORS: u64 = 256;

/// Returns the maximum number of connections: the default, reduced if the system allows fewer file
/// descriptors, because the store needs some as well.
fn connections() -> usize {
    let wanted = Options::default().connections;
    #[cfg(unix)]
    let wanted = match rlimit::increase_nofile_limit(wanted as u64 + KEPT_DESCRIPTORS) {
        Ok(allowed) => {
            let left = allowed.saturating_sub(KEPT_DESCRIPTORS).max(1);
            usize::try_from(left).map_or(wanted, |left| left.min(wanted))
        }
        Err(_) => wanted,
    };
    wanted
}

fn address(text: &str) -> Result<SocketAddr> {
    let bad = |why: String| {
        CommandError::invalid(format!("expected HOST:PORT to listen on, got `{text}` ({why})"))
    };
    let mut found = text.to_socket_addrs().map_err(|error| bad(error.to_string()))?;
    found.next().ok_or_else(|| bad("the name is unknown".to_owned()))
}

/// Registers for termination signals, and returns a future that waits for one.
#[cfg(unix)]
fn stop_signal() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
async fn stop_signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
