//! The names that an item defines, and the paths that it mentions.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemUse, Meta, Path, TraitItem, UseTree, VisRestricted};

use super::sources::{Module, Name, Route};

/// A path in the source.
pub struct Mention {
    pub route: Route,
    pub line: usize,
}

/// Adds the names and mentions of `item` to its module.
pub fn collect(item: &Item, module: &mut Module) {
    if let Some(name) = defined(item) {
        module.names.entry(name.to_string()).or_default().push(Name::Item);
    }
    Collector { module }.visit_item(item);
}

fn defined(item: &Item) -> Option<&Ident> {
    Some(match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => return item.ident.as_ref(),
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    })
}

/// Returns the attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns whether code with these attributes is compiled for tests only.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.starts_with("all") && condition.contains("test")
        }
        _ => false,
    })
}

struct Collector<'a> {
    module: &'a mut Module,
}

impl Collector<'_> {
    fn mention(&mut self, route: Route, line: usize) {
        self.module.mentions.push(Mention { route, line });
    }

    /// Adds the leaves of a `use` declaration, which starts with `route`.
    fn import(&mut self, tree: &UseTree, mut route: Route) {
        match tree {
            UseTree::Path(path) => {
                route.push(path.ident.to_string());
                self.import(&path.tree, route);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, route.clone())),
            UseTree::Glob(glob) => {
                let line = glob.star_token.spans[0].start().line;
                self.module.globs.push(route.clone());
                self.mention(route, line);
            }
            UseTree::Name(leaf) => self.bind(route, &leaf.ident, None),
            UseTree::Rename(leaf) => self.bind(route, &leaf.ident, Some(&leaf.rename)),
        }
    }

    fn bind(&mut self, mut route: Route, ident: &Ident, rename: Option<&Ident>) {
        if ident != "self" {
            route.push(ident.to_string());
        }
        let name = rename.map(ToString::to_string).or_else(|| route.last().cloned()).unwrap_or_default();
        // `use name;` of another crate would lead to itself.
        if route != [&*name] {
            self.module.names.entry(name).or_default().push(Name::Use(route.clone()));
        }
        self.mention(route, ident.span().start().line);
    }

    /// Adds the paths in the tokens of a macro or attribute, which have at least two segments.
    fn scan(&mut self, tokens: TokenStream) {
        let mut route = Route::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.flush(&mut route, line);
                    }
                    line = ident.span().start().line;
                    route.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.flush(&mut route, line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.scan(group.stream());
                    }
                }
            }
        }
        self.flush(&mut route, line);
    }

    fn flush(&mut self, route: &mut Route, line: usize) {
        let route = std::mem::take(route);
        if route.len() > 1 {
            self.mention(route, line);
        }
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !matches!(item, ImplItem::Fn(function) if is_for_tests(&function.attrs)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if !matches!(item, TraitItem::Fn(function) if is_for_tests(&function.attrs)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, Route::new());
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none()
            && let Some(first) = path.segments.first()
        {
            let route = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.mention(route, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.visit_path(&invocation.path);
        self.scan(invocation.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.scan(list.tokens.clone());
        }
    }

    /// The path of `pub(in path)` is not an import.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}
}
