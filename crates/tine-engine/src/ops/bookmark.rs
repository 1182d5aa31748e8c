//! Bookmarks: names for turns, unique in the project.

use tine_core::Name;
use tine_core::json::object;
use tine_store::Bookmark;

use crate::log::change::text;
use crate::log::mutation::Mutation;
use crate::tree::resolve;
use crate::tree::views;
use crate::{BookmarkView, Call, Engine, Error, Listing, Page, Result, TurnRef};

impl Engine {
    /// Puts a bookmark on a turn, taking it away from wherever it was.
    ///
    /// A reference means a branch before it means a bookmark, so `main` and the names of branches
    /// of the turn's conversation are refused: such a bookmark would never be found. The other way
    /// round nothing is refused. Branches belong to one conversation and are often named by
    /// programs; a bookmark elsewhere in the project does not block them, and where a branch gets a
    /// bookmark's name the branch is meant.
    pub fn set_bookmark(&self, call: &Call, name: Name, turn: TurnRef) -> Result<BookmarkView> {
        let payload = |(name, turn): &(Name, TurnRef)| {
            object([
                ("name", text(name)),
                ("conversation_id", turn.conversation.as_ref().map(text).into()),
                ("turn", turn.turn.as_str().into()),
            ])
        };
        let (view, _) = self.mutate(call, "bookmark", (name, turn), payload, set)?;
        Ok(view)
    }

    /// Removes a bookmark and returns it.
    pub fn delete_bookmark(&self, call: &Call, name: &Name) -> Result<BookmarkView> {
        let payload = |name: &Name| object([("name", text(name))]);
        let (gone, _) =
            self.mutate(call, "delete_bookmark", name.clone(), payload, |mutation, name| {
                let existing = mutation.reader().bookmark(&mutation.call.project, name)?;
                let existing = existing.ok_or_else(|| Error::not_found("bookmark", name))?;
                let owner = resolve::conversation_of(mutation.reader(), existing.conversation)?;
                mutation.open(owner)?;
                let gone = views::bookmark(mutation.reader(), &existing)?;
                mutation.change_bookmark(Some(&existing), None)?;
                Ok(gone)
            })?;
        Ok(gone)
    }

    /// Returns one bookmark.
    pub fn bookmark(&self, call: &Call, name: &Name) -> Result<BookmarkView> {
        self.read(|records| {
            let found = records.bookmark(&call.project, name)?;
            let found = found.ok_or_else(|| Error::not_found("bookmark", name))?;
            views::bookmark(records, &found)
        })
    }

    /// Bookmarks of the project in order of name.
    pub fn bookmarks(&self, call: &Call, page: Page) -> Result<Listing<BookmarkView>> {
        let limit = self.page_limit(page.limit)?;
        self.read(|records| {
            let after = page.cursor.as_ref().map(Name::from_stored);
            let found = records.bookmarks(&call.project, after.as_ref(), limit)?;
            let next = match found.last() {
                Some(last) if found.len() == limit => Some(last.name.to_string()),
                _ => None,
            };
            let items = found.iter().map(|mark| views::bookmark(records, mark));
            Ok(Listing { items: items.collect::<Result<_>>()?, next })
        })
    }
}

/// Refuses a name by which a branch is meant.
fn refuse_shadowed(mutation: &Mutation<'_>, name: &Name) -> Result<()> {
    if *name == Name::main() {
        return Err(Error::invalid(
            "`main` is always a branch; choose another name for the bookmark",
        ));
    }
    if mutation.reader().branch(mutation.key(), name)?.is_some() {
        let advice = "; choose another name for the bookmark";
        return Err(Error::Exists { what: "branch", name: name.to_string(), advice });
    }
    Ok(())
}

fn set(mutation: &mut Mutation<'_>, (name, turn): &(Name, TurnRef)) -> Result<BookmarkView> {
    let place = resolve::place(mutation.reader(), mutation.call, turn)?;
    let loc = place.require_turn_for("bookmarked")?;
    mutation.open(place.conversation)?;
    mutation.depends_on_turn(Some(loc))?;
    let project = mutation.call.project.clone();
    let before = mutation.reader().bookmark(&project, name)?;
    if let Some(existing) = &before
        && existing.turn == loc
        && existing.conversation == mutation.key()
    {
        return views::bookmark(mutation.reader(), existing);
    }
    refuse_shadowed(mutation, name)?;
    let after = Bookmark {
        project,
        name: name.clone(),
        conversation: mutation.key(),
        turn: loc,
        created_at: mutation.now,
    };
    mutation.change_bookmark(before.as_ref(), Some(&after))?;
    views::bookmark(mutation.reader(), &after)
}
