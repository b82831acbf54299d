//! Tests of proxy settings.

use hyper_util::client::proxy::matcher::Matcher;
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::error::{Categorized, Category};

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn block(http: &str, https: &str, no_proxy: &str) -> Proxy {
    let fields = ProxyFields { http: Some(http), https: Some(https), no_proxy: Some(no_proxy) };
    Proxy::parse("proxy", fields, None).unwrap()
}

fn login(username: &str) -> ProxyCredentials {
    ProxyCredentials { username: username.to_owned(), password: "pw".to_owned().into() }
}

fn environment(variables: &[(&str, &str)]) -> Result<Proxy, ProxyError> {
    Proxy::from_environment(|name| {
        variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

/// Returns the route of a target: the proxy with its user, or `direct`.
fn way(proxy: &Proxy, target: &str) -> String {
    let Some(via) = proxy.route(&url(target)) else { return "direct".to_owned() };
    let user = via.credentials.map(|credentials| format!("{}@", credentials.username));
    format!("{}{}", user.unwrap_or_default(), via.url.host_str().unwrap())
}

#[rstest]
#[case::every("*", "http://any.test", true)]
#[case::address("192.0.2.1", "http://192.0.2.1:8080", true)]
#[case::other_address("192.0.2.1", "http://192.0.2.2", false)]
#[case::name_is_not_resolved("192.0.2.1", "http://a192.0.2.1.test", false)]
#[case::network("192.0.2.0/24", "https://192.0.2.77", true)]
#[case::network_with_host_bits("192.0.2.9/24", "https://192.0.2.77", true)]
#[case::outside("192.0.2.0/25", "https://192.0.2.200", false)]
#[case::six("2001:db8::1", "http://[2001:db8:0::1]/", true)]
#[case::six_network("2001:db8::/32", "http://[2001:db8:7::1]/", true)]
#[case::mapped("192.0.2.1", "http://[::ffff:192.0.2.1]", true)]
#[case::mapped_network("::ffff:192.0.2.0/120", "http://192.0.2.9", true)]
#[case::host("example.com", "http://example.com", true)]
#[case::subdomain("example.com", "http://a.b.example.com", true)]
#[case::lookalike("example.com", "http://badexample.com", false)]
#[case::parent("a.example.com", "http://example.com", false)]
#[case::dotted(".example.com", "http://a.example.com", true)]
#[case::dotted_not_itself(".example.com", "http://example.com", false)]
#[case::starred("*.example.com", "http://a.example.com", true)]
#[case::starred_not_itself("*.example.com", "http://example.com", false)]
#[case::case("EXAMPLE.Com", "http://Example.COM", true)]
#[case::final_dot("example.com.", "http://example.com", true)]
#[case::final_dot_of_target("example.com", "http://example.com.", true)]
#[case::port("example.com:8443", "https://example.com:8443", true)]
#[case::other_port("example.com:8443", "https://example.com", false)]
#[case::default_port("example.com:443", "https://example.com", true)]
#[case::port_below("example.com:8443", "https://a.example.com:8443", true)]
#[case::address_port("192.0.2.1:80", "http://192.0.2.1", true)]
#[case::address_other_port("192.0.2.1:81", "http://192.0.2.1", false)]
#[case::six_port("[2001:db8::1]:8080", "http://[2001:db8::1]:8080", true)]
#[case::six_other_port("[2001:db8::1]:8080", "http://[2001:db8::1]", false)]
#[case::six_in_brackets("[2001:db8::1]", "http://[2001:db8::1]", true)]
#[case::international("bücher.test", "http://bücher.test", true)]
#[case::list(" a.test , ,b.test", "http://b.test", true)]
#[case::not_listed("a.test,b.test", "http://c.test", false)]
#[case::empty("", "http://a.test", false)]
fn exceptions(#[case] list: &str, #[case] target: &str, #[case] direct: bool) {
    assert_eq!(list.parse::<NoProxy>().unwrap().matches(&url(target)), direct);
    let proxy = block("http://p:1", "http://p:1", list);
    assert_eq!(way(&proxy, target) == "direct", direct);
}

/// The reasons why the list is not matched by `hyper-util`, which `reqwest` also uses for `NO_PROXY`.
#[rstest]
#[case::every_address("*", "http://192.0.2.1")]
#[case::mapped("192.0.2.1", "http://[::ffff:192.0.2.1]")]
#[case::mapped_network("::ffff:192.0.2.0/120", "http://192.0.2.9")]
#[case::dotted_not_itself(".example.com", "http://example.com")]
#[case::starred("*.example.com", "http://a.example.com")]
#[case::final_dot("example.com.", "http://example.com")]
#[case::final_dot_of_target("example.com", "http://example.com.")]
#[case::port("example.com:8443", "https://example.com:8443")]
#[case::address_port("192.0.2.1:80", "http://192.0.2.1")]
#[case::six_in_brackets("[2001:db8::1]", "http://[2001:db8::1]")]
#[case::international("bücher.test", "http://xn--bcher-kva.test")]
#[case::loopback("", "http://127.0.0.1")]
fn hyper_util_decides_differently(#[case] list: &str, #[case] target: &str) {
    let matcher = Matcher::builder().all("http://p:1").no(list).build();
    let intercepted = matcher.intercept(&target.parse().unwrap()).is_some();
    assert_eq!(block("http://p:1", "http://p:1", list).serving(&url(target)).is_none(), intercepted);
}

#[rstest]
#[case("10.0.0.0/33")]
#[case("example.com/8")]
#[case("example.com:http")]
#[case("example.com:70000")]
#[case("[2001:db8::1")]
#[case("a b")]
#[case("a..b")]
#[case("a.*.b")]
#[case("*.")]
#[case(".")]
#[case("http://example.com")]
fn invalid_exceptions(#[case] entry: &str) {
    let fields = ProxyFields { no_proxy: Some(entry), ..ProxyFields::default() };
    let error = Proxy::<ProxyCredentials>::parse("git.proxy", fields, None).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().starts_with(&format!("git.proxy.noProxy: \"{entry}\" is not")), "{error}");
    assert!(NoProxy::parse_known(&format!("{entry},a.test")).matches(&url("http://a.test")));
}

#[rstest]
#[case("http://localhost:8080")]
#[case("http://LOCALHOST.")]
#[case("https://127.0.0.1")]
#[case("https://127.9.9.9")]
#[case("http://[::1]:80")]
#[case("http://[::ffff:127.0.0.1]")]
fn loopback_is_always_direct(#[case] target: &str) {
    assert_eq!(way(&block("http://p:1", "http://p:1", ""), target), "direct");
}

#[rstest]
#[case("http://a.test", "plain")]
#[case("https://a.test", "tunnel")]
#[case("ssh://a.test", "direct")]
#[case("file:///a", "direct")]
fn each_scheme_has_its_proxy(#[case] target: &str, #[case] expected: &str) {
    assert_eq!(way(&block("http://plain:1", "https://tunnel:2", ""), target), expected);
}

#[rstest]
#[case::nothing(&[], "direct", "direct")]
#[case::upper_wins(&[("HTTP_PROXY", "http://up:1"), ("http_proxy", "http://low:1")], "up", "direct")]
#[case::blank_is_ignored(&[("HTTP_PROXY", "  "), ("http_proxy", "http://low:1")], "low", "direct")]
#[case::https(&[("https_proxy", "https://low:1")], "direct", "low")]
#[case::exceptions(&[("HTTP_PROXY", "http://p:1"), ("NO_PROXY", "a.test")], "direct", "direct")]
#[case::unknown_exceptions(&[("HTTP_PROXY", "http://p:1"), ("no_proxy", "<local>,169.254/16")], "p", "direct")]
#[case::userinfo(&[("HTTP_PROXY", "http://us%40er:p%3Aw@p:1")], "us@er@p", "direct")]
#[case::without_scheme(&[("HTTP_PROXY", "p:3128")], "p", "direct")]
fn the_environment(#[case] variables: &[(&str, &str)], #[case] http: &str, #[case] https: &str) {
    let proxy = environment(variables).unwrap();
    assert_eq!(
        (way(&proxy, "http://a.test").as_str(), way(&proxy, "https://a.test").as_str()),
        (http, https)
    );
}

#[rstest]
#[case::scheme("socks5://p:1")]
#[case::host("http://")]
#[case::port("http://p:pw12")]
#[case::text("http://user:pw12@[")]
fn invalid_proxy_urls(#[case] text: &str) {
    let error = environment(&[("https_proxy", text)]).unwrap_err();
    assert_eq!(error.to_string(), "https_proxy must be an http:// or https:// URL with a host");
    let fields = ProxyFields { https: Some(text), ..ProxyFields::default() };
    let error = Proxy::<ProxyCredentials>::parse("proxy", fields, None).unwrap_err();
    assert_eq!(error.to_string(), "proxy.https must be an http:// or https:// URL with a host");
    assert_eq!(error.category(), Category::Validation);
}

#[rstest]
#[case::fragment("http://u:p@CANARY#1@proxy.test:3128")]
#[case::query("http://u:CANARY?1@proxy.test:3128")]
#[case::path("http://u:12/CANARY@proxy.test:3128")]
#[case::backslash("http://u:12\\CANARY@proxy.test:3128")]
#[case::plain_path("http://proxy.test:3128/CANARY")]
#[case::empty_query("http://u:CANARY@proxy.test:3128?")]
#[case::empty_fragment("http://u:CANARY@proxy.test:3128/#")]
#[case::port_of_a_password("http://u:CANARY/1@proxy.test")]
#[case::without_scheme("u:p@CANARY#1@proxy.test:3128")]
fn paths_queries_and_fragments_are_rejected(#[case] text: &str) {
    let advice = "must not have a path, query or fragment; percent-encode user and password \
                  (/ is %2F, ? is %3F, # is %23, @ is %40)";
    let error = environment(&[("HTTP_PROXY", text)]).unwrap_err();
    assert_eq!(error.to_string(), format!("HTTP_PROXY {advice}"));
    assert_eq!(error.category(), Category::Validation);
    if text.contains("://") {
        let fields = ProxyFields { http: Some(text), ..ProxyFields::default() };
        let error = Proxy::<ProxyCredentials>::parse("proxy", fields, None).unwrap_err();
        assert_eq!(error.to_string(), format!("proxy.http {advice}"));
        assert!(!format!("{error:?}").contains("CANARY"));
    }
}

#[rstest]
#[case("http://p:3128/", "p")]
#[case("http://u:a%2Fb%23c%3Fd%40e@p:3128", "u@p")]
#[case("p:3128/", "p")]
fn addresses_of_proxies(#[case] text: &str, #[case] expected: &str) {
    let proxy = environment(&[("HTTP_PROXY", text)]).unwrap();
    assert_eq!(way(&proxy, "http://a.test"), expected);
}

#[test]
fn a_block_needs_a_scheme() {
    let fields = ProxyFields { http: Some("p:3128"), ..ProxyFields::default() };
    assert!(Proxy::<ProxyCredentials>::parse("proxy", fields, None).is_err());
}

#[test]
fn credentials_in_url_and_auth_are_rejected() {
    let fields = ProxyFields { https: Some("http://user:pw12@p:1"), ..ProxyFields::default() };
    let error = Proxy::parse("vault.proxy", fields, Some(login("other"))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "vault.proxy.https contains credentials in addition to the auth block; remove one of them"
    );
}

#[rstest]
#[case::none_set("", "", "", None, ["direct", "direct", "direct"])]
#[case::blank("  ", "", " ", None, ["direct", "direct", "direct"])]
#[case::url("http://own:1", "", "", None, ["own", "env2@e2", "direct"])]
#[case::exceptions("", "", "own.test", None, ["env1@e1", "env2@e2", "env1@e1"])]
#[case::auth("", "", "", Some("me"), ["me@e1", "me@e2", "direct"])]
#[case::url_and_auth("http://own:1", "", "", Some("me"), ["me@own", "me@e2", "direct"])]
#[case::own_userinfo("http://u:p@own:1", "", "", None, ["u@own", "env2@e2", "direct"])]
fn a_block_over_the_environment(
    #[case] http: &str,
    #[case] https: &str,
    #[case] no_proxy: &str,
    #[case] auth: Option<&str>,
    #[case] expected: [&str; 3],
) {
    let base = environment(&[
        ("HTTP_PROXY", "http://env1:pw@e1:1"),
        ("HTTPS_PROXY", "http://env2:pw@e2:1"),
        ("NO_PROXY", "env.test"),
    ])
    .unwrap();
    let fields = ProxyFields { http: Some(http), https: Some(https), no_proxy: Some(no_proxy) };
    let own = Proxy::parse("proxy", fields, auth.map(login)).unwrap();
    let proxy = own.over(&base);
    let ways = ["http://a.test", "https://a.test", "http://env.test"].map(|target| way(&proxy, target));
    assert_eq!(ways, expected);
}

/// Blocks of managed server, Git remote, Vault and metadata, in that order.
#[rstest]
#[case::the_example(Some("http://p1:3128"), [Some(["", "corp.test"]), None, Some(["", ""]), None], ["p1", "p1", "direct", "p1"])]
#[case::no_block(Some("http://p1:3128"), [None, None, None, None], ["p1", "p1", "p1", "p1"])]
#[case::nothing(None, [None, None, None, None], ["direct", "direct", "direct", "direct"])]
#[case::first_block(None, [None, Some(["http://g:1", ""]), Some(["http://v:1", ""]), None], ["g", "g", "v", "g"])]
#[case::a_disabled_one_does_not_share(Some("http://p1:1"), [Some(["", ""]), None, Some(["http://v:1", ""]), None], ["direct", "v", "v", "v"])]
#[case::without_a_url(None, [Some(["", "corp.test"]), None, None, None], ["direct", "direct", "direct", "direct"])]
#[case::url_of_another(None, [Some(["", "corp.test"]), Some(["http://g:1", ""]), None, None], ["g", "g", "g", "g"])]
#[case::exceptions_of_its_own(None, [Some(["", "a.test"]), Some(["http://g:1", ""]), None, None], ["direct", "g", "g", "g"])]
fn components_share(
    #[case] variable: Option<&str>,
    #[case] blocks: [Option<[&str; 2]>; 4],
    #[case] expected: [&str; 4],
) {
    let base = environment(&variable.map(|value| ("HTTP_PROXY", value)).into_iter().collect::<Vec<_>>());
    let blocks = blocks.map(|fields| fields.map(|[http, no_proxy]| block(http, "", no_proxy)));
    let resolved = Proxy::resolve(&base.unwrap(), blocks);
    let ways: Vec<_> = resolved.iter().map(|proxy| way(proxy, "http://a.test")).collect();
    assert_eq!(ways, expected);
}

#[test]
fn exceptions_are_shared_with_the_proxy() {
    let base = environment(&[("HTTP_PROXY", "http://p1:3128")]).unwrap();
    let blocks = [Some(block("", "", "corp.test")), None, Some(Proxy::default()), None];
    let resolved = Proxy::resolve(&base, blocks);
    assert_eq!(resolved[1], resolved[0]);
    assert_eq!(way(&resolved[1], "http://git.corp.test"), "direct");
    assert!(resolved[2].is_empty());
}

#[test]
fn credentials_may_be_read_late() {
    let fields = ProxyFields { http: Some("http://p:1"), ..ProxyFields::default() };
    let reference = Proxy::parse("proxy", fields, Some("ops")).unwrap();
    assert_eq!(reference.serving(&url("http://a.test")).unwrap().to_string(), "http://p:1");
    assert_eq!(reference.serving(&url("https://a.test")), None);
    let proxy = reference.clone().try_map_auth(|name| Ok::<_, ()>(login(name))).unwrap();
    assert_eq!(way(&proxy, "http://a.test"), "ops@p");
    assert_eq!(reference.try_map_auth(Err::<ProxyCredentials, _>), Err("ops"));
}

#[test]
fn passwords_are_never_shown() {
    let proxy = environment(&[("HTTP_PROXY", "http://user:hunter2@p:1/")]).unwrap();
    assert_eq!(proxy.serving(&url("http://a.test")).unwrap().to_string(), "http://p:1");
    let fields = ProxyFields { http: Some("http://user:hunter2@p:1"), ..ProxyFields::default() };
    let own: Proxy = Proxy::parse("proxy", fields, None).unwrap();
    assert!(!format!("{own:?}").contains("hunter2"));
}

proptest! {
    #[test]
    fn a_displayed_list_is_parsed_again(
        hosts in prop::collection::vec("[a-z]{1,5}(\\.[a-z]{1,5}){0,2}(:[1-9][0-9]{0,3})?|\\.[a-z]{1,5}|\\*", 0..4),
        addresses in prop::collection::vec(any::<std::net::IpAddr>(), 0..3),
        network in (any::<std::net::Ipv6Addr>(), 0..=128u8),
    ) {
        let mut entries = hosts;
        entries.extend(addresses.iter().map(ToString::to_string));
        entries.push(format!("{}/{}", network.0, network.1));
        let list: NoProxy = entries.join(",").parse().unwrap();
        prop_assert_eq!(list.to_string().parse::<NoProxy>().unwrap(), list);
    }

    #[test]
    fn parsing_never_panics(text in "\\PC{0,40}") {
        let _ = text.parse::<NoProxy>();
        let _ = NoProxy::parse_known(&text);
        let _ = ProxyUrl::parse("proxy", &text);
    }
}
