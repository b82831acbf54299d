//! Tests of `known_hosts` files and host keys.

use insta::assert_snapshot;
use proptest::prelude::*;
use rstest::rstest;

use super::*;

// Made with ssh-keygen. The private keys were deleted.
const ED25519: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIKzwaCpropEi5ItVq7W21v+B15pHcx+5OgGubRY+Maf/";
const OTHER_ED25519: &str = "AAAAC3NzaC1lZDI1NTE5AAAAILirk2dB/u+CtduE93nJmBZmLDl8useHHT4FRh/FWtf7";
const ECDSA: &str = concat!(
    "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHizOUKjW+dBDr/RX3igHmVXc2soWA5kDY+7Yk",
    "Y5KBE2YHL/RQJ91OVsjbNE1T9VzFL0wJr9Q8O5Wwk33DZEbWw=",
);
const RSA: &str = concat!(
    "AAAAB3NzaC1yc2EAAAADAQABAAAAgQCu2M2Lh3Q9lVC5ZOGdVwPRqUMCdECXO8givSJ8JKQf4W9pnpw0vysR7PXHys",
    "4Y5R1nPFP8SBlEBJFgjxvFBq2xipEtdeevnw1uQJhnzC3mCetVUnxE7aanXdlhxIFC1fWESJdSk3qazKqQcVhU7lgh",
    "O1UtE+b+jGBJ69NKZx95/Q==",
);
const HASHED: &str = "|1|1yFp9sm4MbHympirsjoVDfHI0U0=|KHRaHsIo97teN+a3H/DEEjDSx3A=";
const HASHED_2222: &str = "|1|6PXv3CJ4NgdPKGNdaDiM0pp+Fuc=|WZJkcxRsY44OsybvL0gndQHwLgM=";

fn key(base64: &str) -> HostKey {
    HostKey::new(STANDARD.decode(base64).unwrap()).unwrap()
}

/// `hosts algorithm key` for each pair.
fn known(lines: &[(&str, &str)]) -> KnownHosts {
    let line = |(hosts, text): &(&str, &str)| format!("{hosts} {} {text} a comment\n", key(text).algorithm());
    KnownHosts::parse(&lines.iter().map(line).collect::<String>())
}

#[rstest]
#[case::plain("git.example.org", "git.example.org", 22, true)]
#[case::any_case("Git.Example.org", "GIT.example.ORG", 22, true)]
#[case::list("a,git.example.org,b", "git.example.org", 22, true)]
#[case::star("*.example.org", "git.example.org", 22, true)]
#[case::question_mark("gi?.example.org", "git.example.org", 22, true)]
#[case::negated("*.example.org,!git.example.org", "git.example.org", 22, false)]
#[case::only_negated("!git.example.org", "other", 22, false)]
#[case::other("example.org", "git.example.org", 22, false)]
#[case::port("[git.example.org]:2222", "git.example.org", 2222, true)]
#[case::wrong_port("[git.example.org]:2222", "git.example.org", 2223, false)]
#[case::port_does_not_count_for_22("[git.example.org]:2222", "git.example.org", 22, false)]
#[case::plain_name_counts_for_any_port("git.example.org", "git.example.org", 2222, true)]
#[case::port_pattern("[*.example.org]:2222", "git.example.org", 2222, true)]
#[case::address("192.0.2.1", "192.0.2.1", 22, true)]
#[case::address6("[2001:db8::1]:2222", "2001:db8::1", 2222, true)]
#[case::hashed(HASHED, "git.example.org", 22, true)]
#[case::hashed_other(HASHED, "example.org", 22, false)]
#[case::hashed_port(HASHED_2222, "git.example.org", 2222, true)]
#[case::hashed_wrong_port(HASHED_2222, "git.example.org", 22, false)]
fn hosts_match(#[case] hosts: &str, #[case] host: &str, #[case] port: u16, #[case] expected: bool) {
    let known = known(&[(hosts, ED25519)]);
    let checked = known.check(host, port, &key(ED25519));
    assert_eq!(checked.is_ok(), expected, "{checked:?}");
    assert!(expected || matches!(checked, Err(HostKeyError::UnknownHost { .. })), "{checked:?}");
}

#[test]
fn fingerprints_are_those_of_ssh_keygen() {
    assert_eq!(key(ED25519).fingerprint(), "SHA256:y80qDEGC+caxfKIc27SnLIpn4M5fvQF1qPrbxoPIgR8");
    assert_eq!(key(RSA).fingerprint(), "SHA256:s27yGMl3SLhTtNQUxA8PqpyIvgRWIH/eiN+u/lLZmVE");
}

#[test]
fn any_listed_key_of_a_host_is_accepted() {
    let known = known(&[("h", RSA), ("h", OTHER_ED25519), ("h", ED25519)]);
    for presented in [RSA, ED25519, OTHER_ED25519] {
        assert_eq!(known.check("h", 22, &key(presented)), Ok(()));
    }
}

#[test]
fn the_error_for_a_different_key_names_host_and_both_fingerprints() {
    let error = known(&[("h", ED25519), ("h", RSA)]).check("h", 2222, &key(OTHER_ED25519)).unwrap_err();
    assert_snapshot!(error, @"host [h]:2222 presented the ssh-ed25519 key SHA256:mW3TJk2yn4ZdGIyX2ZvCLk6g0uQmvGPVAlB3g0gtjds, but the known hosts list SHA256:y80qDEGC+caxfKIc27SnLIpn4M5fvQF1qPrbxoPIgR8; the connection may be intercepted, or the key was replaced");
}

#[test]
fn the_error_for_another_algorithm_names_the_missing_line() {
    let error = known(&[("h", RSA), ("h", ED25519)]).check("h", 22, &key(ECDSA)).unwrap_err();
    assert_snapshot!(error, @"host h presented the ecdsa-sha2-nistp256 key SHA256:WReMhsLudUxyXNv/Y1xGFnRJRG8ssgmp6l/TDSBdfWc, but the known hosts list only ssh-ed25519, ssh-rsa for it; add its ecdsa-sha2-nistp256 key to them");
}

#[test]
fn the_error_for_an_unknown_host_names_its_fingerprint() {
    let error = KnownHosts::default().check("h", 22, &key(ED25519)).unwrap_err();
    assert_snapshot!(error, @"host h is not among the known hosts; it presented the ssh-ed25519 key SHA256:y80qDEGC+caxfKIc27SnLIpn4M5fvQF1qPrbxoPIgR8");
}

#[test]
fn a_revoked_key_is_rejected_even_if_listed() {
    let both = known(&[("@revoked *", ED25519), ("h", ED25519), ("h", RSA)]);
    assert!(matches!(both.check("h", 22, &key(ED25519)), Err(HostKeyError::Revoked { .. })));
    assert_eq!(both.check("h", 22, &key(RSA)), Ok(()));
    let only = known(&[("@revoked h", ED25519)]);
    assert!(matches!(only.check("h", 22, &key(RSA)), Err(HostKeyError::UnknownHost { .. })));
}

#[rstest]
#[case("h", 22, &["ssh-ed25519", "ssh-rsa"])]
#[case("H", 2222, &["ecdsa-sha2-nistp256"])]
#[case("h", 2223, &["ssh-ed25519", "ssh-rsa"])]
#[case("other", 22, &[])]
fn the_algorithms_of_a_host(#[case] host: &str, #[case] port: u16, #[case] expected: &[&str]) {
    let known =
        known(&[("h", ED25519), ("h", RSA), ("@revoked h", ECDSA), ("[h]:2222", ECDSA), ("x", ECDSA)]);
    assert_eq!(known.algorithms(host, port), expected);
}

#[rstest]
#[case::comment("# h ssh-ed25519 KEY")]
#[case::authority("@cert-authority h ssh-ed25519 KEY")]
#[case::algorithm_differs("h ssh-rsa KEY")]
#[case::no_key("h ssh-ed25519")]
#[case::bad_base64("h ssh-ed25519 !KEY")]
#[case::short("h ssh-ed25519 AAAA")]
#[case::bad_hash("|1|x ssh-ed25519 KEY")]
fn other_lines_are_ignored(#[case] line: &str) {
    let text = format!("\n{}\n", line.replace("KEY", ED25519));
    assert!(KnownHosts::parse(&text).check("h", 22, &key(ED25519)).is_err());
}

proptest! {
    #[test]
    fn parsing_never_panics(text in any::<String>(), blob in any::<Vec<u8>>()) {
        let known = KnownHosts::parse(&text);
        if let Some(key) = HostKey::new(blob) {
            prop_assert!(known.check("h", 22, &key).is_err());
        }
    }

    #[test]
    fn a_pattern_without_wildcards_matches_only_itself(a in "[ab]{0,4}", b in "[ab]{0,4}") {
        prop_assert_eq!(wildcard(&a, &b), a == b);
        let prefix = format!("{a}*");
        prop_assert_eq!(wildcard(&prefix, &b), b.starts_with(&a));
    }
}
