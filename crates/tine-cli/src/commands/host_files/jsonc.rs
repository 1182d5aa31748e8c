//! Setting one entry in a file of JSON that people write by hand.
//!
//! Hosts allow comments and trailing commas in their files. The text is read just far enough to
//! find the place; everything else stays as it is, byte for byte.

use std::ops::Range;

/// Why a text cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(crate) struct Malformed {
    /// Where.
    pub line: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// Sets `section.name` to a value, which is given as it should be written at the left margin.
pub(crate) fn set(text: &str, section: &str, name: &str, value: &str) -> Result<String, Malformed> {
    if text.trim().is_empty() {
        let value = indented(value, 2);
        return Ok(format!(
            "{{\n  {}: {{\n    {}: {value}\n  }}\n}}\n",
            quoted(section),
            quoted(name)
        ));
    }
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.space()?;
    let top = reader.object()?;
    reader.space()?;
    if reader.at < text.len() {
        return Err(reader.wrong("something follows the object"));
    }
    let Some(member) = top.members.iter().find(|member| member.name == section) else {
        let entry = format!("{{\n  {}: {}\n}}", quoted(name), indented(value, 1));
        return Ok(insert(text, &top, section, &entry, 1));
    };
    let mut reader = Reader { text, at: member.value.start, depth: 1 };
    if !text[reader.at..].starts_with('{') {
        return Err(reader.wrong("this should be an object"));
    }
    let within = reader.object()?;
    match within.members.iter().find(|member| member.name == name) {
        Some(known) => {
            let mut out = text.to_owned();
            out.replace_range(known.value.clone(), &indented(value, 2));
            Ok(out)
        }
        None => Ok(insert(text, &within, name, value, 2)),
    }
}

/// Adds a member at the beginning of an object.
fn insert(text: &str, object: &Object, name: &str, value: &str, level: usize) -> String {
    let (margin, outer) = ("  ".repeat(level), "  ".repeat(level - 1));
    let entry = format!("\n{margin}{}: {}", quoted(name), indented(value, level));
    let behind = match object.members.is_empty() {
        // What is between the braces may be a comment.
        true if text[object.inside.clone()].trim().is_empty() => format!("\n{outer}"),
        true => String::new(),
        false => ",".to_owned(),
    };
    let mut out = text.to_owned();
    let end = if behind.starts_with('\n') { object.inside.end } else { object.inside.start };
    out.replace_range(object.inside.start..end, &format!("{entry}{behind}"));
    out
}

/// A value whose further lines stand so many levels deeper.
fn indented(value: &str, level: usize) -> String {
    value.replace('\n', &format!("\n{}", "  ".repeat(level)))
}

pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct Member {
    name: String,
    value: Range<usize>,
}

struct Object {
    members: Vec<Member>,
    /// What lies between its braces.
    inside: Range<usize>,
}

/// Nesting that is followed.
const DEEPEST: usize = 200;

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn wrong(&self, what: &'static str) -> Malformed {
        let line = self.text[..self.at.min(self.text.len())].matches('\n').count() + 1;
        Malformed { line, what }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes over white space and comments.
    fn space(&mut self) -> Result<(), Malformed> {
        loop {
            let rest = &self.text[self.at..];
            let blank =
                rest.len() - rest.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).len();
            self.at += blank;
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/").ok_or_else(|| self.wrong("a comment has no end"))?;
                self.at += end + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn object(&mut self) -> Result<Object, Malformed> {
        if self.peek() != Some(b'{') {
            return Err(self.wrong("an object should begin here"));
        }
        self.deeper()?;
        self.at += 1;
        let start = self.at;
        let mut members = Vec::new();
        loop {
            self.space()?;
            if self.peek() == Some(b'}') {
                let inside = start..self.at;
                self.at += 1;
                self.depth -= 1;
                return Ok(Object { members, inside });
            }
            let name = self.string()?;
            self.space()?;
            if self.peek() != Some(b':') {
                return Err(self.wrong("a colon is missing"));
            }
            self.at += 1;
            self.space()?;
            let from = self.at;
            self.value()?;
            members.push(Member { name, value: from..self.at });
            self.comma(b'}')?;
        }
    }

    fn array(&mut self) -> Result<(), Malformed> {
        self.deeper()?;
        self.at += 1;
        loop {
            self.space()?;
            if self.peek() == Some(b']') {
                self.at += 1;
                self.depth -= 1;
                return Ok(());
            }
            self.value()?;
            self.comma(b']')?;
        }
    }

    fn deeper(&mut self) -> Result<(), Malformed> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(self.wrong("this is nested too deeply")) } else { Ok(()) }
    }

    /// Between two items a comma, behind the last one none or one.
    fn comma(&mut self, end: u8) -> Result<(), Malformed> {
        self.space()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(())
            }
            Some(byte) if byte == end => Ok(()),
            _ => Err(self.wrong("a comma or the end is missing")),
        }
    }

    fn value(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            Some(b'{') => self.object().map(drop),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(drop),
            _ => {
                let rest = &self.text[self.at..];
                let end =
                    rest.find([',', '}', ']', ' ', '\t', '\r', '\n', '/']).unwrap_or(rest.len());
                let sound = serde_json::from_str::<serde_json::Value>(&rest[..end]).is_ok();
                if !sound {
                    return Err(self.wrong("this is no value"));
                }
                self.at += end;
                Ok(())
            }
        }
    }

    fn string(&mut self) -> Result<String, Malformed> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a name or text in quotation marks should be here"));
        }
        let start = self.at;
        let mut escaped = false;
        for (offset, byte) in self.text.as_bytes()[start + 1..].iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    let end = start + offset + 2;
                    let read = serde_json::from_str(&self.text[start..end]);
                    let read = read.map_err(|_| self.wrong("this text cannot be read"))?;
                    self.at = end;
                    return Ok(read);
                }
                _ => {}
            }
        }
        Err(self.wrong("a text has no end"))
    }
}
