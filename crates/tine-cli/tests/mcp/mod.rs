//! `tine mcp`, as a host starts it.

mod install;
mod stdio;
