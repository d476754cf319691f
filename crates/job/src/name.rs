//! Enumerations with names on the command line.

/// Declares an enum with `ALL`, `name`, and `Display` and `FromStr` by name.
macro_rules! named {
    (
        $(#[$about:meta])* $what:literal
        pub enum $enum:ident { $( $(#[$doc:meta])* $variant:ident = $name:literal, )+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $enum { $( $(#[$doc])* $variant, )+ }

        impl $enum {
            /// Every variant, in the order of help.
            pub const ALL: &'static [$enum] = &[$($enum::$variant),+];

            /// Name on the command line and in records.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => $name),+ }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $enum {
            type Err = $crate::Error;

            fn from_str(text: &str) -> Result<Self, $crate::Error> {
                $enum::ALL.iter().copied().find(|known| known.name() == text).ok_or_else(|| {
                    $crate::Error::UnknownName {
                        what: $what,
                        text: $crate::size::shorten(text),
                        known: [$($name),+].join(", "),
                    }
                })
            }
        }
    };
}

pub(crate) use named;
