//! The modules of a crate with their names, and the files that paths lead to.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, Item, ItemMod, Lit, Meta};

use super::Import;
use super::imports::{self, Mention};

/// The segments of a path in code.
pub type Route = Vec<String>;

/// A source file.
pub struct File {
    pub path: PathBuf,
    /// The path of its module in the crate.
    pub place: Vec<String>,
}

/// The meaning of a name in a module.
pub enum Name {
    Module(usize),
    Item,
    Use(Route),
}

/// A module with a file of its own, or inside of a file.
pub struct Module {
    parent: usize,
    file: usize,
    pub names: HashMap<String, Vec<Name>>,
    pub globs: Vec<Route>,
    pub mentions: Vec<Mention>,
}

/// The target of a path: a module, or an item of the module.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    ItemOf(usize),
}

/// The sources of a crate. The first module is its root.
pub struct Crate {
    files: Vec<File>,
    modules: Vec<Module>,
    /// The order of the modules of the root, if its documentation states it.
    pub order: Option<Vec<String>>,
}

impl Crate {
    /// Reads the file of the root and the files of all modules.
    pub fn read(root: &Path) -> Result<Self, String> {
        let mut sources = Self { files: Vec::new(), modules: Vec::new(), order: None };
        let directory = root.parent().unwrap_or(Path::new("")).to_owned();
        let attributes = sources.read_file(root.to_owned(), &directory, Vec::new(), 0)?;
        sources.order = order(&attributes);
        Ok(sources)
    }

    /// Reads a file with its children, whose files are in `directory`, and returns the attributes of the file.
    fn read_file(
        &mut self,
        path: PathBuf,
        directory: &Path,
        place: Vec<String>,
        parent: usize,
    ) -> Result<Vec<Attribute>, String> {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let content = syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        self.files.push(File { path, place });
        self.read_items(&content.items, directory, parent, self.files.len() - 1)?;
        Ok(content.attrs)
    }

    fn read_items(
        &mut self,
        items: &[Item],
        directory: &Path,
        parent: usize,
        file: usize,
    ) -> Result<usize, String> {
        let at = self.modules.len();
        self.modules.push(Module {
            parent,
            file,
            names: HashMap::new(),
            globs: Vec::new(),
            mentions: Vec::new(),
        });
        for item in items.iter().filter(|item| !imports::is_for_tests(imports::attributes(item))) {
            if let Item::Mod(child) = item {
                let name = child.ident.to_string();
                let module = self.read_child(child, &name, directory, at)?;
                self.modules[at].names.entry(name).or_default().push(Name::Module(module));
            } else {
                imports::collect(item, &mut self.modules[at]);
            }
        }
        Ok(at)
    }

    fn read_child(
        &mut self,
        child: &ItemMod,
        name: &str,
        directory: &Path,
        parent: usize,
    ) -> Result<usize, String> {
        let file = self.modules[parent].file;
        let inner = directory.join(name);
        if let Some((_, items)) = &child.content {
            return self.read_items(items, &inner, parent, file);
        }
        let stated = child.attrs.iter().find_map(|attribute| text_of(attribute, "path"));
        let stated = stated.map(|stated| self.files[file].path.with_file_name(stated));
        let own = stated.unwrap_or_else(|| directory.join(format!("{name}.rs")));
        let place = [&*self.files[file].place, &[name.to_owned()]].concat();
        let module = self.modules.len();
        let path = if own.is_file() { own } else { inner.join("mod.rs") };
        self.read_file(path, &inner, place, parent)?;
        Ok(module)
    }

    /// Returns the names of the modules of the root.
    pub fn children(&self) -> Vec<&str> {
        let places = self.files.iter().map(|file| &*file.place);
        let mut names: Vec<&str> =
            places.filter_map(|place| if let [name] = place { Some(&**name) } else { None }).collect();
        names.sort_unstable();
        names
    }

    /// Returns all imports of a file by another one.
    pub fn imports(&self) -> Vec<Import<'_>> {
        let mut imports = Vec::new();
        for (at, module) in self.modules.iter().enumerate() {
            for mention in &module.mentions {
                let from = &self.files[module.file];
                let to = self.files_of(at, &mention.route).into_iter().filter(|to| *to != module.file);
                imports.extend(to.map(|to| Import {
                    from,
                    to: &self.files[to],
                    line: mention.line,
                    text: mention.route.join("::"),
                }));
            }
        }
        imports
    }

    /// Returns the files that a path in module `at` leads to: that of its target, and those of the modules that it
    /// names on the way.
    fn files_of(&self, at: usize, route: &[String]) -> BTreeSet<usize> {
        let starts = self.resolve(at, &route[..1], &mut HashSet::new());
        let is_item = !starts.iter().any(|target| matches!(target, Target::Module(_)));
        if is_item && self.modules[at].names.contains_key(&route[0]) {
            // The declaration of the name is a mention itself.
            return BTreeSet::new();
        }
        let mut files = BTreeSet::new();
        for end in 1..=route.len() {
            let targets = self.resolve(at, &route[..end], &mut HashSet::new());
            files.extend(targets.into_iter().filter_map(|target| match target {
                Target::Module(module) => Some(self.modules[module].file),
                Target::ItemOf(module) => (end == route.len()).then_some(self.modules[module].file),
            }));
        }
        files
    }

    fn resolve(&self, at: usize, route: &[String], seen: &mut HashSet<(usize, String)>) -> Vec<Target> {
        let Some((first, rest)) = route.split_first() else { return Vec::new() };
        let mut targets = match first.as_str() {
            "crate" => vec![Target::Module(0)],
            "self" => vec![Target::Module(at)],
            "super" => vec![Target::Module(self.modules[at].parent)],
            name => self.meanings(at, name, seen),
        };
        for segment in rest {
            if targets.iter().any(|target| matches!(target, Target::Module(_))) {
                targets.retain(|target| matches!(target, Target::Module(_)));
            }
            targets = targets.into_iter().flat_map(|target| self.step(target, segment, seen)).collect();
        }
        targets
    }

    fn step(&self, target: Target, segment: &str, seen: &mut HashSet<(usize, String)>) -> Vec<Target> {
        let Target::Module(module) = target else { return vec![target] };
        if segment == "super" {
            return vec![Target::Module(self.modules[module].parent)];
        }
        let meanings = self.meanings(module, segment, seen);
        // Macros may define items that are not visible here.
        if meanings.is_empty() { vec![Target::ItemOf(module)] } else { meanings }
    }

    /// Returns the targets of `name` in module `at`: its own names first, then those of glob imports.
    fn meanings(&self, at: usize, name: &str, seen: &mut HashSet<(usize, String)>) -> Vec<Target> {
        if !seen.insert((at, name.to_owned())) {
            return Vec::new();
        }
        let module = &self.modules[at];
        let mut targets = Vec::new();
        for meaning in module.names.get(name).into_iter().flatten() {
            match meaning {
                Name::Module(module) => targets.push(Target::Module(*module)),
                Name::Item => targets.push(Target::ItemOf(at)),
                Name::Use(route) => targets.extend(self.resolve(at, route, seen)),
            }
        }
        if !module.names.contains_key(name) {
            for glob in &module.globs {
                for target in self.resolve(at, glob, seen) {
                    if let Target::Module(module) = target {
                        targets.extend(self.meanings(module, name, seen));
                    }
                }
            }
        }
        seen.remove(&(at, name.to_owned()));
        targets
    }
}

/// Returns the order that the documentation of the root states: names in backticks that `→` separates.
fn order(attributes: &[Attribute]) -> Option<Vec<String>> {
    let documentation: Vec<String> =
        attributes.iter().filter_map(|attribute| text_of(attribute, "doc")).collect();
    let documentation = documentation.join(" ");
    let (before, after) = documentation.split_once('→')?;
    let quoted = |text: &str| text.split('`').nth(1).map(str::to_owned);
    let first = before.rsplit('`').nth(1).map(str::to_owned);
    Some(first.into_iter().chain(after.split('→').filter_map(quoted)).collect())
}

/// Returns the text of `#[name = "text"]`.
fn text_of(attribute: &Attribute, name: &str) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(literal) = &pair.value else { return None };
    match &literal.lit {
        Lit::Str(text) if pair.path.is_ident(name) => Some(text.value()),
        _ => None,
    }
}
