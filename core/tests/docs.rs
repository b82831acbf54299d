//! Executes the examples of the user documentation.
//!
//! A comment `<!-- example: KIND ARGUMENTS -->` before a fenced block states the kind of the block. `tree` and
//! `observed` are the input of the blocks after them; all other kinds show a result of the library:
//!
//! | kind | shows |
//! |---|---|
//! | `tree` | files, as `tail -n +1` prints several: each after a line `==> NAME <==` |
//! | `observed` | a value: the server's response, or a payload to be stored |
//! | `resources` | the declared resources: path and file |
//! | `payload PATH` | the decoded payload file |
//! | `desired PATH` | the payload with defaults and the text of its sidecars |
//! | `metadata PATH` | a document that is equivalent to all documents of the path |
//! | `identity PATH` | alias and remote id |
//! | `references PATH` | the references in the payload: place, path and pointer |
//! | `dependencies PATH` | the paths that metadata states as written before the resource |
//! | `located OPERATION PATH PATH` | the request, without its body, of a resource at a path on the server and in Git |
//! | `shown OPERATION PATH` | the request without its body, with references that are not resolved |
//! | `request OPERATION PATH` | the request with the headers that metadata defines, and its body |
//! | `error PATH` | the error of syncing the resource, or of opening the tree's bundle |
//! | `differences PATH` | the differences of the observed payload |
//! | `transformed OPERATION PATH` | the observed payload after the steps of an operation |
//! | `compacted PATH` | the observed payload as it is stored |
//! | `entries PATH` | the entries of a list response: path and remote id |
//! | `next PATH` | the page after the observed response, which is the first page of a list |
//! | `file EXTENSION` | the observed value as a file |
//! | `rendered PATH` | templates and their results in a request, with `=>` between them |
//! | `identities PATH` | the same for identity templates |
//! | `bundle` | name and version of the tree as a bundle |
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails where it cannot go on")]

#[path = "support/document_keys.rs"]
mod document_keys;
#[path = "support/session.rs"]
mod session;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use declarest_core::bundle::{Bundle, BundleError, BundleSource, Options, Reference};
use declarest_core::error::with_causes;
use declarest_core::language::reference::references;
use declarest_core::language::referred::Unread;
use declarest_core::language::template::IdentityTemplate;
use declarest_core::metadata::document::{Document, Layers, compact};
use declarest_core::metadata::{NextPage, OperationName, PageView, Pager};
use declarest_core::path::LogicalPath;
use declarest_core::payload::{Descriptor, PayloadType, Value, decode, encode};
use declarest_core::repository::{read_payload, resource_file, resources};
use declarest_core::sync::{Observed, Resource, Session, SyncError, decide, desired};
use rstest::rstest;
use tempfile::TempDir;

/// An address without a server; no requests are sent.
const NOWHERE: &str = "http://127.0.0.1:9";
/// The pages with examples of all keys of metadata.
const METADATA_PAGES: [&str; 4] = ["metadata.md", "identity.md", "lists.md", "repository-layout.md"];

/// A fenced block with a marker.
struct Block {
    line: usize,
    kind: String,
    arguments: Vec<String>,
    text: String,
}

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

/// Returns the marked blocks of a page.
fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = page.lines().zip(1..).peekable();
    while let Some((line, number)) = lines.next() {
        let Some(marker) = line.strip_prefix("<!-- example: ") else { continue };
        let marker = marker.strip_suffix(" -->").unwrap_or_else(|| panic!("line {number}: no marker"));
        let mut words = marker.split(' ').map(str::to_owned);
        let fence = lines.next().map_or("", |(line, _)| line);
        assert!(fence.starts_with("```"), "line {number}: no fenced block follows the marker");
        let text: Vec<&str> =
            lines.by_ref().map(|(line, _)| line).take_while(|line| !line.starts_with("```")).collect();
        found.push(Block {
            line: number,
            kind: words.next().unwrap(),
            arguments: words.collect(),
            text: text.join("\n"),
        });
    }
    found
}

/// The input of the blocks of a page.
#[derive(Default)]
struct Reader {
    tree: Option<TempDir>,
    observed: Value,
}

impl Reader {
    /// Executes a block. Returns the actual and the expected text; `None` if the block is an input.
    fn execute(&mut self, block: &Block) -> Option<(String, String)> {
        match block.kind.as_str() {
            "tree" => self.tree = Some(directory(&block.text)),
            "observed" => self.observed = json(&block.text),
            _ => return Some(self.compare(block)),
        }
        None
    }

    /// Returns the actual and the expected text of a block.
    fn compare(&self, block: &Block) -> (String, String) {
        let path = || LogicalPath::parse(block.arguments.last().unwrap()).unwrap();
        let text = block.text.as_str();
        let values = |value: &Value| (shown(value), shown(&json(text)));
        match block.kind.as_str() {
            "resources" => texts(&self.resources(), text),
            "payload" => values(&self.stored(&path())),
            "desired" => values(&self.desired(&path()).unwrap().payload),
            "metadata" => {
                let rules = self.session().metadata.rules(&path()).unwrap();
                (format!("{:#?}", rules.resolved()), alone(text))
            }
            "identity" => {
                let identity = self.desired(&path()).unwrap().identity;
                texts(&format!("alias {}\nremote id {}", identity.alias, identity.remote_id), text)
            }
            "request" => texts(&self.request(&block.arguments[0], &path()), text),
            "error" if block.arguments[0] == "bundle" => {
                let error = self.bundle().unwrap_err().to_string();
                words(&error.replace(self.root().to_str().unwrap(), "./till-bundle"), text)
            }
            "error" => words(&self.refusal(&path()), text),
            "references" => texts(&self.references(&path()), text),
            "located" => {
                let at = LogicalPath::parse(&block.arguments[1]).unwrap();
                texts(&self.located(&block.arguments[0], &at, path()), text)
            }
            "shown" => texts(&self.shown(&block.arguments[0], &path()), text),
            "dependencies" => texts(&self.dependencies(&path()), text),
            "differences" => texts(&self.differences(&path()), text),
            "transformed" => values(&self.transformed(&block.arguments[0], &path())),
            "compacted" => {
                let defaults = self.session().metadata.rules(&path()).unwrap().resolved().defaults.clone();
                values(&compact(self.observed.clone(), &Value::Object(defaults)))
            }
            "entries" => texts(&self.entries(&path()), text),
            "next" => texts(&self.next(&path()), text),
            "file" => {
                let descriptor = Descriptor::from_extension(&block.arguments[0]);
                let file = encode(descriptor.payload_type, &self.observed).unwrap();
                texts(&String::from_utf8(file).unwrap(), text)
            }
            "rendered" => texts(&each(text, |template| self.rendered(template, &path())), text),
            "identities" => {
                let payload = self.stored(&path());
                texts(&each(text, |template| identity(template, &payload)), text)
            }
            "bundle" => {
                let manifest = self.bundle().unwrap().manifest;
                texts(&format!("{} {}", manifest.name, manifest.version), text)
            }
            kind => panic!("line {}: there is no kind \"{kind}\"", block.line),
        }
    }

    fn root(&self) -> &Path {
        self.tree.as_ref().unwrap().path()
    }

    fn session(&self) -> Session {
        session::session(self.root(), NOWHERE)
    }

    fn resources(&self) -> String {
        let listing = resources(self.session().tree.as_ref(), &LogicalPath::root(), true).unwrap();
        assert!(listing.broken.is_empty(), "{:?}", listing.broken);
        lines(listing.resources.iter().map(|file| format!("{} {}", file.path, file.file)))
    }

    fn stored(&self, path: &LogicalPath) -> Value {
        let tree = self.session().tree;
        let file = resource_file(tree.as_ref(), path).unwrap().unwrap();
        read_payload(tree.as_ref(), &file).unwrap()
    }

    /// Returns the resource at `path`; if it is not declared, only its path is known.
    fn desired(&self, path: &LogicalPath) -> Result<Resource, SyncError> {
        let session = self.session();
        match resource_file(session.tree.as_ref(), path)? {
            Some(file) => desired(&session, file),
            None => Resource::by_path(path.clone(), session.metadata.rules(path)?),
        }
    }

    fn request(&self, operation: &str, path: &LogicalPath) -> String {
        let operation = named(operation);
        let (rendered, body) = if operation == OperationName::List {
            let rules = self.session().metadata.rules(path).unwrap();
            let rendered = rules.on_collection(path).unwrap().render(operation).unwrap();
            (rendered, None)
        } else {
            let resource = self.desired(path).unwrap();
            let observed = (!self.observed.is_null()).then_some(&self.observed);
            let evaluation = resource.evaluation().unwrap().observing(observed);
            let rendered = evaluation.render(operation).unwrap();
            let body = evaluation.body(operation, &rendered, &resource.payload).unwrap();
            (rendered, body)
        };
        let query: Vec<String> =
            rendered.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let mut shown =
            format!("{} {}{query}\nAccept: {}\n", rendered.method, rendered.path, rendered.accept);
        for (name, value) in &rendered.headers {
            writeln!(shown, "{name}: {}", value.to_str().unwrap()).unwrap();
        }
        if let Some(body) = body {
            let text = String::from_utf8(body.bytes).unwrap();
            write!(shown, "Content-Type: {}\n\n{text}", body.media_type).unwrap();
        }
        shown
    }

    fn refusal(&self, path: &LogicalPath) -> String {
        let resource = match self.desired(path) {
            Ok(resource) => resource,
            Err(error) => return with_causes(&error),
        };
        let observed = |payload| Observed::new(resource.clone(), payload);
        let create = decide(&resource, &observed(None), false).map(drop);
        let update = decide(&resource, &observed(Some(Value::Null)), false).map(drop);
        with_causes(&create.and(update).unwrap_err())
    }

    fn references(&self, path: &LogicalPath) -> String {
        let found = references(&self.desired(path).unwrap().payload).unwrap();
        lines(found.iter().map(|(at, reference)| format!("{at} {} {}", reference.path, reference.pointer)))
    }

    fn shown(&self, operation: &str, path: &LogicalPath) -> String {
        let resource = self.desired(path).unwrap();
        let rendered = resource.evaluation_with(Some(&Unread)).unwrap().render(named(operation)).unwrap();
        format!("{} {}\nAccept: {}", rendered.method, rendered.path, rendered.accept)
    }

    fn located(&self, operation: &str, at: &LogicalPath, declared: LogicalPath) -> String {
        let mut resource = self.desired(at).unwrap();
        resource.declared = Some(declared);
        let rendered = resource.evaluation().unwrap().render(named(operation)).unwrap();
        format!("{} {}\nAccept: {}", rendered.method, rendered.path, rendered.accept)
    }

    fn dependencies(&self, path: &LogicalPath) -> String {
        let resource = self.desired(path).unwrap();
        lines(resource.depends_on().unwrap().iter().map(ToString::to_string))
    }

    fn differences(&self, path: &LogicalPath) -> String {
        let resource = self.desired(path).unwrap();
        let found = resource.evaluation().unwrap().compare(&self.observed).unwrap();
        lines(found.iter().map(|difference| {
            let change = format!("{:?}", difference.change).to_lowercase();
            format!("{change} {}", difference.path)
        }))
    }

    fn transformed(&self, operation: &str, path: &LogicalPath) -> Value {
        let rules = self.session().metadata.rules(path).unwrap();
        let operation = named(operation);
        let value = self.observed.clone();
        if operation == OperationName::List {
            return rules.on_collection(path).unwrap().transform(operation, value).unwrap();
        }
        let resource = self.desired(path).unwrap();
        resource.evaluation().unwrap().transform(operation, value).unwrap()
    }

    fn entries(&self, path: &LogicalPath) -> String {
        let rules = self.session().metadata.rules(path).unwrap();
        let entries = rules.entries(path, self.transformed("list", path)).unwrap().named;
        let names = rules.path_names();
        lines(entries.iter().map(|entry| format!("{} {}", entry.path(path, names).unwrap(), entry.remote_id)))
    }

    fn next(&self, path: &LogicalPath) -> String {
        let rules = self.session().metadata.rules(path).unwrap();
        let page = PageView {
            answer: &self.observed,
            link: None,
            unreadable_links: false,
            total: None,
            pages: None,
            next: None,
            continues: false,
        };
        match Pager::new(&rules, path).next(page).unwrap() {
            NextPage::End => "end".to_owned(),
            NextPage::At(reference) => format!("at {reference}"),
            NextPage::With(parameters) => {
                let text = |value: &Value| value.scalar_text().unwrap_or_default();
                let parameters = parameters.iter().map(|(name, value)| format!("{name}={}", text(value)));
                format!("with {}", parameters.collect::<Vec<_>>().join("&"))
            }
            NextPage::Unknown => "unknown".to_owned(),
        }
    }

    /// Renders `template` as a query parameter of a read of the resource.
    fn rendered(&self, template: &str, path: &LogicalPath) -> String {
        let stored = fs::read(self.root().join(path.relative()).join("resource.yaml")).unwrap();
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join(path.relative());
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("resource.yaml"), stored).unwrap();
        let template = serde_json::Value::from(template);
        let document = format!("{{\"operations\": {{\"get\": {{\"query\": {{\"q\": {template}}}}}}}}}");
        fs::write(directory.join("metadata.json"), document).unwrap();
        let reader = Self { tree: Some(root), observed: Value::Null };
        let rendered = reader
            .desired(path)
            .and_then(|resource| Ok(resource.evaluation()?.render(OperationName::Get)?.query.remove(0).1));
        rendered.unwrap_or_else(|_| "error".to_owned())
    }

    fn bundle(&self) -> Result<Bundle, BundleError> {
        let cache = tempfile::tempdir().unwrap();
        let reference = Reference::parse(self.root().to_str().unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(BundleSource::new(Options::new(cache.path())).open(&reference))
    }
}

/// Writes the files of a `tree` block to a directory.
fn directory(text: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (file, content) in files(text) {
        let file = root.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    root
}

/// Returns the files of a `tree` block: name and content.
fn files(text: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("==> ").and_then(|line| line.strip_suffix(" <==")) {
            Some(file) => files.push((file.to_owned(), Vec::new())),
            None => files.last_mut().unwrap().1.push(line),
        }
    }
    let content = |lines: Vec<&str>| format!("{}\n", lines.join("\n").trim_end());
    files.into_iter().map(|(file, lines)| (file, content(lines))).collect()
}

fn json(text: &str) -> Value {
    decode(PayloadType::Json, text.as_bytes()).unwrap()
}

fn named(operation: &str) -> OperationName {
    OperationName::ALL.into_iter().find(|name| name.key() == operation).unwrap()
}

/// Returns the effective metadata of a single document.
fn alone(document: &str) -> String {
    let document = Document::decode(PayloadType::Yaml, document.as_bytes()).unwrap();
    let mut layers = Layers::default();
    layers.push(&document, &|file| Err(format!("cannot include {file}").into())).unwrap();
    format!("{:#?}", layers.resolve().unwrap())
}

fn identity(template: &str, payload: &Value) -> String {
    let name = IdentityTemplate::parse(template).and_then(|template| template.evaluate(payload));
    name.unwrap_or_else(|_| "error".to_owned())
}

/// Returns lines `TEMPLATE => RESULT`, with the results of `result`.
fn each(text: &str, result: impl Fn(&str) -> String) -> String {
    lines(text.lines().map(|line| {
        let (template, _) = line.split_once("=>").unwrap();
        format!("{template}=> {}", result(template.trim()))
    }))
}

fn shown(value: &Value) -> String {
    String::from_utf8(encode(PayloadType::Json, value).unwrap()).unwrap()
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns texts to compare without white space at the end.
fn texts(actual: &str, expected: &str) -> (String, String) {
    (actual.trim_end().to_owned(), expected.trim_end().to_owned())
}

/// Returns texts to compare without regard to line breaks.
fn words(actual: &str, expected: &str) -> (String, String) {
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    (joined(actual), joined(expected))
}

#[rstest]
fn examples_are_true(
    #[values(
        "repository-layout.md", "payload-formats.md", "metadata.md", "identity.md", "lists.md",
        "templates.md", "bundles.md"
    )]
    name: &str,
) {
    let text = fs::read_to_string(page(name)).unwrap();
    let mut reader = Reader::default();
    let (mut checked, mut wrong) = (0, String::new());
    for block in blocks(&text) {
        if let Some((actual, expected)) = reader.execute(&block) {
            checked += 1;
            if actual != expected {
                writeln!(wrong, "--- line {}: expected\n{expected}\n--- actual\n{actual}", block.line)
                    .unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "docs/{name}\n{wrong}");
    assert!(checked > 0, "docs/{name} has no example");
}

/// Each key of metadata is in an example, whose results [`examples_are_true`] checks.
#[test]
fn every_key_of_metadata_has_an_example() {
    let mut used = BTreeSet::new();
    for name in METADATA_PAGES {
        let text = fs::read_to_string(page(name)).unwrap();
        let trees = blocks(&text).into_iter().filter(|block| block.kind == "tree");
        for (file, content) in trees.flat_map(|tree| files(&tree.text)) {
            // The example of a syntax error is valid YAML.
            if file.ends_with("metadata.yaml") {
                let document = decode(PayloadType::Yaml, content.as_bytes()).unwrap();
                let document = encode(PayloadType::Json, &document).unwrap();
                used.extend(document_keys::used(&serde_json::from_slice(&document).unwrap()));
            }
        }
    }
    let allowed = document_keys::allowed();
    let missing: Vec<_> = allowed.difference(&used).collect();
    assert!(missing.is_empty(), "{METADATA_PAGES:?} have no example of {missing:?}");
}

/// A page that is not in the summary is not part of the book.
#[test]
fn pages_are_in_the_summary() {
    let summary = fs::read_to_string(page("SUMMARY.md")).unwrap();
    for entry in fs::read_dir(page("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_page = name != "SUMMARY.md" && Path::new(&name).extension().is_some_and(|found| found == "md");
        assert!(!is_page || summary.contains(&format!("({name})")), "docs/{name} is not in docs/SUMMARY.md");
    }
}

/// Returns the anchors of the headings of a page, as mdBook and GitHub form them.
fn anchors(page: &str) -> Vec<String> {
    let mut in_block = false;
    let headings = page.lines().filter(|line| {
        in_block ^= line.starts_with("```");
        !in_block && line.starts_with('#')
    });
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|kept| kept.is_alphanumeric() || matches!(kept, ' ' | '-' | '_'));
        kept.collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// Returns the targets of the links of a page.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

#[rstest]
fn links_lead_to_files_and_headings(
    #[files("../docs/**/*.md")]
    #[files("../*.md")]
    #[files("../bundles/*/README.md")]
    #[files("../charts/*/README.md")]
    file: PathBuf,
) {
    let text = fs::read_to_string(&file).unwrap();
    for link in links(&text).filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = if path.is_empty() { file.clone() } else { file.parent().unwrap().join(path) };
        assert!(target.exists(), "{}: {link} does not exist", file.display());
        if !anchor.is_empty() {
            let headings = anchors(&fs::read_to_string(&target).unwrap());
            assert!(headings.iter().any(|heading| heading == anchor), "{}: {link}", file.display());
        }
    }
}
