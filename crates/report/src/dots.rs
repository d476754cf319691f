//! Tables with drawn columns: dots, rings, ranges and bars on the column's scale.

use crate::axis::{Axis, ticks};
use crate::column::Unit;
use crate::table::Head;
use crate::units::{byte_unit, figure, time_unit};

/// Width of a drawn column, and the margins of its scale, in units of the picture.
pub(crate) const WIDTH: f64 = 240.0;
pub(crate) const MARGIN: f64 = 10.0;

/// Above this ratio of the largest to the smallest value a scale is logarithmic.
const MAX_LINEAR_RATIO: f64 = 30.0;

/// A table with drawn columns.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub struct DotTable {
    pub title: String,
    /// How to read it; may be empty.
    pub note: String,
    /// Classes of marks with their meaning; may be empty.
    pub legend: Vec<(String, String)>,
    pub columns: Vec<DotColumn>,
    pub rows: Vec<Vec<DotCell>>,
}

#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum DotColumn {
    Text(Head),
    /// Drawn on one scale for all rows, which is shown in the heading.
    Drawn(Scale),
}

#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum DotCell {
    /// The heading of the row.
    Name(String),
    Text(String),
    /// A text with a CSS class and a tooltip.
    Verdict {
        text: String,
        class: Option<&'static str>,
        more: Option<String>,
    },
    /// Marks in drawing order, and their description.
    Drawn {
        marks: Vec<Mark>,
        description: String,
    },
}

/// A mark, with the CSS class of its colour.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Mark {
    Ring(f64),
    Dot(f64, &'static str),
    Range(f64, f64, &'static str),
    /// From 0, with a tip if it exceeds the scale.
    Bar(f64, &'static str),
}

/// The scale of a drawn column, linear from 0 or logarithmic.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Its heading; may be empty.
    pub name: String,
    /// A value marked by a dashed line in every row.
    pub threshold: Option<f64>,
    axis: Axis,
    is_logarithmic: bool,
    unit: Unit,
    /// Divisor of values.
    divisor: f64,
}

impl Scale {
    /// A scale for `values`, logarithmic if they are far apart, but not for bytes, which are drawn
    /// as bars.
    pub fn from_values(name: &str, unit: Unit, values: impl Iterator<Item = f64>) -> Scale {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_far = least > 0.0 && most / least > MAX_LINEAR_RATIO && unit != Unit::Bytes;
        let (in_unit, divisor) = match unit {
            Unit::Bytes => byte_unit(most),
            Unit::Nanoseconds if !is_far => time_unit(most),
            _ => ("", 1.0),
        };
        let (first, last) = if is_far {
            (least.log10().floor(), most.log10().ceil())
        } else {
            (least.min(0.0) / divisor, most.max(0.0) / divisor)
        };
        let last = if last > first { last } else { first + 1.0 };
        let name = match in_unit {
            "" => name.to_string(),
            in_unit => format!("{name} ({in_unit})"),
        };
        let axis = Axis { left: MARGIN, width: WIDTH - 2.0 * MARGIN, first, last };
        Scale { name, threshold: None, axis, is_logarithmic: is_far, unit, divisor }
    }

    /// The coordinate of a value, outside of the picture if it exceeds the scale.
    pub(crate) fn at(&self, value: f64) -> f64 {
        if self.is_logarithmic {
            self.axis.position(value.max(f64::MIN_POSITIVE).log10().max(self.axis.first))
        } else {
            self.axis.position(value / self.divisor)
        }
    }

    /// Tick marks: coordinate and label.
    pub(crate) fn marks(&self) -> Vec<(f64, String)> {
        let Axis { first, last, .. } = self.axis;
        if !self.is_logarithmic {
            let marks = ticks(first, last, 3.0, 1e-3).into_iter();
            return marks.map(|value| (self.axis.position(value), figure(value))).collect();
        }
        let step = ((last - first) / 3.0).ceil().max(1.0);
        let count = ((last - first) / step).floor() as usize;
        let powers = (0..=count).map(|number| first + number as f64 * step);
        let text = |value: f64| match self.unit {
            Unit::Nanoseconds => self.unit.text(value),
            _ => figure(value),
        };
        powers.map(|power| (self.axis.position(power), text(10_f64.powf(power)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> Vec<String> {
        scale.marks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn scales_start_at_0_or_are_logarithmic() {
        let near = Scale::from_values("change", Unit::Percent, [-12.0, 30.0].into_iter());
        assert_eq!(texts(&near), ["0", "20"]);
        assert_eq!(near.at(30.0), WIDTH - MARGIN);
        let far = Scale::from_values("time", Unit::Nanoseconds, [1000.0, 2e9].into_iter());
        assert_eq!((far.name.as_str(), far.at(1000.0)), ("time", MARGIN));
        assert_eq!(texts(&far), ["1 us", "1 ms", "1 s"]);
        let read = Scale::from_values("read", Unit::Bytes, [1024.0, 4e9].into_iter());
        assert_eq!((read.name.as_str(), read.at(0.0)), ("read (GiB)", MARGIN));
        let none = Scale::from_values("none", Unit::Count, std::iter::empty());
        assert!(none.at(0.5).is_finite());
    }
}
