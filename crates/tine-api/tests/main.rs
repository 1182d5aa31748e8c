//! The JSON forms of answers.
