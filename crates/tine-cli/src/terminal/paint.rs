//! Optional colours.

use tine_core::Role;

/// Adds colours to text, if they are enabled.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Enables or disables colours.
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

    /// Dims secondary text.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Emphasizes titles.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Colours hashes.
    pub fn hash(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// Colours branch names.
    pub fn branch(self, text: &str) -> String {
        self.wrap("1;32", text)
    }

    /// Colours bookmark names.
    pub fn bookmark(self, text: &str) -> String {
        self.wrap("1;35", text)
    }

    /// Colours tags.
    pub fn tag(self, text: &str) -> String {
        self.wrap("36", text)
    }

    /// Colours warnings.
    pub fn warning(self, text: &str) -> String {
        self.wrap("31", text)
    }

    /// Highlights search matches.
    pub fn found(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// Colours text that only the first side of a comparison has.
    pub fn lost(self, text: &str) -> String {
        self.wrap("31", text)
    }

    /// Colours text that only the second side of a comparison has.
    pub fn gained(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Returns whether colours are enabled.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// Colours text by role.
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
