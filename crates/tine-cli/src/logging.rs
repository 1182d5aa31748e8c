//! What commands that go on for long log, on standard error.

use clap::ValueEnum;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// What went wrong on this side.
    Error,
    /// Also what is odd.
    Warn,
    /// Also beginning and end.
    Info,
    /// Also every request.
    Debug,
}

impl Level {
    fn most(self) -> tracing::Level {
        match self {
            Level::Error => tracing::Level::ERROR,
            Level::Warn => tracing::Level::WARN,
            Level::Info => tracing::Level::INFO,
            Level::Debug => tracing::Level::DEBUG,
        }
    }

    /// The SDK of MCP takes hosts that err or go away for errors of this side; what really goes
    /// wrong here is logged by the tools themselves.
    fn whose(self) -> Targets {
        let all = Targets::new().with_default(self.most());
        match self {
            Level::Debug => all,
            _ => all.with_target("rmcp", tracing::level_filters::LevelFilter::OFF),
        }
    }
}

/// Logs as JSON, one record a line.
pub(crate) fn as_json(level: Level) {
    let format = fmt().json().with_max_level(level.most()).with_writer(std::io::stderr);
    format.finish().with(level.whose()).init();
}

/// Logs as lines for people.
pub(crate) fn as_lines(level: Level) {
    let format = fmt().with_max_level(level.most()).with_ansi(false).with_writer(std::io::stderr);
    format.finish().with(level.whose()).init();
}
