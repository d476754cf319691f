//! Overrides a program's own advice, to predict how it would run with other advice.

use std::collections::BTreeSet;

use super::{JobSpec, Madvise};
use crate::Error;
use crate::advice;
use crate::size::shorten;
use filemap_core::address::vma::AdviceFlag;

impl JobSpec {
    /// Advises mappings `advice` from their creation: those with the name `name` or of the file
    /// with that name, or all. Read advice that the program gives later is replaced too.
    ///
    /// # Errors
    /// Unknown advice; no mapping or file of that name; no mappings.
    pub fn advise(&mut self, name: Option<&str>, advice: &str) -> Result<(), Error> {
        if self.mapping.is_empty() {
            let remedy = "a program that maps a file, as advice is for mappings";
            return Err(Error::MissingKey { key: "mapping".to_string(), remedy });
        }
        let advice_set = advice::parse(advice).map_err(|error| error.with_flag("advice"))?;
        let read = Madvise::Flag(AdviceFlag::Read(advice_set.read)).name();
        let open = &self.open;
        let file = |name: &str| open.iter().find(|open| open.name == name).map(|open| &open.file);
        let is_meant = |mapping: &str, file_name: &str| {
            name.is_none_or(|name| {
                mapping == name || file(file_name).is_some_and(|file| file == name)
            })
        };
        let mut advised = BTreeSet::new();
        for mapping in &mut self.mapping {
            if is_meant(&mapping.name, &mapping.open) {
                mapping.advice = Some(advice.to_string());
                advised.insert(mapping.name.clone());
            }
        }
        if let Some(name) = name.filter(|_| advised.is_empty()) {
            let files = self.file.iter().map(|file| file.name.as_str());
            let mappings = self.mapping.iter().map(|mapping| mapping.name.as_str());
            let known = files.chain(mappings).collect::<BTreeSet<_>>();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            let text = shorten(name);
            return Err(Error::UnknownName {
                what: "mapping or file",
                text,
                known: shorten(&known),
            });
        }
        for phase in self.thread.iter_mut().flat_map(|thread| &mut thread.phase) {
            let is_advised = phase.mapping.as_ref().is_some_and(|name| advised.contains(name));
            if let Some(madvise) = phase.madvise.as_mut().filter(|_| is_advised)
                && is_readahead_advice(madvise)
            {
                *madvise = read.to_string();
            }
        }
        Ok(())
    }
}

fn is_readahead_advice(madvise: &str) -> bool {
    let is_it = |known: &Madvise| known.name() == madvise;
    let known = Madvise::ALL.iter().find(|known| is_it(known));
    known.is_some_and(|known| matches!(known, Madvise::Flag(AdviceFlag::Read(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "
        [[file]]\nname = 'data'\nsize = '1m'\n[[file]]\nname = 'index'\nsize = '1m'
        [[open]]\nname = 'o'\nfile = 'data'\n[[open]]\nname = 'p'\nfile = 'index'
        [[mapping]]\nname = 'm'\nopen = 'o'\nadvice = 'sequential'
        [[mapping]]\nname = 'n'\nopen = 'p'
        [[thread]]
        [[thread.phase]]\nmapping = 'm'\nmadvise = 'normal'
        [[thread.phase]]\nmapping = 'n'\nmadvise = 'willneed'
        [[thread.phase]]\nmapping = 'n'\nmadvise = 'sequential'";

    fn override_advice(
        name: Option<&str>,
        advice: &str,
    ) -> Result<(Vec<Option<String>>, Vec<String>), Error> {
        let mut spec = JobSpec::from_toml(PROGRAM).unwrap();
        spec.advise(name, advice)?;
        let steps = spec.thread[0].phase.iter().filter_map(|phase| phase.madvise.clone());
        Ok((spec.mapping.iter().map(|mapping| mapping.advice.clone()).collect(), steps.collect()))
    }

    #[test]
    fn advice_overrides_program_advice() {
        let text = |text: &str| Some(text.to_string());
        let all = (vec![text("random"), text("random")], vec!["random", "willneed", "random"]);
        let found = override_advice(None, "random").unwrap();
        assert_eq!((found.0, found.1.iter().map(String::as_str).collect()), all);
        for name in ["n", "index"] {
            let (mappings, steps) = override_advice(Some(name), "random,hugepage").unwrap();
            assert_eq!(mappings, [text("sequential"), text("random,hugepage")]);
            assert_eq!(steps, ["normal", "willneed", "random"]);
        }
        let error = override_advice(Some("x"), "random").unwrap_err().to_string();
        assert!(error.contains("unknown mapping or file 'x'; known: data, index, m, n"), "{error}");
        let error = override_advice(None, "rnd").unwrap_err().to_string();
        assert!(error.contains("unknown advice 'rnd'"), "{error}");
    }
}
