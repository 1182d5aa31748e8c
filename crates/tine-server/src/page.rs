//! Serves the web page: its files, and its start page at every path that no route has.
//!
//! It needs no token, since it has no content of the store; its API requests do. Its policy forbids
//! external resources, foreign scripts and frames.

use crate::assets::File;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tine_core::ErrorKind;

use crate::problem::Problem;

/// The content security policy of the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// For files whose name changes with their content.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// For files that are revalidated each time.
const REVALIDATED: &str = "no-cache";

/// Paths of APIs, which the page does not cover.
const API_PATHS: [&str; 5] = ["/api", "/mcp", "/docs", "/healthz", "/metrics"];

/// Returns whether a request is for the page.
pub(crate) fn covers(request: &Request) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads && !is_of_programs(request.uri().path())
}

fn is_of_programs(path: &str) -> bool {
    API_PATHS.iter().any(|above| {
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Answers requests that no route matches.
pub(crate) async fn answer(request: Request) -> Response {
    let found = covers(&request).then(|| find(request.uri().path(), request.headers())).flatten();
    match found {
        Some(file) => send(file, request.headers()),
        None => {
            let why = "there is no such path; see /docs";
            Problem::new(ErrorKind::NotFound, why).into_response()
        }
    }
}

/// Returns the file at a path or else, for browsers, the start page, which handles the path itself.
fn find(path: &str, headers: &HeaderMap) -> Option<&'static File> {
    let name = path.strip_prefix('/')?;
    let file = crate::assets::find(name);
    let index = || (name.is_empty() || wants(headers)).then(crate::assets::index);
    file.or_else(index)
}

fn wants(headers: &HeaderMap) -> bool {
    text(headers, header::ACCEPT).contains("text/html")
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn send(file: &File, asked: &HeaderMap) -> Response {
    // A weak tag, since the encodings differ in bytes.
    let version = format!("W/\"{}\"", file.version);
    let keep = if file.is_immutable() { IMMUTABLE } else { REVALIDATED };
    let known = text(asked, header::IF_NONE_MATCH).split(',').any(|it| it.trim() == version);
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => whole(file, asked),
    };
    let headers = response.headers_mut();
    if let Ok(version) = HeaderValue::try_from(version) {
        headers.insert(header::ETAG, version);
    }
    for (name, value) in [
        (header::CACHE_CONTROL, keep),
        (header::VARY, "accept-encoding"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn whole(file: &File, asked: &HeaderMap) -> Response {
    let kind = (header::CONTENT_TYPE, file.media_type());
    match file.gzip.filter(|_| takes_gzip(text(asked, header::ACCEPT_ENCODING))) {
        Some(small) => ([kind, (header::CONTENT_ENCODING, "gzip")], small).into_response(),
        None => ([kind], file.bytes).into_response(),
    }
}

/// Returns whether `Accept-Encoding` allows gzip.
fn takes_gzip(codings: &str) -> bool {
    codings.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let refused = weight.trim().strip_prefix("q=").and_then(|it| it.parse().ok()) == Some(0.0);
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: File = File {
        name: "assets/index-1a2b3c.js",
        bytes: b"say('hello')",
        gzip: Some(b"small"),
        version: "5e",
    };

    fn asked(pairs: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().cloned();
        pairs.map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
    }

    fn header_of(response: &Response, name: header::HeaderName) -> &str {
        text(response.headers(), name)
    }

    #[test]
    fn a_file_with_a_hashed_name_is_immutable() {
        let sent = send(&SCRIPT, &HeaderMap::new());
        assert_eq!(header_of(&sent, header::CACHE_CONTROL), IMMUTABLE);
        assert_eq!(header_of(&sent, header::CONTENT_TYPE), "text/javascript; charset=utf-8");
        let sent = send(&File { name: "index.html", ..SCRIPT }, &HeaderMap::new());
        assert_eq!(header_of(&sent, header::CACHE_CONTROL), REVALIDATED);
    }

    #[test]
    fn a_file_is_compressed_for_clients_that_accept_it() {
        for (takes, coding) in [("gzip, br", "gzip"), ("br;q=1, gzip;q=0.2", "gzip"), ("br", "")] {
            let sent = send(&SCRIPT, &asked(&[(header::ACCEPT_ENCODING, takes)]));
            assert_eq!(header_of(&sent, header::CONTENT_ENCODING), coding, "{takes}");
            assert_eq!(header_of(&sent, header::VARY), "accept-encoding");
        }
        assert!(!takes_gzip("gzip;q=0") && !takes_gzip("") && takes_gzip("GZIP"));
    }

    #[test]
    fn an_unchanged_file_is_not_sent_again() {
        for known in ["W/\"5e\"", "\"x\", W/\"5e\""] {
            let sent = send(&SCRIPT, &asked(&[(header::IF_NONE_MATCH, known)]));
            assert_eq!(sent.status(), StatusCode::NOT_MODIFIED, "{known}");
        }
        let sent = send(&SCRIPT, &asked(&[(header::IF_NONE_MATCH, "W/\"6f\"")]));
        assert_eq!(sent.status(), StatusCode::OK);
    }
}
