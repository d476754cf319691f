//! The page around what is shown: its head, its foot, its style and its script.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// What a browser may load: nothing beside what is in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// What every record says of itself.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct About {
    #[serde(default)]
    pub scope: String,
    #[serde(default)]
    pub command: String,
    #[serde(default)]
    pub environment: Map<String, Value>,
}

/// The whole page.
pub(super) fn page(title: &str, about: &About, body: &Markup) -> String {
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
                    p.sub { (origin(&about.environment)) }
                }
                main { (body) }
                footer { (foot(about)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string()
}

/// Which version wrote it, and when.
fn origin(environment: &Map<String, Value>) -> String {
    let several = environment.values().filter_map(Value::as_object);
    let mut all = [environment].into_iter().chain(several);
    let own = all.find(|map| map.get("filemap").is_some_and(Value::is_string));
    let text = |key: &str| own.and_then(|map| map.get(key)?.as_str()).unwrap_or("unknown");
    format!("filemap {}, {}", text("filemap"), text("date"))
}

fn foot(about: &About) -> Markup {
    html! {
        h2 { "About this page" }
        dl.facts {
            div { dt { "Scope" } dd { (about.scope) } }
            div { dt { "Command" } dd { (command(&about.command)) } }
        }
        details {
            summary { "Environment" }
            (values(&about.environment))
        }
        p.small {
            "Made from the JSON record of the command alone. filemap report makes it again from \
             that record."
        }
    }
}

/// A command, which is divided between its words.
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
