//! Paths as the requests of providers.

mod budget;
mod golden;
mod page;
mod random;
mod rules;
mod stage;
mod valid;
