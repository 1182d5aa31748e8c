//! Logging of long-running commands to standard error.

use clap::ValueEnum;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How much to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// Errors.
    Error,
    /// Errors and warnings.
    Warn,
    /// Also start and stop.
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

    /// Returns the targets to log. The MCP SDK logs misbehaving or disconnected hosts as errors;
    /// the tools log real failures themselves, so the SDK is silent below `debug`.
    fn targets(self) -> Targets {
        let all = Targets::new().with_default(self.max_level());
        match self {
            LogLevel::Debug => all,
            _ => all.with_target("rmcp", tracing::level_filters::LevelFilter::OFF),
        }
    }
}

/// Logs as JSON Lines.
pub(crate) fn as_json(level: LogLevel) {
    let format = fmt().json().with_max_level(level.max_level()).with_writer(std::io::stderr);
    format.finish().with(level.targets()).init();
}

/// Logs as plain text lines.
pub(crate) fn as_lines(level: LogLevel) {
    let format =
        fmt().with_max_level(level.max_level()).with_ansi(false).with_writer(std::io::stderr);
    format.finish().with(level.targets()).init();
}
