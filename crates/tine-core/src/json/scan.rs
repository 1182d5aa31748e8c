//! Finds where strings begin and end in a stream of JSON bytes.
//!
//! For code that looks at braces, commas and colons of a document without parsing it: the scanner
//! says which bytes are structure and which are inside a string. It does not validate the document.

/// The role of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BytePart {
    /// Outside of strings: a brace, a comma, part of a number or literal.
    Outside,
    /// The quotation mark that begins a string.
    TextStart,
    /// Within a string.
    Text,
    /// The quotation mark that ends a string.
    TextEnd,
}

/// Follows a document byte by byte, in constant memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanner {
    in_text: bool,
    escaped: bool,
}

impl Scanner {
    /// Takes the next byte and returns its role.
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
