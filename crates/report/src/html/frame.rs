//! The page around the parts: head, footer, style and script.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

use crate::report::Footer;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Browsers may load nothing that is not in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The whole page.
pub(super) fn page(title: &str, footer: &Footer, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="generator" content="filemap";
                title { (title) " - filemap" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    p.sub { (footer.origin) }
                }
                main { (body) }
                footer { (foot(footer)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string()
}

fn foot(footer: &Footer) -> Markup {
    html! {
        h2 { "About this page" }
        dl.facts {
            @for (label, text) in &footer.facts { div { dt { (label) } dd { (text) } } }
            div { dt { "Command" } dd { (command(&footer.command)) } }
        }
        details {
            summary { "Environment" }
            (values(&footer.environment))
        }
        p.small {
            "Generated only from the JSON record of the command; filemap report generates it again \
             from that record."
        }
    }
}

/// A command, which may wrap between words.
fn command(command: &str) -> Markup {
    html! {
        code {
            @for word in command.split(' ') { span.word { (word) } " " }
        }
    }
}

/// A JSON object as a list.
fn values(map: &Map<String, Value>) -> Markup {
    html! {
        dl.values {
            @for (key, value) in map {
                div {
                    dt { (key) }
                    dd {
                        @match value {
                            Value::Object(map) => (values(map)),
                            Value::String(text) => (text),
                            Value::Null => "unknown",
                            other => (other.to_string()),
                        }
                    }
                }
            }
        }
    }
}
