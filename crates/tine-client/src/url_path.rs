//! Builds percent-encoded paths and queries.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but what RFC 3986 leaves alone.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A path below `/api/v1`, and its query.
#[derive(Clone, Debug)]
pub(crate) struct UrlPath {
    text: String,
    has_query: bool,
}

impl UrlPath {
    /// Returns the path of these pieces.
    pub(crate) fn of(pieces: &[&str]) -> Self {
        let mut text = String::from("/api/v1");
        for piece in pieces {
            text.push('/');
            text.extend(utf8_percent_encode(piece, ENCODED));
        }
        UrlPath { text, has_query: false }
    }

    /// Adds a query parameter.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.text.push_str(name);
        self.text.push('=');
        self.text.extend(utf8_percent_encode(&value.to_string(), ENCODED));
        self
    }

    /// Adds a query parameter if it has a value.
    pub(crate) fn with_option(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::UrlPath;

    #[test]
    fn a_name_is_one_path_segment_whatever_it_contains() {
        let address = UrlPath::of(&["turns", "a/b?c#d é", "path"]).with("limit", 3).with("q", "&=");
        assert_eq!(address.as_str(), "/api/v1/turns/a%2Fb%3Fc%23d%20%C3%A9/path?limit=3&q=%26%3D");
    }
}
