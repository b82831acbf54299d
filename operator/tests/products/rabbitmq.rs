//! RabbitMQ with its management plugin.

use std::fs;
use std::process::Command;

use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::command_line;
use crate::process::Process;
use crate::product::{Login, Product, answers, client};
use crate::scene::{By, Scene};
use crate::support::ports::free_ports;

async fn start() -> Product {
    let [mapper, broker, distribution, api] = free_ports();
    let mut epmd = Command::new("epmd");
    epmd.args(["-address", "127.0.0.1", "-port", &mapper.to_string()]);
    let epmd = Process::start(&epmd, tempfile::tempdir().unwrap());

    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("plugins"), "[rabbitmq_management].").unwrap();
    let config = format!("management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {api}\n");
    fs::write(at("rabbitmq.conf"), config).unwrap();
    // The script of the package starts the broker as another user.
    let script = fs::read_dir("/usr/lib/rabbitmq/lib").unwrap().next().unwrap().unwrap();
    let mut command = Command::new(script.path().join("sbin/rabbitmq-server"));
    command.env("HOME", directory.path()).env("RABBITMQ_NODENAME", "test@localhost");
    command.env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1").env("RABBITMQ_NODE_PORT", broker.to_string());
    command.env("RABBITMQ_DIST_PORT", distribution.to_string());
    command.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}");
    command.env("ERL_EPMD_ADDRESS", "127.0.0.1").env("ERL_EPMD_PORT", mapper.to_string());
    for (name, file) in [
        ("CONFIG_FILE", "rabbitmq.conf"),
        ("ENABLED_PLUGINS_FILE", "plugins"),
        ("FEATURE_FLAGS_FILE", "flags"),
        ("GENERATED_CONFIG_DIR", "generated"),
        ("LOG_BASE", "log"),
        ("MNESIA_BASE", "db"),
        ("PID_FILE", "pid"),
    ] {
        command.env(format!("RABBITMQ_{name}"), at(file));
    }
    command.env("RABBITMQ_CONF_ENV_FILE", "/dev/null").env("RABBITMQ_LOGS", "-");
    let server = Process::start(&command, directory);
    let origin = format!("http://127.0.0.1:{api}");
    server.wait_until(|| answers(&origin)).await;
    Product {
        name: "rabbitmq",
        origin,
        base: "/api",
        login: Login::Basic { user: "guest", password: "guest" },
        concurrency: None,
        secrets: &[("users/till:/password", "correct horse")],
        // The virtual host /.
        singletons: 1,
        further: Vec::new(),
        _held: vec![Box::new(server), Box::new(epmd)],
    }
}

/// Whether the user can log in with this password.
async fn logs_in(product: &Product, password: &str) -> bool {
    let request = client().get(format!("{}/api/whoami", product.origin));
    request.basic_auth("till", Some(password)).send().await.unwrap().status() == 200
}

#[rstest]
#[case::operator(By::Operator)]
#[case::command_line(By::CommandLine)]
#[tokio::test(flavor = "multi_thread")]
async fn users_and_virtual_hosts_are_kept(#[case] by: By) {
    let scene = Scene::start(start().await, by).await;
    let product = &scene.product;

    product.change(Method::DELETE, "/exchanges/shop/orders", Value::Null).await;
    let pattern = json!({"pattern": ".*", "definition": {"max-length": 1}});
    product.change(Method::PUT, "/policies/shop/limits", pattern).await;
    let permission = json!({"configure": ".*", "write": ".*", "read": ".*"});
    product.change(Method::PUT, "/permissions/shop/till", permission).await;
    // The binding was deleted with its exchange.
    scene.repairs(2, 2).await;
    assert_eq!(product.get("/permissions/shop/till").await["write"], "^orders$");
    assert_eq!(product.get("/policies/shop/limits").await["pattern"], "^new-");
    product.get("/exchanges/shop/orders").await;

    // The same in the virtual host `/`, with names with slashes.
    product.change(Method::DELETE, "/queues/%2F/orders%2Fnew", Value::Null).await;
    product.change(Method::DELETE, "/permissions/%2F/till", Value::Null).await;
    let policy = json!({"pattern": ".*", "definition": {"max-length": 1}});
    product.change(Method::PUT, "/policies/%2F/limits", policy).await;
    scene.repairs(3, 1).await;
    assert_eq!(product.get("/permissions/%2F/till").await["read"], "^orders/");
    assert_eq!(product.get("/policies/%2F/limits").await["pattern"], "^orders/");
    assert_eq!(product.get("/queues/%2F/orders%2Fnew").await["name"], "orders/new");
    let binding = "/bindings/%2F/e/orders/q/orders%2Fnew/order.%252F.%2523";
    assert_eq!(product.get(binding).await["routing_key"], "order./.#");

    let vhost = "{name: shop, description: The shop, tags: [staging]}";
    scene.git.write("vhosts/shop/resource.yaml", vhost);
    assert_eq!(scene.push().await.updated, 1);
    assert_eq!(product.get("/vhosts/shop").await["tags"], json!(["staging"]));

    // The arguments of a queue cannot be changed.
    let queue = "{name: invoices, durable: true, arguments: {x-max-length: 500}}";
    scene.git.write("vhosts/shop/queues/invoices/resource.yaml", queue);
    let stats = scene.push().await;
    assert_eq!((stats.created, stats.pruned), (1, 1));
    assert_eq!(product.get("/queues/shop/invoices").await["arguments"]["x-max-length"], 500);

    scene.rotates("users/till:/password", "battery staple", || logs_in(product, "battery staple")).await;
    assert!(!logs_in(product, "correct horse").await);

    scene.git.remove("vhosts/%2F/queues").remove("vhosts/%2F/bindings");
    assert_eq!(scene.push().await.pruned, 2);
    product.lacks("/queues/%2F/orders%2Fnew").await;

    // A queue with another name is another queue.
    scene.git.remove("vhosts/shop/queues/invoices");
    scene.git.write("vhosts/shop/queues/bills/resource.yaml", "{name: bills, durable: true}");
    let stats = scene.push().await;
    assert_eq!((stats.created, stats.pruned), (1, 1));
    product.get("/queues/shop/bills").await;
    product.lacks("/queues/shop/invoices").await;

    scene.git.remove("vhosts").remove("users");
    scene.push().await;
    product.lacks("/vhosts/shop").await;
    product.lacks("/users/till").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_applies_and_saves_virtual_hosts() {
    let product = start().await;
    let below = |vhost: &str, name: &str| format!("/vhosts/{vhost}/{name}/");
    let kinds = ["permissions", "queues", "exchanges", "policies", "bindings"];
    let mut collections = vec!["/users/".to_owned(), "/vhosts/".to_owned()];
    collections.extend(["shop", "%2F"].iter().flat_map(|vhost| kinds.map(|name| below(vhost, name))));
    let collections: Vec<&str> = collections.iter().map(String::as_str).collect();
    command_line::applies_saves_and_deletes(&product, &collections, &["/vhosts/shop", "/users/till"]).await;
    product.lacks("/vhosts/shop").await;
}
