//! Where texts begin and end in JSON that goes past byte by byte.
//!
//! Programs that cannot hold or must not trust a whole document look at its braces, commas and
//! colons; this tells them which bytes are that, and which only stand in a text. The form of the
//! document is not checked.

/// What a byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BytePart {
    /// It is outside of texts: a brace, a comma, part of a number or of a word.
    Outside,
    /// The quotation mark that begins a text.
    TextStart,
    /// It is within a text.
    Text,
    /// The quotation mark that ends a text.
    TextEnd,
}

/// Follows a document byte by byte, in constant memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanner {
    in_text: bool,
    escaped: bool,
}

impl Scanner {
    /// Takes the next byte and returns what it is.
    #[inline]
    pub fn step(&mut self, byte: u8) -> BytePart {
        if !self.in_text {
            self.in_text = byte == b'"';
            return if self.in_text { BytePart::TextStart } else { BytePart::Outside };
        }
        if std::mem::take(&mut self.escaped) {
            return BytePart::Text;
        }
        match byte {
            b'"' => {
                self.in_text = false;
                BytePart::TextEnd
            }
            _ => {
                self.escaped = byte == b'\\';
                BytePart::Text
            }
        }
    }

    /// Returns whether the last byte was within a text that has not ended.
    pub fn is_in_text(&self) -> bool {
        self.in_text
    }
}
