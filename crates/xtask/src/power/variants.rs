//! Enumerations of the core whose variants can be put for each other.

use std::collections::BTreeMap;

use anyhow::Result;

/// Variants without values, of each enumeration: what can be put for each other.
pub type Variants = BTreeMap<String, Vec<String>>;

/// The enumerations of a source file whose variants can be put for each other.
///
/// # Errors
/// When it is no Rust.
pub fn variants(text: &str) -> Result<Variants> {
    let mut all = Variants::new();
    for item in syn::parse_file(text)?.items {
        if let syn::Item::Enum(item) = item {
            let units = item.variants.iter().filter(|variant| variant.fields.is_empty());
            all.insert(item.ident.to_string(), units.map(|unit| unit.ident.to_string()).collect());
        }
    }
    // Names of kernels and of switches, not what rules decide.
    NAMES.iter().for_each(|name| drop(all.remove(*name)));
    Ok(all)
}

const NAMES: [&str; 3] = ["Kernel", "Switch", "Family"];
