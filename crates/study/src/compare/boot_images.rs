//! Kernel images that a comparison boots.

use std::collections::BTreeSet;
use std::path::Path;

use filemap_core::series::Series;
use filemap_job::Image;

use crate::error::Error;
use crate::host;
use crate::variants::Variant;

/// Value of `--modules` for an image with everything built in, when another image needs modules.
pub const NONE: &str = "none";

/// A kernel image and the directory of its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootImage {
    pub path: String,
    pub modules: Option<String>,
}

impl BootImage {
    /// Pairs the images at `paths` with `modules` by position; a single directory is used for all
    /// images. [`NONE`] stands for no modules.
    pub fn pair_with_modules(
        paths: Vec<String>,
        modules: &[String],
    ) -> Result<Vec<BootImage>, Error> {
        if paths.is_empty() && !modules.is_empty() {
            let message = "--modules is for a kernel to boot; give that with --image, or remove it";
            return Err(Error::Usage(message.to_string()));
        }
        if modules.len() > 1 && modules.len() != paths.len() {
            return Err(Error::Usage(format!(
                "--modules is given {} times for {} images; give it once for all, or once for \
                 each, with {NONE} for an image that needs no modules",
                modules.len(),
                paths.len()
            )));
        }
        let modules_of = |number: usize| {
            modules.get(number).or(modules.first()).filter(|path| *path != NONE).cloned()
        };
        let pairs = paths.into_iter().enumerate();
        Ok(pairs.map(|(number, path)| BootImage { path, modules: modules_of(number) }).collect())
    }
}

/// The variants to run on a booted kernel. If the model runs as well, the series of `variants` are
/// for the model and are removed here, leaving settings: a kernel contains the series it was built
/// with. Without the model, the series are switched at run time in the booted kernel.
pub fn kernel_variants(variants: &[Variant], beside_model: bool) -> Vec<Variant> {
    let own = |variant: &Variant| {
        if beside_model { variant.without_series() } else { variant.clone() }
    };
    let mut names = BTreeSet::new();
    variants.iter().map(own).filter(|variant| names.insert(variant.name())).collect()
}

/// The column name of `variant` on the image called `image`.
pub fn image_variant_name(image: &str, variant: &Variant) -> String {
    if *variant == Variant::baseline() {
        image.to_string()
    } else {
        format!("{image}+{}", variant.name())
    }
}

/// Makes every image switch the union of all series in `booted`, so that a variant without a series
/// runs with it switched off. Each image comes with the series of its job.
pub fn set_switches<'a>(booted: impl Iterator<Item = (&'a mut Image, Series)>) {
    let mut booted: Vec<(&mut Image, Series)> = booted.collect();
    let all = booted.iter().fold(Series::BASELINE, |all, (_, series)| all.union(*series));
    booted.iter_mut().for_each(|(image, _)| image.switches = all);
}

/// Names of the images: their releases if distinct, otherwise their file names or paths.
pub fn image_names(images: &[BootImage]) -> Result<Vec<String>, Error> {
    let paths: Vec<String> = images.iter().map(|image| image.path.clone()).collect();
    let releases = paths.iter().map(|path| host::image_release(path));
    let releases = releases.collect::<Result<_, _>>()?;
    Ok(distinct_names(&paths, releases))
}

/// `releases` if distinct; otherwise the file names of `paths` if distinct, otherwise `paths`.
fn distinct_names(paths: &[String], releases: Vec<String>) -> Vec<String> {
    let repeats = |names: &[String]| (1..names.len()).any(|at| names[..at].contains(&names[at]));
    let file = |path: &String| Path::new(path).file_name().map(|name| name.display().to_string());
    let files: Vec<String> = paths.iter().filter_map(file).collect();
    match (repeats(&releases), repeats(&files) || files.len() < paths.len()) {
        (false, _) => releases,
        (true, false) => files,
        (true, true) => paths.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_of_all_images_or_of_each() {
        let pair = |modules: &[&str]| {
            let modules: Vec<String> = modules.iter().map(|path| path.to_string()).collect();
            let pairs = BootImage::pair_with_modules(vec!["a".into(), "b".into()], &modules)?;
            Ok::<_, Error>(pairs.into_iter().map(|image| image.modules).collect::<Vec<_>>())
        };
        let some = |path: &str| Some(path.to_string());
        assert_eq!(pair(&[]).unwrap(), [None, None]);
        assert_eq!(pair(&["m"]).unwrap(), [some("m"), some("m")]);
        assert_eq!(pair(&["m", "n"]).unwrap(), [some("m"), some("n")]);
        assert_eq!(pair(&["none", "n"]).unwrap(), [None, some("n")]);
        assert!(BootImage::pair_with_modules(Vec::new(), &["m".to_string()]).is_err());
        let error = pair(&["m", "n", "o"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("3 times for 2 images"), "{error}");
    }

    #[test]
    fn images_are_named_by_distinct_parts() {
        let names = |paths: [&str; 2], releases: [&str; 2]| {
            distinct_names(&paths.map(String::from), releases.map(String::from).to_vec())
        };
        assert_eq!(names(["a/b", "c/b"], ["6.12.1", "6.12.2"]), ["6.12.1", "6.12.2"]);
        assert_eq!(names(["a/base", "a/p1"], ["6.12.1", "6.12.1"]), ["base", "p1"]);
        assert_eq!(names(["a/b", "c/b"], ["6.12.1", "6.12.1"]), ["a/b", "c/b"]);
    }
}
