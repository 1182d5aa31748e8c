//! Sets one table in a TOML file that people write by hand; everything else keeps its bytes.

use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::HostEntry;

/// Returns the text with a table `section.name` for the entry, in place of the one that is there or
/// at the end of the file.
pub(crate) fn set(
    text: &str,
    section: &str,
    name: &str,
    entry: &HostEntry,
) -> Result<String, String> {
    let mut document = text.parse::<DocumentMut>().map_err(|error| error.message().to_owned())?;
    let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let tables = document.entry(section).or_insert(Item::Table(implicit)).as_table_mut();
    let tables = tables.ok_or_else(|| format!("expected `{section}` to be a table"))?;
    let mut table = Table::new();
    table["command"] = value(&entry.command);
    table["args"] = value(entry.arguments.iter().collect::<Array>());
    match tables.get(name).map(Item::as_table) {
        Some(Some(old)) => {
            *table.decor_mut() = old.decor().clone();
            table.set_position(old.position());
            tables[name] = Item::Table(table);
        }
        Some(None) => return Err(format!("expected `{section}.{name}` to be a table")),
        None => {
            // Comments at the end of the file stay before what is added after them.
            let blank = if text.trim().is_empty() { "" } else { "\n" };
            let end = if trailing.is_empty() || trailing.ends_with('\n') { "" } else { "\n" };
            table.decor_mut().set_prefix(format!("{trailing}{end}{blank}"));
            table.set_position(Some(isize::MAX));
            tables[name] = Item::Table(table);
            document.set_trailing("");
        }
    }
    Ok(document.to_string())
}

/// Returns the text with the value of a key, or without the key. A dot separates a table from its
/// key.
pub(crate) fn set_key(text: &str, name: &str, new: Option<&str>) -> Result<String, String> {
    let mut document = text.parse::<DocumentMut>().map_err(|error| error.message().to_owned())?;
    let (table, key) = name.rsplit_once('.').unwrap_or(("", name));
    if new.is_none() && !table.is_empty() && !document.contains_key(table) {
        return Ok(text.to_owned());
    }
    let table = match table {
        "" => document.as_table_mut(),
        table => {
            let created = || Item::Table(Table::new());
            let found = document.entry(table).or_insert_with(created).as_table_mut();
            found.ok_or_else(|| format!("expected `{table}` to be a table"))?
        }
    };
    match (new, table.get_mut(key).and_then(Item::as_value_mut)) {
        (Some(new), Some(old)) => {
            let decor = old.decor().clone();
            *old = new.into();
            *old.decor_mut() = decor;
        }
        (Some(new), None) => table[key] = value(new),
        (None, _) => {
            table.remove(key);
        }
    }
    Ok(document.to_string())
}

/// Returns whether a table `section.name` exists.
pub(crate) fn has(text: &str, section: &str, name: &str) -> Result<bool, String> {
    let document = text.parse::<DocumentMut>().map_err(|error| error.message().to_owned())?;
    let tables = document.get(section).and_then(Item::as_table_like);
    Ok(tables.is_some_and(|tables| tables.contains_key(name)))
}

#[cfg(test)]
mod tests {
    use super::{HostEntry, set};

    fn set_x(text: &str) -> Result<String, String> {
        let entry = HostEntry { command: "tine".to_owned(), arguments: vec!["mcp".to_owned()] };
        set(text, "servers", "x", &entry)
    }

    const TABLE: &str = "[servers.x]\ncommand = \"tine\"\nargs = [\"mcp\"]\n";

    #[test]
    fn a_table_is_added_at_the_end_and_nothing_else_changes() {
        assert_eq!(set_x("").unwrap(), TABLE);
        for before in [
            "# a\n",
            "a = 1 # b\n",
            "a = 1\n\n# c\n",
            "[servers]\ny.command = \"z\"\n\n[b]\n# d\n",
            "[b.c]\n\n[d]\n\n[b.e]\n",
        ] {
            assert_eq!(set_x(before).unwrap(), format!("{before}\n{TABLE}"));
        }
        assert_eq!(set_x("a = 1").unwrap(), format!("a = 1\n\n{TABLE}"));
        assert_eq!(set_x("# a").unwrap(), format!("# a\n\n{TABLE}"));
    }

    #[test]
    fn a_table_is_replaced_where_it_is_with_the_comments_around_it() {
        let other = "a = 1\n\n# mine\n[servers.x]\ncommand = \"old\"\n\n[servers.x.env]\nA = \"b\"\n\n\
                     # Kept.\n[servers.y]\ncommand = \"z\"\n";
        let after = format!("a = 1\n\n# mine\n{TABLE}\n# Kept.\n[servers.y]\ncommand = \"z\"\n");
        assert_eq!(set_x(other).unwrap(), after);
        assert_eq!(set_x(&after).unwrap(), after, "the second time there is nothing to change");
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for text in [
            "a = [\n",
            "servers = 1\n",
            "servers = { x = {} }\n",
            "[[servers]]\n",
            "[servers]\nx = { command = \"z\" }\n",
            "[[servers.x]]\n",
        ] {
            assert!(set_x(text).is_err(), "{text}");
        }
    }
}
