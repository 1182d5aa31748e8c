//! The web page at `/`.

use tine_server::{Options, TokenRule};

use crate::harness::{Answer, Served};

/// Sends a request like a browser.
fn looks(served: &Served, path: &str) -> Answer {
    served.and("accept", "text/html,application/xhtml+xml,*/*;q=0.8").get(path)
}

#[test]
fn the_start_page_is_served_at_every_unmatched_path() {
    let served = Served::new();
    for path in ["/", "/c/trip", "/c/trip/t/0190a1b2?side=1", "/documents", "/apis"] {
        let page = looks(&served, path).expect(200);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(page.as_text().to_ascii_lowercase().starts_with("<!doctype html>"), "{path}");
    }
    assert!(served.get("/").expect(200).as_text().contains("<"));
    assert!(looks(&served, "/docs").expect(200).as_text().contains("API reference"));
}

#[test]
fn unknown_api_paths_get_an_error_and_not_the_page() {
    let served = Served::new();
    for path in ["/api", "/api/v1/nothing", "/api/v2/conversations", "/mcp/x", "/docs/x"] {
        looks(&served, path).expect(404);
    }
    served.and("accept", "*/*").get("/assets/gone-1a2b3c.js").expect(404);
    served.and("accept", "application/json").get("/c/trip").expect(404);
    served.post("/c/trip", serde_json::json!({})).expect(404);
}

#[test]
fn the_page_has_a_strict_content_security_policy() {
    let page = looks(&Served::new(), "/").expect(200);
    let policy = page.header("content-security-policy").expect("a policy").to_owned();
    for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
}

#[test]
fn a_page_that_has_not_changed_is_not_sent_again() {
    let served = Served::new();
    let version = served.get("/").expect(200).header("etag").expect("a version").to_owned();
    let again = served.and("if-none-match", &version).get("/").expect(304);
    assert_eq!(again.as_text(), "");
}

#[test]
fn the_page_needs_no_token_and_its_requests_do() {
    let served = Served::with(Options { token_rule: TokenRule::Always, ..Options::default() });
    looks(&served, "/").expect(200);
    looks(&served, "/c/trip").expect(200);
    for path in ["/api/v1/conversations", "/api/v1/events", "/metrics", "/docs", "/api/none"] {
        looks(&served, path).expect(401);
    }
    served.and("host", "evil.example").get("/").expect(421);
}

#[test]
fn every_file_of_the_page_is_there() {
    let served = Served::new();
    for file in tine_server::assets::files() {
        let sent = served.get(&format!("/{}", file.name)).expect(200);
        assert_eq!(sent.header("content-type"), Some(file.media_type()), "{}", file.name);
        assert!(sent.body == file.bytes, "{}", file.name);
    }
}
