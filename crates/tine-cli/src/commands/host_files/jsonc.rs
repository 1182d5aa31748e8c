//! Sets one entry in a JSON file that people write by hand.
//!
//! Hosts allow comments and trailing commas in their files. Everything but the entry keeps its
//! bytes; the entry takes the indentation and line ends of the file.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};

/// What hosts accept beyond JSON: comments and trailing commas, and nothing of JSON5.
const HOSTS_JSON: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A member of an entry: a text, or a list of texts.
pub(crate) enum Member<'a> {
    Text(&'a str),
    List(&'a [String]),
}

/// Returns the text with `section.name` set to an object of these members. An entry that is new
/// becomes the first of its object, so that no other line changes.
pub(crate) fn set(
    text: &str,
    section: &str,
    name: &str,
    members: &[(&str, Member<'_>)],
) -> Result<String, String> {
    let marked = text.starts_with(BYTE_ORDER_MARK);
    let bare = text.trim_start_matches(BYTE_ORDER_MARK);
    let root = CstRootNode::parse(bare, &HOSTS_JSON).map_err(|error| error.to_string())?;
    let top = root.object_value_or_create().ok_or("expected a JSON object")?;
    let found = top.get(section);
    let found = found.unwrap_or_else(|| top.insert(0, section, CstInputValue::Object(Vec::new())));
    let within: CstObject =
        found.object_value().ok_or_else(|| format!("expected `{section}` to be an object"))?;
    let written = |text: &str| CstInputValue::String(text.to_owned());
    let member = |(name, member): &(&str, Member<'_>)| {
        let value = match member {
            Member::Text(value) => written(value),
            Member::List(items) => {
                CstInputValue::Array(items.iter().map(|it| written(it)).collect())
            }
        };
        ((*name).to_owned(), value)
    };
    let value = CstInputValue::Object(members.iter().map(member).collect());
    match within.get(name) {
        Some(known) => known.set_value(value),
        None => drop(within.insert(0, name, value)),
    }
    let mark = if marked { "\u{feff}" } else { "" };
    Ok(format!("{mark}{root}"))
}

/// Returns the names of the members of an object; none if the file holds no such object.
pub(crate) fn names(text: &str, section: &str) -> Result<Vec<String>, String> {
    let root = parse(text)?;
    let section = root.object_value().and_then(|top| top.object_value(section));
    let members = section.iter().flat_map(CstObject::properties);
    Ok(members.filter_map(|member| member.name()?.decoded_value().ok()).collect())
}

/// Returns the text of the value at a path of names, if there is one.
pub(crate) fn value_at(text: &str, path: &[&str]) -> Result<Option<String>, String> {
    let Some((last, sections)) = path.split_last() else { return Ok(None) };
    let top = parse(text)?.object_value();
    let within = sections.iter().try_fold(top, |object, name| Some(object?.object_value(name)));
    let value = within.flatten().and_then(|object| object.get(last)?.value());
    Ok(value.map(|value| value.to_string()))
}

fn parse(text: &str) -> Result<CstRootNode, String> {
    let bare = text.trim_start_matches(BYTE_ORDER_MARK);
    CstRootNode::parse(bare, &HOSTS_JSON).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Member, set};

    fn set_x(text: &str) -> Result<String, String> {
        let arguments = ["mcp".to_owned(), "a \"b\" \\".to_owned()];
        let members = [("command", Member::Text("tine")), ("args", Member::List(&arguments))];
        set(text, "servers", "x", &members)
    }

    const ENTRY: &str = r#""x": {
      "command": "tine",
      "args": ["mcp", "a \"b\" \\"]
    }"#;

    #[test]
    fn an_entry_is_added_where_there_is_none_and_nothing_else_changes() {
        let fresh = format!("{{\n  \"servers\": {{\n    {ENTRY}\n  }}\n}}\n");
        for empty in ["", "{}\n", "{\n}\n"] {
            assert_eq!(set_x(empty).unwrap(), fresh, "{empty:?}");
        }
        let before =
            "// a\n{\n  \"b\": 1, // c\n  \"servers\": {\n    /* d */\n    \"e\": {}\n  }\n}\n";
        let after = before.replace("{\n    /* d", &format!("{{\n    {ENTRY},\n    /* d"));
        assert_eq!(set_x(before).unwrap(), after);
        assert_eq!(set_x(&after).unwrap(), after, "the second time there is nothing to change");
    }

    #[test]
    fn an_entry_takes_the_indentation_and_line_ends_of_its_file() {
        let tabs = set_x("{\n\t\"a\": 1\n}\n").unwrap();
        assert!(tabs.contains("\n\t\"servers\": {\n\t\t\"x\": {\n\t\t\t\"command\""), "{tabs}");
        let crlf = set_x("\u{feff}{\r\n    \"a\": 1\r\n}\r\n").unwrap();
        assert!(crlf.starts_with("\u{feff}{\r\n    \"servers\""), "{crlf:?}");
        assert_eq!(crlf.matches('\n').count(), crlf.matches("\r\n").count(), "{crlf:?}");
    }

    #[test]
    fn what_is_not_json_with_comments_is_refused() {
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(600), "]".repeat(600));
        for text in [
            "{ not json",
            "[]",
            "1",
            "{\"servers\": []}",
            "{} x",
            "{\"a\": \"b}",
            "/* c",
            "{'a': 1}",
            "{\"a\": 1 \"b\": 2}",
            "{a: 1}",
            "{\"a\": +1}",
            "{\"a\": tru}",
            &deep,
        ] {
            assert!(set_x(text).is_err(), "{text}");
        }
    }
}
