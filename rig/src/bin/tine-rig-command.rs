//! The `tine` command under another name: the very program, built together with the rig, so that
//! the rig never torments one of an earlier build.

fn main() -> std::process::ExitCode {
    tine_cli::run(std::env::args_os().collect())
}
