//! Plots for reports, as SVG: lines over two axes, each linear or logarithmic.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

const SIZE: (u32, u32) = (760, 420);
/// Told apart by people who do not see red and green, too.
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
    RGBColor(150, 120, 60),
];
/// More points make a file large and a line no finer.
const POINTS_MAX: usize = 800;

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The quantity shown, with the unit.
    pub label: String,
    /// Equal factors, not equal differences, are equally far apart.
    pub is_log: bool,
}

impl Axis {
    /// From zero, in equal steps.
    pub fn linear(label: impl Into<String>) -> Self {
        Axis { label: label.into(), is_log: false }
    }

    /// In equal factors; points that are not above zero are left out.
    pub fn log(label: impl Into<String>) -> Self {
        Axis { label: label.into(), is_log: true }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Kind.
    pub label: String,
    /// In the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// True if each point shows: for few measurements, not for courses over time.
    pub has_dots: bool,
}

impl Series {
    /// A course over time: only the line shows.
    pub fn line(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Series { label: label.into(), points, has_dots: false }
    }

    /// Measurements: each point shows.
    pub fn dots(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Series { label: label.into(), points, has_dots: true }
    }
}

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Becomes the name of its file: letters, digits and hyphens; one of its kind in a report.
    pub name: String,
    /// Stands above it.
    pub title: String,
    /// Rightwards.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// A plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("plot {name} cannot be drawn: {reason}")]
pub struct PlotError {
    /// Which.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl Plot {
    /// The plot as an SVG document.
    ///
    /// # Errors
    /// [`PlotError`] if the drawing library refuses, as with axes that are not numbers.
    pub fn svg(&self) -> Result<String, PlotError> {
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            let (x, y) = (self.range(&self.x, |it| it.0), self.range(&self.y, |it| it.1));
            match (self.x.is_log, self.y.is_log) {
                (false, false) => self.draw(&area, x, y),
                (true, false) => self.draw(&area, x.log_scale(), y),
                (false, true) => self.draw(&area, x, y.log_scale()),
                (true, true) => self.draw(&area, x.log_scale(), y.log_scale()),
            }
            .map_err(|cause| PlotError { name: self.name.clone(), reason: cause.to_string() })?;
        }
        Ok(text)
    }

    /// From the smallest to the largest, or from zero.
    fn range(&self, axis: &Axis, of: fn(&(f64, f64)) -> f64) -> std::ops::Range<f64> {
        let all = self.series.iter().flat_map(|series| &series.points).map(of);
        let all = all.filter(|value| value.is_finite() && (!axis.is_log || *value > 0.0));
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match (low.is_finite(), axis.is_log) {
            (false, _) => 0.1..1.0,
            (true, true) => low / 1.2..high * 1.2,
            (true, false) => low.min(0.0)..(high + (high - low.min(0.0)) * 0.05).max(1e-9),
        }
    }

    fn draw<X, Y>(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        x: X,
        y: Y,
    ) -> Result<(), DrawingAreaErrorKind<std::io::Error>>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(66)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .x_label_formatter(&|value| number(*value))
            .y_label_formatter(&|value| number(*value))
            .light_line_style(BLACK.mix(0.04))
            .bold_line_style(BLACK.mix(0.12))
            .draw()?;
        for (place, series) in self.series.iter().enumerate() {
            let color = COLORS[place % COLORS.len()];
            let points = self.shown(series);
            if series.has_dots {
                let dots = points.iter().map(|point| Circle::new(*point, 3, color.filled()));
                chart.draw_series(dots)?;
            }
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))?
                .label(&series.label)
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 2), (x + 16, y + 2)], color.filled())
                });
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .position(SeriesLabelPosition::UpperRight)
            .draw()?;
        area.present()
    }

    /// Points that can be drawn, evenly thinned out.
    fn shown(&self, series: &Series) -> Vec<(f64, f64)> {
        let step = series.points.len().div_ceil(POINTS_MAX).max(1);
        let fits = |value: f64, axis: &Axis| value.is_finite() && (!axis.is_log || value > 0.0);
        let all = series.points.iter().step_by(step).copied();
        all.filter(|(x, y)| fits(*x, &self.x) && fits(*y, &self.y)).collect()
    }
}

/// A number on an axis: three digits say enough.
fn number(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        _ if size >= 1e9 => (value / 1e9, " G"),
        _ if size >= 1e6 => (value / 1e6, " M"),
        _ if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        small if small == 0.0 || small >= 100.0 => 0,
        small if small >= 10.0 => 1,
        small if small >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{scaled:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(y: Axis, points: Vec<(f64, f64)>) -> Plot {
        let series = vec![Series::dots("one", points)];
        let (name, title) = ("p".to_owned(), "A title".to_owned());
        Plot { name, title, x: Axis::linear("seconds"), y, series }
    }

    #[test]
    fn labels_and_each_point_are_in_the_drawing() {
        let svg = plot(Axis::linear("MB/s"), vec![(0.0, 1.0), (1.0, 2.0)]).svg().unwrap();
        for text in ["<svg", "A title", "seconds", "MB/s", "one"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.matches("<circle").count(), 2);
    }

    #[test]
    fn what_a_logarithm_cannot_show_is_left_out() {
        let svg = plot(Axis::log("share"), vec![(0.0, 0.0), (1.0, 10.0), (2.0, f64::NAN)]);
        assert_eq!(svg.svg().unwrap().matches("<circle").count(), 1);
        assert!(plot(Axis::log("share"), Vec::new()).svg().is_ok());
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.05, 2.5, 100.0, 20_000.0, 3e6, 1e10].map(number);
        assert_eq!(texts, ["0", "0.05", "2.5", "100", "20 k", "3 M", "10 G"]);
    }
}
