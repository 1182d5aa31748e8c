//! Where a request comes from: the name it was addressed to, the page that sent it, the client's
//! address.
//!
//! These checks hold on every route. They keep a page in a browser from reaching the server under a
//! name of its own (DNS rebinding) or from another origin. Headers that a proxy adds are believed
//! only if the connection comes from a trusted proxy.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, Method, Request, StatusCode, header};
use ipnet::IpNet;
use tine_core::ErrorKind;

use crate::app::{Options, Peer};
use crate::problem::Problem;

/// Names of the loopback interface, under which every server can be addressed.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Parses the address of a trusted proxy: an IP address or a network such as `10.0.0.0/8`.
pub fn parse_network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// Refuses a request to another server's name, or from a page of another origin.
pub(crate) fn check<B>(options: &Options, request: &Request<B>) -> Result<(), Problem> {
    let host = host(request)?;
    let Some(name) = host_name(host) else {
        let why = format!("the Host header `{host}` is not valid; send NAME or NAME:PORT");
        return Err(misdirected(why));
    };
    let known = LOOPBACK_NAMES.contains(&name)
        || options.hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
    if !known {
        return Err(misdirected(format!(
            "`{host}` is not a name of this server; start it with --host {name} to accept it"
        )));
    }
    check_page(options, request, host)
}

/// Returns the address of the client: that of the connection or, behind trusted proxies, the
/// nearest address that is not one of them.
pub(crate) fn client_address(options: &Options, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let mut client = peer;
    let forwarded = headers.get_all("x-forwarded-for").iter().rev();
    let hops = forwarded.filter_map(|value| value.to_str().ok()).flat_map(|text| text.rsplit(','));
    for hop in hops {
        if !is_trusted(options, client) {
            break;
        }
        // An unreadable hop ends the chain: what lies beyond it is not vouched for.
        let Ok(address) = hop.trim().parse() else { break };
        client = address;
    }
    client
}

fn is_trusted(options: &Options, address: IpAddr) -> bool {
    options.trusted_proxies.iter().any(|network| network.contains(&address.to_canonical()))
}

/// Returns the one name that the request is addressed to.
fn host<B>(request: &Request<B>) -> Result<&str, Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().map_or(Some(""), |value| value.to_str().ok()).unwrap_or("?");
    if hosts.next().is_some() {
        return Err(misdirected("the request has more than one Host header".to_owned()));
    }
    match request.uri().authority() {
        Some(authority) if !authority.as_str().eq_ignore_ascii_case(host) => {
            Err(misdirected(format!("the request is for `{authority}`, but its Host is `{host}`")))
        }
        _ => Ok(host),
    }
}

fn check_page<B>(options: &Options, request: &Request<B>, host: &str) -> Result<(), Problem> {
    let forbidden = |why: String| Err(Problem::new(ErrorKind::Forbidden, why));
    let text = |name: &HeaderName| request.headers().get(name).map(|it| it.to_str().unwrap_or("?"));
    if let Some(origin) = text(&header::ORIGIN) {
        let (scheme, name) = origin.split_once("://").unwrap_or(("", origin));
        if name != host || !["http", "https"].contains(&scheme) {
            return forbidden(format!("requests from pages of `{origin}` are not accepted"));
        }
        if scheme != expected_scheme(options, request) {
            return forbidden(format!(
                "requests from pages of `{origin}` are not accepted; if a proxy serves this page \
                 over TLS, start the server with --trusted-proxy ADDRESS and let the proxy send \
                 X-Forwarded-Proto"
            ));
        }
    }
    // Browsers say which site a request comes from. Following a link is allowed.
    let site = text(&HeaderName::from_static("sec-fetch-site"));
    let foreign = matches!(site, Some("cross-site" | "same-site"));
    let follows_link = matches!(*request.method(), Method::GET | Method::HEAD)
        && text(&HeaderName::from_static("sec-fetch-mode")) == Some("navigate");
    if foreign && !follows_link {
        return forbidden("requests from pages of other sites are not accepted".to_owned());
    }
    Ok(())
}

/// Returns the scheme that the client used: the server's own, or what a trusted proxy reports.
fn expected_scheme<'a, B>(options: &Options, request: &'a Request<B>) -> &'a str {
    let peer = request.extensions().get::<Peer>();
    let proxied = peer.is_some_and(|peer| is_trusted(options, peer.0));
    let reported = request.headers().get("x-forwarded-proto").and_then(|it| it.to_str().ok());
    reported.filter(|_| proxied).unwrap_or("http")
}

/// Returns the name in `NAME`, `NAME:PORT`, `[IPv6]` or `[IPv6]:PORT`, or nothing if the text has
/// another form.
fn host_name(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']')?;
            name.parse::<std::net::Ipv6Addr>().ok()?;
            (name, port)
        }
        None => {
            let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if name.is_empty() || !name.bytes().all(allowed) {
                return None;
            }
            (name, port)
        }
    };
    match port.strip_prefix(':') {
        None => port.is_empty().then_some(name),
        Some(digits) => {
            let digits_only = digits.bytes().all(|byte| byte.is_ascii_digit());
            // RFC 3986 allows an empty port.
            (digits_only && (digits.is_empty() || digits.parse::<u16>().is_ok())).then_some(name)
        }
    }
}

fn misdirected(why: String) -> Problem {
    Problem::new(ErrorKind::Forbidden, why).with_status(StatusCode::MISDIRECTED_REQUEST)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn request(pairs: &[(&'static str, &str)]) -> Request<()> {
        let mut request = Request::post("/api/v1/conversations");
        for (name, value) in pairs {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request")
    }

    fn accepts(options: &Options, pairs: &[(&'static str, &str)]) -> bool {
        match check(options, &request(pairs)) {
            Ok(()) => true,
            Err(problem) => {
                assert!(problem.is(ErrorKind::Forbidden));
                false
            }
        }
    }

    #[test]
    fn a_request_is_addressed_to_exactly_one_name_of_the_server() {
        let options = Options { hosts: vec!["tine.example".to_owned()], ..Options::default() };
        for host in [
            "localhost",
            "localhost:8000",
            "127.0.0.1:8000",
            "[::1]:8000",
            "[::1]",
            "Tine.Example:",
        ] {
            assert!(accepts(&options, &[("host", host)]), "{host}");
        }
        for host in [
            "evil.example:8000",
            "localhost.evil.example",
            "127.0.0.1:9420.evil.test",
            "127.0.0.1:99999",
            "localhost:80:80",
            "[::1",
            "[::1]x",
            "[localhost]",
            "",
        ] {
            assert!(!accepts(&options, &[("host", host)]), "{host}");
        }
        assert!(!accepts(&options, &[]));
        assert!(!accepts(&options, &[("host", "localhost"), ("host", "localhost")]));
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let options = Options::default();
        let from = |name, value| accepts(&options, &[("host", "localhost:8000"), (name, value)]);
        assert!(from("origin", "http://localhost:8000"));
        for origin in
            ["http://evil.example", "null", "http://localhost:3000", "https://localhost:8000", ""]
        {
            assert!(!from("origin", origin), "{origin}");
        }
        for (site, accepted) in
            [("none", true), ("same-origin", true), ("same-site", false), ("cross-site", false)]
        {
            assert_eq!(from("sec-fetch-site", site), accepted, "{site}");
        }
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let trusting = Options {
            trusted_proxies: vec![parse_network("10.0.0.0/8").expect("a network")],
            ..Options::default()
        };
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let mut headers = HeaderMap::new();
        headers
            .insert("x-forwarded-for", HeaderValue::from_static("192.0.2.66, 192.0.2.7, 10.0.0.2"));
        for (options, peer, client) in [
            (&trusting, "10.0.0.1", "192.0.2.7"),
            (&trusting, "192.0.2.9", "192.0.2.9"),
            (&Options::default(), "10.0.0.1", "10.0.0.1"),
        ] {
            assert_eq!(client_address(options, address(peer), &headers), address(client), "{peer}");
        }
        let over_tls = |peer: &str| {
            let mut request = request(&[
                ("host", "localhost"),
                ("origin", "https://localhost"),
                ("x-forwarded-proto", "https"),
            ]);
            request.extensions_mut().insert(Peer(address(peer)));
            check(&trusting, &request).is_ok()
        };
        assert!(over_tls("10.0.0.1"));
        assert!(!over_tls("192.0.2.9"));
    }
}
