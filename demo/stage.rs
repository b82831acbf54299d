//! Everything on the stage: the managed server, the repository, the operator; and how to wait for them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::Failure;
use super::git_remote::GitRemote;
use super::operator::{Launch, Operator};
use super::rest_server::{Config, Requirement, RestServer};
use super::screen;

/// What a step may take, before the show fails. Above the policy's sync interval of 10 s.
pub const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(100);
/// As in `manifests/secret.yaml`.
const CREDENTIALS: (&str, &str) = ("declarest", "only-for-the-demo");

pub struct Stage {
    pub server: RestServer,
    pub remote: GitRemote,
    pub operator: Operator,
    /// Holds the operator's state and log; goes with the stage.
    directory: TempDir,
}

impl Stage {
    /// Starts everything but does not wait for the operator.
    pub fn set_up(operator: Option<PathBuf>) -> Result<Stage, Failure> {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo");
        let binary = operator.map_or_else(built_operator, Ok)?;
        let server = RestServer::start(Config {
            collections: ["/shops", "/shops/*/tills", "/price-lists"].map(str::to_owned).to_vec(),
            server_ids: vec!["/order-routes".to_owned()],
            versioned: vec!["/shops".to_owned()],
            id_prefix: "route-".to_owned(),
            requirements: vec![Requirement {
                collection: "/shops/*/tills".to_owned(),
                pointer: "/printer".to_owned(),
            }],
            log_bodies: true,
            ..Config::default()
        })
        .map_err(|error| Failure::new(format!("cannot start the REST server: {error}")))?;
        server.require_basic(CREDENTIALS.0, CREDENTIALS.1);

        let remote = GitRemote::new();
        copy_tree(&demo.join("desired"), &remote.work_tree())?;
        remote.commit("Declare the shops");
        remote.push();

        let directory = tempfile::tempdir()
            .map_err(|error| Failure::new(format!("cannot create a temporary directory: {error}")))?;
        let operator = Operator::start(&Launch {
            binary: &binary,
            manifests: &demo.join("manifests"),
            state: &directory.path().join("state"),
            log: &directory.path().join("operator.log"),
            environment: &[
                ("DECLAREST_VAR_SERVER_URL", server.url()),
                ("DECLAREST_VAR_REPOSITORY_URL", remote.file_url()),
            ],
        })?;
        Ok(Stage { server, remote, operator, directory })
    }

    /// Waits until the operator's API answers.
    pub async fn connect(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if self.operator.connect().await? {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Failure::new(format!("the operator's API does not listen within {PATIENCE:?}")));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the policy is as wanted; returns it and the time it took.
    pub async fn wait_for(
        &mut self,
        what: &str,
        wanted: impl Fn(&Value, &RestServer) -> bool,
    ) -> Result<(Value, Duration), Failure> {
        let start = Instant::now();
        loop {
            self.operator.check_alive()?;
            if let Some(policy) = self.operator.policy().await?
                && wanted(&policy, &self.server)
            {
                return Ok((policy, start.elapsed()));
            }
            if start.elapsed() > PATIENCE {
                return Err(Failure::new(format!("{what}: not reached within {PATIENCE:?}")));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the result of the contract is in this phase; returns it and the time it took.
    pub async fn wait_for_phase(&mut self, phase: &str) -> Result<(Value, Duration), Failure> {
        let start = Instant::now();
        loop {
            self.operator.check_alive()?;
            let contract = self.operator.contract().await?;
            if contract["phase"] == phase {
                return Ok((contract, start.elapsed()));
            }
            if start.elapsed() > PATIENCE {
                return Err(Failure::new(format!(
                    "the contract is not {phase} within {PATIENCE:?}: {contract}"
                )));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Commits and pushes the work tree, notifies the operator, and returns the commit id.
    pub async fn publish(&mut self, message: &str) -> Result<String, Failure> {
        let commit = self.remote.commit(message);
        self.remote.push();
        self.operator.fetch_now().await?;
        screen::action(&format!("git push: {message} ({})", &commit[..12]));
        Ok(commit)
    }

    /// Prints the last lines of the log and the policy's status, to find the cause.
    pub async fn explain_failure(&self) {
        eprintln!("\nlast lines of the operator's log:");
        for line in self.operator.log_tail(20) {
            eprintln!("  {line}");
        }
        match self.operator.policy().await {
            Ok(Some(policy)) => eprintln!("\nstatus of the policy:\n{:#}", policy["status"]),
            Ok(None) => eprintln!("\nthe operator has no policy"),
            Err(failure) => eprintln!("\n{failure}"),
        }
    }

    /// How to go on by hand.
    pub fn print_invitation(&self) {
        let (user, password) = CREDENTIALS;
        let (server, api, work_tree) =
            (self.server.url(), self.operator.kubeconfig().display(), self.remote.work_tree());
        println!(
            "\nEverything keeps running. Try, in another terminal:\n\
             \n  what the server holds:\n    curl -u {user}:{password} {server}/shops/rio\n\
             \n  an edit by hand, which is put back within 10 s:\n    \
             curl -u {user}:{password} -X PATCH -d '{{\"currency\":\"USD\"}}' {server}/shops/rio\n\
             \n  a change in Git, which is fetched within the poll interval of 1 min:\n    \
             cd {}\n    $EDITOR shops/rio/resource.yaml\n    git commit -am 'Change rio' && git push\n\
             \n  the operator's objects:\n    kubectl --kubeconfig {api} get syncpolicies\n    \
             kubectl --kubeconfig {api} annotate --overwrite syncpolicy shops declarest.io/sync-requested-at=$(date +%s)\n\
             \n  its log:\n    tail -f {}\n\nCtrl-C ends it and removes all of it.",
            work_tree.display(),
            self.directory.path().join("operator.log").display()
        );
    }

    /// Ends the operator in an orderly way; what is left goes with the value.
    pub async fn close(self) -> Result<(), Failure> {
        let status = self.operator.shut_down().await?;
        if status.success() { Ok(()) } else { Err(Failure::new(format!("the operator ended with {status}"))) }
    }
}

/// Examples are built into a directory below the one of the binaries.
fn built_operator() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program's own path: {error}")))?;
    let binaries = own.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let binary = binaries.join(format!("declarest-operator{}", std::env::consts::EXE_SUFFIX));
    if binary.is_file() {
        Ok(binary)
    } else {
        Err(Failure::new(format!(
            "{} is missing; build it with `cargo build -p declarest-operator`, or name one with --operator",
            binary.display()
        )))
    }
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), Failure> {
    let failure =
        |error| Failure::new(format!("cannot copy {} to {}: {error}", from.display(), to.display()));
    std::fs::create_dir_all(to).map_err(failure)?;
    for entry in std::fs::read_dir(from).map_err(failure)? {
        let entry = entry.map_err(failure)?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(failure)?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target).map_err(failure)?;
        }
    }
    Ok(())
}
