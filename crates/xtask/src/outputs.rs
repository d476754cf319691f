//! Outputs of `filemap` that documents show, between two comments:
//!
//! ```text
//! <!-- output: published mmap-miss; until: Random cells -->
//! <!-- end of output -->
//! ```
//!
//! shows what `filemap published mmap-miss` prints, up to the line that begins with these words.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::repository::{Repository, root};

const BEGIN: &str = "<!-- output: ";
const BEGIN_END: &str = " -->";
const UNTIL: &str = "; until: ";
const END: &str = "<!-- end of output -->";

/// Runs every command whose output a document shows. Where the output is another, writes the
/// document, unless this is but a check. Returns the paths of the documents that differ.
///
/// # Errors
/// When a command fails, or a document cannot be written.
pub fn refresh(check: bool) -> Result<Vec<String>> {
    let mut differing = Vec::new();
    for file in Repository::read()?.under("", ".md") {
        let text = replaced(&file.text, filemap).with_context(|| file.path.clone())?;
        if text == file.text {
            continue;
        }
        differing.push(file.path.clone());
        if !check {
            let path = root().join(&file.path);
            fs::write(&path, text).with_context(|| format!("{} not written", path.display()))?;
        }
    }
    Ok(differing)
}

/// `document` with each output as `run` gives it for the words of the command.
fn replaced(document: &str, run: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut text = String::new();
    let mut lines = document.split_inclusive('\n');
    while let Some(line) = lines.next() {
        text += line;
        let marker = line.trim_end().strip_prefix(BEGIN).and_then(|l| l.strip_suffix(BEGIN_END));
        let Some(marker) = marker else { continue };
        let (args, until) = marker.split_once(UNTIL).unwrap_or((marker, "Scope:"));
        ensure!(lines.any(|line| line.trim_end() == END), "'{END}' is missing behind '{marker}'");
        text += &format!("\n```text\n{}\n```\n\n{END}\n", cut(&run(args)?, until)?);
    }
    Ok(text)
}

/// `output` up to the line that begins with `until`.
fn cut<'a>(output: &'a str, until: &str) -> Result<&'a str> {
    let end = output.find(&format!("\n{until}"));
    Ok(output[..end.with_context(|| format!("no line begins with '{until}'"))?].trim_end())
}

fn filemap(args: &str) -> Result<String> {
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
    let output = Command::new(cargo)
        // Without a package, with which its libraries would be built for it alone.
        .args(["run", "--release", "--quiet", "--"])
        .args(args.split_whitespace())
        // Documents show the built-in machine profile, whoever refreshes them.
        .env("XDG_STATE_HOME", "/dev/null/no-state")
        .current_dir(root())
        .output()
        .context("cargo does not start")?;
    if !output.status.success() {
        bail!("filemap {args}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("filemap {args} prints no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
a
<!-- output: run x; until: Scope -->
old
<!-- end of output -->
b
";

    #[test]
    fn outputs_are_put_in_their_places() {
        let run = |args: &str| Ok(format!("{args}\n1\n\nScope: s\n"));
        let text = replaced(DOCUMENT, run).unwrap();
        let shown = "\
a
<!-- output: run x; until: Scope -->

```text
run x
1
```

<!-- end of output -->
b
";
        assert_eq!(text, shown);
        assert_eq!(replaced(&text, run).unwrap(), shown);
        assert_eq!(replaced("no output\n", run).unwrap(), "no output\n");
    }

    #[test]
    fn what_is_missing_is_told() {
        let run = |_: &str| Ok("1\n".to_string());
        let error = replaced(DOCUMENT, run).unwrap_err();
        assert_eq!(error.to_string(), "no line begins with 'Scope'");
        let open = DOCUMENT.replace("<!-- end of output -->\n", "");
        assert!(replaced(&open, run).unwrap_err().to_string().contains("is missing"));
    }
}
