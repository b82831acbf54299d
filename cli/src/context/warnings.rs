//! Warnings about insecure settings, and about references that are not replaced, which are printed at the start of a command.

use super::model::{Context, CustomHeader, Http, Tls};

/// Returns the warnings about a context, in a fixed order.
pub fn of(context: &Context) -> Vec<String> {
    let http = context.managed_server.as_ref().map(|server| &server.http);
    let oauth2 = http.and_then(Http::oauth2);
    let vault = context.secret_store.as_ref().and_then(|store| store.vault.as_ref());
    let git = context.repository.as_ref().and_then(|repository| repository.git.as_ref());
    let remote = git.and_then(|git| git.remote.as_ref());
    let ssh = remote.and_then(|remote| remote.auth.as_ref()?.ssh.as_ref());
    let unverified = |tls: Option<&Tls>| tls.and_then(|tls| tls.insecure_skip_verify).unwrap_or_default();
    let plain = |what: &str| {
        format!("{what} is plain http: an attacker on the network can read credentials and payloads")
    };
    let unchecked = |what: &str| {
        format!("{what} accepts any certificate: an attacker on the network can read and change all traffic")
    };
    let all = [
        (http.is_some_and(|http| http.url.is_plain()), plain("managedServer.http.url")),
        (
            oauth2.is_some_and(|oauth2| oauth2.token_url.is_plain()),
            plain("managedServer.http.auth.oauth2.tokenURL"),
        ),
        (unverified(http.and_then(|http| http.tls.as_ref())), unchecked("managedServer.http.tls.insecureSkipVerify")),
        (vault.is_some_and(|vault| vault.address.is_plain()), plain("secretStore.vault.address")),
        (unverified(vault.and_then(|vault| vault.tls.as_ref())), unchecked("secretStore.vault.tls.insecureSkipVerify")),
        (unverified(remote.and_then(|remote| remote.tls.as_ref())), unchecked("repository.git.remote.tls.insecureSkipVerify")),
        (
            ssh.and_then(|ssh| ssh.insecure_ignore_host_key).unwrap_or_default(),
            "repository.git.remote.auth.ssh.insecureIgnoreHostKey accepts any host key: an attacker on the network \
             can impersonate the repository"
                .to_owned(),
        ),
    ];
    let insecure = all.into_iter().filter(|(applies, _)| *applies).map(|(_, warning)| warning);
    insecure.chain(http.into_iter().flat_map(literal_references)).collect()
}

/// Returns the warnings about custom headers with a reference in a longer text. Only a reference that is the whole value is
/// replaced.
fn literal_references(http: &Http) -> impl Iterator<Item = String> {
    let headers = http.auth.iter().flat_map(|auth| auth.custom_headers.iter().flatten());
    let is_literal = |header: &&CustomHeader| {
        let (_, after) = header.value.0.expose().split_once("${").unwrap_or_default();
        after.contains('}')
    };
    headers.filter(is_literal).map(|header| {
        format!(
            "managedServer.http.auth.customHeaders: the value of {} contains ${{…}} in a longer text, which is sent as it \
             is; state the variable as the whole value, and the text before it as the prefix",
            header.header.0
        )
    })
}
