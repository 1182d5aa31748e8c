//! Markdown as HTML that is safe to show.
//!
//! HTML in the Markdown is shown as text. Links go only to `http`, `https` and `mailto`; any other
//! link is plain text. An image becomes a link, so nothing is loaded from a network.

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd, html};

/// Schemes that a link may have.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// Renders Markdown as HTML without scripts, styles, images or raw HTML.
pub(super) fn to_safe_html(markdown: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut filter = EventFilter::default();
    let mut events = Vec::new();
    for event in Parser::new_ext(markdown, options) {
        filter.push(event, &mut events);
    }
    let mut out = String::with_capacity(markdown.len() + markdown.len() / 2);
    html::push_html(&mut out, events.into_iter());
    out
}

/// Replaces the events that are not safe.
#[derive(Default)]
struct EventFilter {
    /// For each open link and image, whether it is written as a link.
    links: Vec<bool>,
}

impl EventFilter {
    fn push<'a>(&mut self, event: Event<'a>, out: &mut Vec<Event<'a>>) {
        match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let is_email = link_type == LinkType::Email;
                let keep = self.keeps_link(&dest_url) || is_email && !self.in_link();
                self.links.push(keep);
                if keep {
                    out.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
            }
            Event::Start(Tag::Image { dest_url, title, id, .. }) => {
                let keep = self.keeps_link(&dest_url);
                self.links.push(keep);
                if keep {
                    let link_type = LinkType::Inline;
                    out.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
                out.push(Event::Text("[image] ".into()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if self.links.pop() == Some(true) {
                    out.push(Event::End(TagEnd::Link));
                }
            }
            Event::Start(Tag::HtmlBlock) => out.push(Event::Start(Tag::Paragraph)),
            Event::End(TagEnd::HtmlBlock) => out.push(Event::End(TagEnd::Paragraph)),
            Event::Html(line) => {
                out.push(Event::Text(line.trim_end_matches('\n').to_owned().into()));
                out.push(Event::HardBreak);
            }
            Event::InlineHtml(text) => out.push(Event::Text(text)),
            // In a chat, a line break in the source is meant as one.
            Event::SoftBreak => out.push(Event::HardBreak),
            other => out.push(other),
        }
    }

    fn in_link(&self) -> bool {
        self.links.contains(&true)
    }

    fn keeps_link(&self, url: &str) -> bool {
        let has_scheme = |scheme: &&str| {
            url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        !self.in_link() && SCHEMES.iter().any(has_scheme)
    }
}
