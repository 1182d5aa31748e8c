//! The HTML page of an export: Markdown is rendered, and hostile Markdown does nothing.

use proptest::prelude::*;
use tine_core::{Message, Role};
use tine_engine::{Append, Call, Engine, NewConversation};
use tine_formats::html_page::{CLOSE, OPEN, write_page};
use tine_store::MemoryStore;

/// Returns the exported page of a conversation whose only turn is a user's text.
fn page_of(text: &str) -> String {
    let engine = Engine::new(MemoryStore::new());
    let call = Call::by("ana");
    let trip = engine.create_conversation(&call, NewConversation::named("trip").unwrap()).unwrap();
    let messages = vec![Message::text(Role::User, text)];
    engine.append(&call, Append::to(trip.id.clone(), messages)).unwrap();
    let mut page = Vec::new();
    write_page(&engine, &call, &[trip.id], &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// Returns the rendered Markdown in a page: what stands between the bundle and the page's script.
fn rendered(text: &str) -> String {
    let page = page_of(text);
    let (_, after) = page.split_once(OPEN).unwrap();
    let (_, after) = after.split_once(CLOSE).unwrap();
    let (templates, _) = after.split_once("<script>\n\"use strict\"").unwrap();
    let html = templates.trim().strip_suffix("</template>").unwrap();
    let (tag, html) = html.split_once('>').unwrap();
    assert!(tag.starts_with("<template id=\"text-"), "{tag}");
    html.to_owned()
}

/// Tags that rendered Markdown can have, with their attributes.
const ALLOWED: &[(&str, &[&str])] = &[
    ("a", &["href", "title"]),
    ("blockquote", &[]),
    ("br", &[]),
    ("code", &["class"]),
    ("del", &[]),
    ("em", &[]),
    ("h1", &[]),
    ("h2", &[]),
    ("h3", &[]),
    ("h4", &[]),
    ("h5", &[]),
    ("h6", &[]),
    ("hr", &[]),
    ("input", &["checked", "disabled", "type"]),
    ("li", &[]),
    ("ol", &["start"]),
    ("p", &[]),
    ("pre", &[]),
    ("strong", &[]),
    ("table", &[]),
    ("tbody", &[]),
    ("td", &["style"]),
    ("th", &["style"]),
    ("thead", &[]),
    ("tr", &[]),
    ("ul", &[]),
];

/// Fails if the HTML has a tag, an attribute or a link that rendered Markdown must not have.
fn assert_safe(html: &str) {
    let mut rest = html;
    while let Some((_, after)) = rest.split_once('<') {
        // The renderer escapes `>` in attributes.
        let (tag, tail) = after.split_once('>').expect("every `<` begins a tag");
        rest = tail;
        let tag = tag.trim_start_matches('/').trim_end_matches('/').trim();
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let allowed = ALLOWED.iter().find(|(allowed, _)| *allowed == name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("<{name}> in {html}"));
        while !attributes.trim().is_empty() {
            let (key, after) = attributes.trim_start().split_once("=\"").expect("key=\"value\"");
            let (value, after) = after.split_once('"').expect("a quoted value");
            assert!(allowed.contains(&key), "{key} of <{name}> in {html}");
            if key == "href" {
                let url = value.to_ascii_lowercase();
                let schemes = ["http://", "https://", "mailto:"];
                assert!(schemes.iter().any(|scheme| url.starts_with(scheme)), "{url}");
            }
            attributes = after;
        }
    }
}

#[test]
fn markdown_is_rendered() {
    let html = rendered(
        "# Plan\n\nTake the **night train**:\n\n- one\n- two\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n```rust\nlet x = 1 < 2;\n```",
    );
    for part in ["<h1>Plan</h1>", "<strong>night train</strong>", "<li>one</li>", "<td>1</td>"] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(html.contains("<code class=\"language-rust\">let x = 1 &lt; 2;\n</code>"), "{html}");
    assert_safe(&html);
}

#[test]
fn line_breaks_of_a_chat_are_kept() {
    assert_eq!(rendered("one\ntwo").trim(), "<p>one<br />\ntwo</p>");
}

#[test]
fn raw_html_is_shown_as_text() {
    for text in [
        "<script>alert(1)</script>",
        "a <script>alert(1)</script> b",
        "</template><script>alert(1)</script>",
        "<!-- </template> --><img src=x onerror=alert(1)>",
        "<div onclick=\"alert(1)\">\n\n<b>bold</b>\n\n</div>",
        "<svg/onload=alert(1)>",
        "<style>body { background: url(https://example.org/pixel) }</style>",
        "<iframe src=\"https://example.org\"></iframe>",
        "`</code></template><script>alert(1)</script>`",
        "```\"><script>alert(1)</script>\ncode\n```",
    ] {
        let html = rendered(text);
        assert_safe(&html);
        for word in ["alert(1)", "bold", "pixel", "example.org"] {
            assert_eq!(html.contains(word), text.contains(word), "{word} of {text} in {html}");
        }
    }
}

#[test]
fn links_run_no_script_and_leave_the_page_only_by_http_or_mail() {
    for (text, link) in [
        ("[a](https://example.org/?q=1&r=2)", Some("https://example.org/?q=1&amp;r=2")),
        ("<HTTP://example.org>", Some("HTTP://example.org")),
        ("<ana@example.org>", Some("mailto:ana@example.org")),
        ("[a](javascript:alert(1))", None),
        ("[a](JaVaScRiPt:alert(1))", None),
        ("[a](java\tscript:alert(1))", None),
        ("[a](&#106;avascript:alert(1))", None),
        ("[a]( javascript:alert(1))", None),
        ("[a](data:text/html,<script>alert(1)</script>)", None),
        ("[a](vbscript:msgbox(1))", None),
        ("[a](file:///etc/passwd)", None),
        ("[a](//example.org)", None),
        ("[a](/local)", None),
        ("[a]\n\n[a]: javascript:alert(1)", None),
    ] {
        let html = rendered(text);
        assert_safe(&html);
        let href = html.split_once("href=\"").map(|(_, after)| after.split('"').next().unwrap());
        assert_eq!(href, link, "{text}: {html}");
    }
}

#[test]
fn images_become_links_and_load_nothing() {
    let html = rendered("![a pixel](https://example.org/pixel.png) ![x](javascript:alert(1))");
    assert_safe(&html);
    assert!(
        html.contains("<a href=\"https://example.org/pixel.png\">[image] a pixel</a>"),
        "{html}"
    );
    assert!(html.contains("[image] x"), "{html}");
    assert_safe(&rendered("[![badge](https://example.org/b.svg)](https://example.org/)"));
    assert_safe(&rendered("![x](data:image/svg+xml;base64,PHN2Zz4=)"));
}

#[test]
fn the_page_forbids_everything_but_its_own_script_and_style() {
    let page = page_of("hello");
    let policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                  img-src data:; base-uri 'none'; form-action 'none'";
    assert!(page.contains(&format!("content=\"{policy}\"")), "{page}");
    assert!(page.contains("<meta name=\"referrer\" content=\"no-referrer\">"));
    let (head, _) = page.split_once(OPEN).unwrap();
    assert!(!head.contains("src=") && !head.contains("href="), "{head}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_markdown_gets_a_tag_past_the_renderer(
        pieces in proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(vec![
                    "<", ">", "\"", "'", "&", "`", "```\n", "[", "](", ")", "![", "\n", "\n\n", "# ",
                    "> ", "| a |\n|--|\n", "- [ ] ", "**", "<script>", "</template>", "<!--", "-->",
                    "javascript:", "https://", "onerror=", "<a href=", "<img src=x>", "\\", "\0",
                    "&lt;", "&#60;", "[^1]", "~~", "    ", "<?", "<![CDATA[",
                ]).prop_map(str::to_owned),
                "[a-z ]{0,6}",
            ],
            1..24,
        ),
    ) {
        let text = pieces.concat();
        prop_assume!(!text.trim().is_empty());
        assert_safe(&rendered(&text));
    }
}
