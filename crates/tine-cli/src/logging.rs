//! What commands that go on for long log, on standard error.

use clap::ValueEnum;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What went wrong on this side.
    Error,
    /// Also what is odd.
    Warn,
    /// Also beginning and end.
    Info,
    /// Also every request.
    Debug,
}

impl LogLevel {
    fn max_level(self) -> tracing::Level {
        match self {
            LogLevel::Error => tracing::Level::ERROR,
            LogLevel::Warn => tracing::Level::WARN,
            LogLevel::Info => tracing::Level::INFO,
            LogLevel::Debug => tracing::Level::DEBUG,
        }
    }

    /// The SDK of MCP takes hosts that err or go away for errors of this side; what really goes
    /// wrong here is logged by the tools themselves.
    fn targets(self) -> Targets {
        let all = Targets::new().with_default(self.max_level());
        match self {
            LogLevel::Debug => all,
            _ => all.with_target("rmcp", tracing::level_filters::LevelFilter::OFF),
        }
    }
}

/// Logs as JSON, one record a line.
pub(crate) fn as_json(level: LogLevel) {
    let format = fmt().json().with_max_level(level.max_level()).with_writer(std::io::stderr);
    format.finish().with(level.targets()).init();
}

/// Logs as lines for people.
pub(crate) fn as_lines(level: LogLevel) {
    let format =
        fmt().with_max_level(level.max_level()).with_ansi(false).with_writer(std::io::stderr);
    format.finish().with(level.targets()).init();
}
