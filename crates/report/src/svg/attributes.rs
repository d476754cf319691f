//! The style sheet of pages as attributes of elements, since not all viewers of SVG support style
//! sheets.

use std::collections::BTreeMap;

const SHEET: &str = include_str!("../html/style.css");

/// Properties that are also attributes.
const ATTRIBUTES: [&str; 9] = [
    "fill",
    "fill-opacity",
    "font-size",
    "opacity",
    "shape-rendering",
    "stroke",
    "stroke-dasharray",
    "stroke-width",
    "text-anchor",
];

/// The attributes of each class, in the light colours of pages.
pub(super) struct Attributes {
    of_text: Vec<(&'static str, String)>,
    of_class: BTreeMap<&'static str, Vec<(&'static str, String)>>,
}

impl Attributes {
    /// Parses the style sheet of pages.
    pub(super) fn of_pages() -> Self {
        let mut colours = BTreeMap::new();
        let mut of_class: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
        let mut of_text = vec![("font-size", "12".to_string())];
        for (selectors, properties) in SHEET.split('}').filter_map(|rule| rule.split_once('{')) {
            let properties = properties.split(';').filter_map(|own| own.split_once(':'));
            let properties: Vec<_> =
                properties.map(|(key, own)| (key.trim(), own.trim())).collect();
            if selectors.trim() == ":root" && colours.is_empty() {
                colours.extend(properties.iter().copied());
            }
            let value = |value: &str| {
                match value.split_once("var(") {
                    Some((_, name)) => {
                        colours.get(name.trim_end_matches(')')).copied().unwrap_or("")
                    }
                    None => value.trim_end_matches("px"),
                }
                .to_string()
            };
            let known = properties.iter().filter(|(key, _)| ATTRIBUTES.contains(key));
            let known: Vec<_> = known.map(|(key, own)| (*key, value(own))).collect();
            for selector in selectors.split(',').map(str::trim) {
                match selector.strip_prefix("svg text").unwrap_or(selector) {
                    "" => of_text.extend(known.clone()),
                    class => {
                        let class = class.strip_prefix('.').filter(|name| is_plain(name));
                        class.into_iter().for_each(|class| {
                            of_class.entry(class).or_default().extend(known.clone());
                        });
                    }
                }
            }
        }
        Attributes { of_text, of_class }
    }

    /// Replaces the classes of all elements of `body` by attributes, and removes hover targets.
    /// Each text starts a line.
    pub(super) fn all_inlined(&self, body: &str) -> String {
        let mut inlined = String::new();
        let mut is_left_out = false;
        for (tag, text) in body.split('<').filter_map(|piece| piece.split_once('>')) {
            if tag.starts_with("rect class=\"hit\"") {
                is_left_out = true;
            } else if !(is_left_out && tag == "/rect") {
                let apart = if tag.starts_with("text ") { "\n" } else { "" };
                inlined += &format!("{apart}<{}>{text}", self.inlined(tag));
            } else {
                is_left_out = false;
            }
        }
        inlined
    }

    /// Replaces the classes of a tag by attributes.
    pub(super) fn inlined(&self, tag: &str) -> String {
        let Some((name, rest)) = tag.split_once(' ') else { return tag.to_string() };
        let mut all: Vec<(&str, &str)> = Vec::new();
        let mut set = |key, value| {
            all.retain(|(known, _)| *known != key);
            all.push((key, value));
        };
        if name == "text" {
            self.of_text.iter().for_each(|(key, value)| set(key, value));
        }
        for (key, value) in rest.split("\" ").filter_map(|own| own.split_once("=\"")) {
            let value = value.trim_end_matches('"');
            match key {
                "class" => {
                    let classes = value.split(' ').filter_map(|class| self.of_class.get(class));
                    classes.flatten().for_each(|(key, value)| set(key, value));
                }
                key if key.starts_with("data-") => {}
                key => set(key, value),
            }
        }
        let all: Vec<String> =
            all.iter().map(|(key, value)| format!(" {key}=\"{value}\"")).collect();
        format!("{name}{}", all.concat())
    }
}

/// Whether a selector after its dot is a single class.
fn is_plain(name: &str) -> bool {
    name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_classes_by_attributes() {
        let attributes = Attributes::of_pages();
        let line = attributes.inlined("path class=\"threshold\" d=\"M1 2h3\"");
        let expected = "path stroke=\"#b8480c\" fill=\"none\" stroke-width=\"1.4\" \
                        stroke-dasharray=\"5 4\" d=\"M1 2h3\"";
        assert_eq!(line, expected);
        assert_eq!(attributes.inlined("/text"), "/text");
        // Later rules override earlier ones.
        let tick = attributes.inlined("text class=\"tick\" x=\"1\"");
        assert_eq!(tick, "text fill=\"#4d535e\" font-size=\"11\" x=\"1\"");
    }
}
