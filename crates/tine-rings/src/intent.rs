//! What a turn wants.

/// What a turn wants, as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// It asks.
    Question,
    /// It wants something done.
    Request,
    /// It tells.
    Statement,
    /// It settles something.
    Decision,
    /// It says that something was heard, or agrees, or thanks.
    Acknowledgement,
    /// It puts right what was said or understood before.
    Correction,
    /// It opens or closes a conversation and says nothing else.
    Greeting,
}

impl Intent {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Question,
        Self::Request,
        Self::Statement,
        Self::Decision,
        Self::Acknowledgement,
        Self::Correction,
        Self::Greeting,
    ];

    /// Its name in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Request => "request",
            Self::Statement => "statement",
            Self::Decision => "decision",
            Self::Acknowledgement => "acknowledgement",
            Self::Correction => "correction",
            Self::Greeting => "greeting",
        }
    }

    /// The intent of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|intent| intent.as_str() == name)
    }
}

impl std::fmt::Display for Intent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

pub(crate) fn intent(text: &str) -> Intent {
    match text.trim_end().ends_with(['?', '？']) {
        true => Intent::Question,
        false => Intent::Statement,
    }
}
