//! Rings: keywords, intent, facets and sentences of a turn. The extractor is in `tine-analysis`.

/// The intent of a turn as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// Asks for information.
    Question,
    /// Asks for something to be done.
    Request,
    /// States something.
    Statement,
    /// Decides something.
    Decision,
    /// Confirms, agrees or thanks.
    Acknowledgement,
    /// Corrects something earlier.
    Correction,
    /// Only opens or closes a conversation.
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

    /// Returns the name in lower case.
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

    /// Returns the intent of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|intent| intent.as_str() == name)
    }
}

impl std::fmt::Display for Intent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Every facet, sorted by name.
pub const FACETS: &[&str] = &[
    "code",
    "comparison",
    "data",
    "entertainment",
    "food",
    "health",
    "home",
    "law",
    "learning",
    "money",
    "people",
    "place",
    "planning",
    "preference",
    "problem",
    "shopping",
    "technology",
    "timing",
    "travel",
    "weather",
    "work",
    "writing",
];

/// A range of a text, in Unicode scalar values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first character.
    pub start: usize,
    /// One past the last character.
    pub end: usize,
}

/// A word or phrase that characterises a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// As it occurs first.
    pub text: String,
    /// Where it occurs first.
    pub span: Span,
}

/// A subject that a turn touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facet {
    /// One of [`FACETS`].
    pub name: &'static str,
    /// The word that indicates it.
    pub span: Span,
}

/// What a turn is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Best first, at most 16.
    pub keywords: Vec<Keyword>,
    /// Of the turn as a whole.
    pub intent: Intent,
    /// Sorted by name, each once.
    pub facets: Vec<Facet>,
    /// Sentences, in order: every character that is not white space lies in exactly one.
    pub segments: Vec<Span>,
}
