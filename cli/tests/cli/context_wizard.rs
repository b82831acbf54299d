//! The questions of `context add` on a terminal.

use rstest::rstest;

use crate::environment::Home;
use crate::terminal::{INTERRUPT, Terminal};

fn add(home: &Home, args: &[&str]) -> Terminal {
    let plain = [("TERM", "xterm"), ("NO_COLOR", "1"), ("DECLAREST_IGNORE_WARNINGS", "1")];
    Terminal::start(home.command(&[&["context", "add"], args].concat(), &plain))
}

fn shown(home: &Home) -> String {
    home.run_with(&["context", "show"], &[], "").to_string()
}

#[test]
fn the_shortest_way() {
    let home = Home::new();
    let mut terminal = add(&home, &[]);
    terminal.answer("Name of the context: ", "dev");
    terminal.answer("Repository: filesystem, git, none [filesystem]: ", "");
    terminal.answer("Directory of the repository: ", "");
    terminal.answer("an answer is required", "");
    terminal.answer("Directory of the repository: ", "/srv/state");
    terminal.answer("Directory of metadata, empty for the repository: ", "");
    terminal.answer("URL of the managed server, empty for none: ", "");
    terminal.answer("Secret store: none, file, vault [none]: ", "");
    terminal.answer("Preference as NAME=VALUE, empty for no further one: ", "");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    insta::assert_snapshot!(shown(&home), @r"
    exit 0
    --- stdout
    contexts:
        - name: dev
          repository:
            filesystem:
                baseDir: /srv/state
    currentContext: dev
    --- stderr
    ");
}

#[test]
fn every_branch() {
    let home = Home::new();
    let mut terminal = add(&home, &["prod"]);
    for (question, answer) in [
        ("Repository: ", "g"),
        ("Directory of the checkout: ", "/srv/checkout"),
        ("Create the checkout if it is missing? [Y/n]: ", ""),
        ("URL of the remote, empty for none: ", "ssh://git@git.example.com/acme/state.git"),
        ("Branch, empty for main: ", "live"),
        ("Push commits automatically? [Y/n]: ", "n"),
        ("Authentication: none, basic, ssh, accessKey [none]: ", "ssh"),
        ("File of the private key: ", "/home/alice/.ssh/id_ed25519"),
        ("User, empty for git: ", ""),
        ("Passphrase of the key, empty for none: ", "kettle"),
        ("File of known hosts, empty for ~/.ssh/known_hosts: ", ""),
        ("File of the CA certificate, empty for those of the system: ", ""),
        ("Directory of metadata, empty for the repository: ", "/srv/metadata"),
        ("URL of the managed server, empty for none: ", "https://shop.example.com/api"),
        ("OpenAPI document: URL or file, empty for none: ", "https://shop.example.com/openapi.json"),
        ("Header of each request as NAME=VALUE, empty for no further one: ", "X-Tenant"),
        ("Header of each request as NAME=VALUE, empty for no further one: ", "X-Tenant=blue"),
        ("Header of each request as NAME=VALUE, empty for no further one: ", ""),
        ("URL of the proxy, empty for that of the environment: ", "http://proxy.example.com:3128"),
        ("Authentication: none, basic, oauth2, customHeaders [none]: ", "x"),
        ("Authentication: none, basic, oauth2, customHeaders [none]: ", "basic"),
        ("Username: ", "ops"),
        ("Password, empty to be asked for it when it is needed: ", ""),
        ("File of the CA certificate, empty for those of the system: ", "/etc/ca.pem"),
        ("Secret store: none, file, vault [none]: ", "vault"),
        ("Address of Vault: ", "https://vault.example.com:8200"),
        ("Mount of the KV engine, empty for secret: ", ""),
        ("Prefix of the paths, empty for none: ", "shop"),
        ("Authentication: token, password, appRole [token]: ", "app"),
        ("Role id: ", "r1"),
        ("Secret id: ", "c4nary"),
        ("File of the CA certificate, empty for those of the system: ", ""),
        ("Preference as NAME=VALUE, empty for no further one: ", "team=shops"),
        ("Preference as NAME=VALUE, empty for no further one: ", ""),
    ] {
        terminal.answer(question, answer);
    }
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(!screen.contains("c4nary") && !screen.contains("kettle"), "{screen}");
    insta::assert_snapshot!(shown(&home), @r"
    exit 0
    --- stdout
    contexts:
        - managedServer:
            http:
                auth:
                    basic:
                        credentialsRef:
                            name: prod-server
                defaultHeaders:
                    X-Tenant: blue
                openapi: https://shop.example.com/openapi.json
                proxy:
                    http: http://proxy.example.com:3128
                    https: http://proxy.example.com:3128
                tls:
                    caCertFile: /etc/ca.pem
                url: https://shop.example.com/api
          metadata:
            baseDir: /srv/metadata
          name: prod
          preferences:
            team: shops
          repository:
            git:
                local:
                    autoInit: true
                    baseDir: /srv/checkout
                remote:
                    auth:
                        ssh:
                            passphrase: kettle
                            privateKeyFile: /home/alice/.ssh/id_ed25519
                    autoSync: false
                    branch: live
                    url: ssh://git@git.example.com/acme/state.git
          secretStore:
            vault:
                address: https://vault.example.com:8200
                auth:
                    appRole:
                        roleID: r1
                        secretID: c4nary
                pathPrefix: shop
    credentials:
        - name: prod-server
          password:
            prompt: true
          username: ops
    currentContext: prod
    --- stderr
    ");
}

#[rstest]
#[case::home("~/state", "<home>/state")]
#[case::home_itself("~", "<home>")]
#[case::relative("state", "<home>/state")]
#[case::variable("${HOME}/state", "${HOME}/state")]
fn directories_are_absolute(#[case] answer: &str, #[case] expected: &str) {
    let home = Home::new();
    let mut terminal = add(&home, &["dev"]);
    terminal.answer("Repository: ", "");
    terminal.answer("Directory of the repository: ", answer);
    for question in ["Directory of metadata", "URL of the managed server", "Secret store: ", "Preference as"]
    {
        terminal.answer(question, "");
    }
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(home.catalogue().contains(&format!("baseDir: {expected}\n")), "{}", home.catalogue());
}

#[test]
fn nothing_is_added_without_all_answers() {
    let home = Home::new();
    let mut terminal = add(&home, &["dev"]);
    terminal.expect("Repository: ");
    terminal.press(INTERRUPT);
    let (code, screen) = terminal.end();
    assert_eq!(code, 2, "{screen}");
    assert!(!home.path(".declarest/configs/contexts.yaml").exists());
}
