//! A managed server and a home whose context is for it.

use serde_json::Value;

use crate::environment::{Home, Run};
use crate::rest_server::{Config, RestServer};

/// The server in memory, and a repository in `repo`.
pub struct World {
    pub server: RestServer,
    pub home: Home,
}

impl World {
    /// A server with these collections, and a repository with these files in a plain directory.
    pub fn new(collections: &[&str], files: &[(&str, &str)]) -> Self {
        Self::with_repository("filesystem: {baseDir: <home>/repo}", collections, files)
    }

    /// [`World::new`], with this section `repository` in the context.
    pub fn with_repository(repository: &str, collections: &[&str], files: &[(&str, &str)]) -> Self {
        let collections = collections.iter().map(|collection| (*collection).to_owned()).collect();
        let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
        let home = Home::with_catalogue(&format!(
            "currentContext: dev\ncontexts:\n- name: dev\n  repository: {{{repository}}}\n  managedServer: {{http: \
             {{url: '{}', auth: {{customHeaders: [{{header: K, value: v}}]}}}}}}\n",
            server.url()
        ));
        std::fs::create_dir_all(home.path("repo")).unwrap();
        let world = Self { server, home };
        for (file, content) in files {
            world.declare(file, content);
        }
        world
    }

    /// [`World::new`], with an encrypted file of secrets that is not there yet.
    pub fn with_store(collections: &[&str], files: &[(&str, &str)]) -> Self {
        let world = Self::new(collections, files);
        let store =
            "  secretStore: {file: {path: <home>/secrets.json, key: 0123456789abcdef0123456789abcdef}}\n";
        let catalogue = world.home.catalogue();
        world.home.write(".declarest/configs/contexts.yaml", &format!("{catalogue}{store}"));
        world
    }

    /// Stores a secret.
    pub fn store_secret(&self, key: &str, value: &str) {
        let run = self.run_with(&["secret", "set", key, "--stdin"], value);
        assert_eq!(run.code, 0, "{run}");
    }

    /// Writes a file of the repository.
    pub fn declare(&self, file: &str, content: &str) {
        self.home.write(&format!("repo/{file}"), content);
    }

    /// Returns the content of a file of the repository, if it exists.
    pub fn declared(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.home.path("repo").join(file)).ok()
    }

    /// Stores a resource on the server without a request, like another client.
    pub fn live(&self, path: &str, body: &str) {
        self.server.put_by_hand(path, serde_json::from_str(body).unwrap());
    }

    /// A resource of the server.
    pub fn observed(&self, path: &str) -> Option<Value> {
        self.server.get(path)
    }

    /// Returns the writes so far, such as `PUT /shops/rio`, in order.
    pub fn writes(&self) -> Vec<String> {
        self.server.writes().iter().map(ToString::to_string).collect()
    }

    /// Runs `declarest` with warnings off.
    pub fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, "")
    }

    pub fn run_with(&self, args: &[&str], stdin: &str) -> Run {
        let quiet = [("DECLAREST_IGNORE_WARNINGS", "1"), ("TERM", "xterm")];
        let mut run = self.home.run_with(args, &quiet, stdin);
        let url = self.server.url();
        run.stdout = run.stdout.replace(&url, "<server>");
        run.stderr = run.stderr.replace(&url, "<server>");
        run
    }

    /// Saves `count` resources of `/shops`, called `s0`, `s1` and so on, by commands that start at the same time. After
    /// each of them, runs `then` for the path.
    pub fn save_at_once(&self, count: usize, then: impl Fn(&str) + Sync) -> Vec<String> {
        let paths: Vec<String> = (0..count).map(|shop| format!("/shops/s{shop}")).collect();
        std::thread::scope(|scope| {
            for path in &paths {
                let then = &then;
                scope.spawn(move || {
                    let payload = format!(r#"{{"id": "{}"}}"#, path.trim_start_matches("/shops/"));
                    let run = self.run(&["resource", "save", path, "-f", &payload]);
                    assert_eq!(run.code, 0, "{run}");
                    then(path);
                });
            }
        });
        paths
    }
}
