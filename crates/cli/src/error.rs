//! Errors of the command line.

pub use filemap_study::Error;
pub use filemap_study::error::reason;

/// Converts an error of clap to one line, without usage.
pub fn from_clap(error: &clap::Error) -> Error {
    use clap::error::ErrorKind;
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Error::Usage("a command is missing; try filemap --help".to_string());
    }
    if error.kind() == ErrorKind::InvalidUtf8 {
        // clap does not report which argument is not UTF-8.
        let word = std::env::args_os().find(|word| word.to_str().is_none()).unwrap_or_default();
        let shown = word.to_string_lossy().replace(char::is_control, "?");
        return Error::Usage(format!("'{shown}' is not UTF-8; give a name that is"));
    }
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n");
    let first = paragraphs.next().unwrap_or_default();
    let mut message = first.strip_prefix("error: ").unwrap_or(first).trim().to_string();
    let tips = paragraphs.flat_map(str::lines).filter_map(|l| l.trim().strip_prefix("tip: "));
    for tip in tips.filter(|tip| !tip.starts_with("to pass")) {
        message += &format!("; {tip}");
    }
    Error::Usage(format!("{message}; try --help"))
}
