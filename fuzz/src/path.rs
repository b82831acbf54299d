//! Logical paths and what is written like them.

use declarest_core::path::{LogicalPath, PathNames, RawPath, Selector, url_path};
use declarest_core::repository::sidecar_file;

use super::utf8;

pub fn path(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    if let Ok(path) = LogicalPath::parse(text) {
        normal(&path);
    }
    if let Ok(path) = LogicalPath::parse_scope(text) {
        normal(&path);
    }
    if let Ok(path) = RawPath::parse(text) {
        // The slash keeps the outer white space of the last segment from being trimmed.
        let again = RawPath::parse(&format!("{}/", path.as_str())).expect("a normal path is a path");
        assert_eq!(again.as_str(), path.as_str());
    }
    let shops = LogicalPath::root().child("shops").expect("a plain name");
    if let Ok(path) = shops.join(text) {
        assert!(path.is_within(&shops), "{path:?}");
    }
    for names in [PathNames::Literal, PathNames::PercentEncoded] {
        let Ok(name) = names.check(text) else { continue };
        assert_eq!(names.decode(&names.encode(name)), name);
        let Ok(child) = shops.child(&names.encode(name)) else { continue };
        assert_eq!(child.parent().as_ref(), Some(&shops), "{child:?}");
    }
    assert_eq!(url_path(&url_path(text)), url_path(text));
    if let Ok(file) = sidecar_file(text) {
        assert!(file.split('/').all(|segment| !matches!(segment, "" | "." | ".." | "_")), "{file:?}");
    }
}

fn normal(path: &LogicalPath) {
    assert!(path.segments().all(|segment| !matches!(segment, "" | "." | ".." | "_")), "{path:?}");
    let mut rebuilt = LogicalPath::root();
    for segment in path.segments() {
        let child = rebuilt.child(segment).expect("a segment of a path is one of another");
        assert!(child.is_within(&rebuilt) && rebuilt.child_of(&child) == Some(segment), "{child:?}");
        rebuilt = child;
    }
    assert_eq!(&rebuilt, path);
    assert_eq!(path.ancestors().count(), path.segments().count());
}

/// The first line is a selector, the second a path.
pub fn selector(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let (text, path) = text.split_once('\n').unwrap_or((text, "/shops/rio/tills/t1"));
    let Ok(selector) = Selector::parse(text) else { return };
    let stem = selector.document_stem();
    assert!(stem.split('/').all(|segment| !matches!(segment, "" | "." | "..")), "{stem:?}");
    let prefix = selector.literal_prefix().expect("literal segments make a path");
    if let Ok(path) = LogicalPath::parse(path)
        && selector.matches(&path)
    {
        assert!(path.is_within(&prefix), "{path:?} is not within {prefix:?}");
    }
}
