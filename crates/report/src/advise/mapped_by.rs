//! Where in a program the mappings of a file were made.

use serde::{Deserialize, Serialize};

/// A place in a program at which mappings were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MappedBy {
    /// Mappings of the file that were made there.
    pub mappings: u64,
    /// Who called, from the inside to the outside, without the C library: one at least.
    pub callers: Vec<Caller>,
}

/// A function that was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Caller {
    /// Its name, where symbols say it.
    pub function: Option<String>,
    /// The name of its source file, without directories, where debug information says it.
    pub file: Option<String>,
    /// The line of the call there.
    pub line: Option<u32>,
    /// The name of the program or library that it is in, without directories; `null` for code that
    /// lies in no file.
    pub module: Option<String>,
    /// Its address as the headers of the module count, or in memory.
    pub address: u64,
}

/// Callers that are named at most.
const MOST_CALLERS: usize = 3;

impl Caller {
    /// `main (reader.c:42)`, with the module in place of what is not known.
    pub fn text(&self) -> String {
        let Caller { function, file, line, module, address } = self;
        let module = module.as_deref();
        let place = match (file, line) {
            (Some(file), Some(line)) => Some(format!("{file}:{line}")),
            (Some(file), None) => Some(file.clone()),
            (None, _) => None,
        };
        match (function, place) {
            (Some(function), place) => {
                let place = place.or(module.map(str::to_string));
                place.map_or(function.clone(), |place| format!("{function} ({place})"))
            }
            (None, Some(place)) => place,
            (None, None) => match module {
                Some(module) => format!("{module}+{address:#x}"),
                None => format!("code at {address:#x} that lies in no file"),
            },
        }
    }
}

impl MappedBy {
    /// `open (db.c:12), called from main (reader.c:42)`.
    pub fn text(&self) -> String {
        let mut names = self.callers.iter().map(Caller::text);
        let first = names.next().unwrap_or_default();
        let callers: Vec<String> = names.take(MOST_CALLERS).collect();
        match callers.is_empty() {
            true => first,
            false => format!("{first}, called from {}", callers.join(", from ")),
        }
    }
}

/// A sentence on where mappings were made, behind others; nothing where that is not known.
pub(super) fn mapped_by(places: &[MappedBy]) -> String {
    let Some(first) = places.first() else { return String::new() };
    let more = match places.len() - 1 {
        0 => String::new(),
        1 => "; and in one other place".to_string(),
        others => format!("; and in {others} other places"),
    };
    format!(" It is mapped by {}{more}.", first.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(function: &str, file: &str, line: u32, module: &str) -> Caller {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_string());
        Caller {
            function: text(function),
            file: text(file),
            line: (line > 0).then_some(line),
            module: text(module),
            address: 0x1234,
        }
    }

    #[test]
    fn what_is_known_of_a_caller_is_named() {
        for (caller, text) in [
            (caller("main", "reader.c", 42, "reader"), "main (reader.c:42)"),
            (caller("main", "reader.c", 0, "reader"), "main (reader.c)"),
            (caller("main", "", 0, "reader"), "main (reader)"),
            (caller("", "", 0, "reader"), "reader+0x1234"),
            (caller("", "", 0, ""), "code at 0x1234 that lies in no file"),
        ] {
            assert_eq!(caller.text(), text);
        }
    }

    #[test]
    fn places_are_one_sentence() {
        let main = || caller("main", "reader.c", 42, "reader");
        let one = MappedBy { mappings: 1, callers: vec![main()] };
        assert_eq!(mapped_by(&[]), "");
        assert_eq!(mapped_by(std::slice::from_ref(&one)), " It is mapped by main (reader.c:42).");
        let open = caller("open", "db.c", 7, "db.so");
        let deep = MappedBy { mappings: 3, callers: vec![open, main(), main(), main(), main()] };
        assert_eq!(
            mapped_by(&[deep, one]),
            " It is mapped by open (db.c:7), called from main (reader.c:42), from main \
             (reader.c:42), from main (reader.c:42); and in one other place."
        );
    }
}
