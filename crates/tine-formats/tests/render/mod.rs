//! Paths as the requests of providers.

mod budget;
mod from_the_tip;
mod golden;
mod page;
mod random;
mod rules;
mod stage;
mod valid;
