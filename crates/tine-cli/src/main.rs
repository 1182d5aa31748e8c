//! The `tine` command. Everything it does is in the library beside it.

fn main() -> std::process::ExitCode {
    tine_cli::run(std::env::args_os().collect())
}
