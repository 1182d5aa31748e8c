//! Colours, or none.

use tine_core::Role;

/// Puts colours around texts if the reader can see them.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// With colours or without.
    pub fn new(on: bool) -> Self {
        Paint { on }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// What matters least.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Titles.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Hashes.
    pub fn hash(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// Branches.
    pub fn branch(self, text: &str) -> String {
        self.wrap("1;32", text)
    }

    /// Bookmarks.
    pub fn bookmark(self, text: &str) -> String {
        self.wrap("1;35", text)
    }

    /// Tags.
    pub fn tag(self, text: &str) -> String {
        self.wrap("36", text)
    }

    /// Something to look at.
    pub fn warning(self, text: &str) -> String {
        self.wrap("31", text)
    }

    /// What was looked for.
    pub fn found(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// What is only in the first of two.
    pub fn lost(self, text: &str) -> String {
        self.wrap("31", text)
    }

    /// What is only in the second of two.
    pub fn gained(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Whether there are colours.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// A text in its speaker's colour.
    pub fn role(self, role: Role, text: &str) -> String {
        let code = match role {
            Role::User => "36",
            Role::Assistant => "32",
            Role::Tool => "35",
            Role::System => "34",
        };
        self.wrap(code, text)
    }
}
