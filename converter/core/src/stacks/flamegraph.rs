//! Flame graphs as SVG, drawn by inferno. The caller sums the stacks; this module does not depend on what the weights measure.
//!
//! inferno draws one graph a picture, and a comparison needs two if frames of the base are gone. `with_base` therefore moves the frames of
//! a second picture into the first, as text. It fails if inferno writes another form, and so do the tests at an update of inferno. The
//! alternative, a second file, would leave out of the picture just what vanished.

use std::collections::HashMap;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap, StrokeColor};
use inferno::flamegraph::{Options, TextTruncateDirection, from_lines};

use crate::stacks::demangle::one_line;

/// One distinct stack with its total weight.
pub struct Stack {
    /// Outermost first, each in the form that `demangle::readable` returns.
    pub frames: Vec<String>,
    pub weight: u64,
    /// Its weight in the run that is compared with.
    pub base: Option<f64>,
}

/// Texts around the frames, and how the frames are shown.
pub struct Style<'a> {
    pub title: &'a str,
    pub subtitle: &'a str,
    /// Written as an XML comment into the file.
    pub notes: &'a str,
    /// Unit of the figures.
    pub unit: &'a str,
    /// Factor from weights to that unit.
    pub factor: f64,
    /// What a frame stands for, such as `Function`.
    pub frame_is: &'a str,
    pub palette: &'a str,
    /// Frames below this share of the whole, in percent, are not drawn.
    pub hide_under: f64,
    /// By a frame with its callers: how much larger its weight and its base may really be, because frames without a name may belong to it.
    pub perhaps: HashMap<Vec<String>, (f64, f64)>,
}

pub struct Drawing {
    pub svg: Vec<u8>,
    /// Number of frames that are too narrow to be drawn.
    pub hidden: usize,
}

/// Ranges of hues, in degrees.
pub const PALETTES: &[(&str, (f64, f64))] =
    &[("warm", (18.0, 52.0)), ("green", (85.0, 150.0)), ("blue", (180.0, 215.0))];

const WHITE: Color = Color { r: 255, g: 255, b: 255 };
/// Frames without a name.
const GREY: Color = Color { r: 205, g: 205, b: 205 };
/// Frames without a change.
const SAME: Color = Color { r: 240, g: 240, b: 240 };
/// Frames that may have grown or shrunk: it is not known which.
const UNCERTAIN: Color = Color { r: 240, g: 228, b: 160 };

/// Added to inferno's own style, whose search button is hard to see and which has no dark mode.
const EXTRA_STYLE: &str = "<style type=\"text/css\">
#search { opacity:0.6; }
@media (prefers-color-scheme: dark) {
  :root { color-scheme:dark; background:#1b1b1b; }
  svg > rect { fill:#1b1b1b; }
  #title, #subtitle, #details, #matched, #search, #unzoom { fill:#e0e0e0; }
  #frames > g > rect, #base > g > rect { stroke:#1b1b1b; }
  #base-title { fill:#e0e0e0; }
}
</style>";

/// Title of the graph of the base. The title of the first graph leaves this room above the frames.
const BASE_TITLE: &str = "The base, with its own widths: what it has and the input has not is -100%";
const BASE_TITLE_Y: usize = 40;

/// Weights of a frame, including all frames that it called.
#[derive(Clone, Copy, Default)]
struct Total {
    weight: u64,
    base: f64,
}

/// Draws stacks as a flame graph; if any has a base, as a differential flame graph. Widths are the weights, not the base. If frames of the
/// base have no weight any more, a second graph below shows the base with its own widths.
///
/// inferno's own differential mode is not used: it colours only by the innermost frames, in which the stacks of syncs do not differ.
/// Here each frame has the colour of its own change, and its name states the change, so that the graph is readable without colours. If
/// frames without a name leave the change uncertain, the name states the smallest possible change, or `?` if even its sign is uncertain.
///
/// # Errors
/// All weights are 0.
pub fn draw(mut stacks: Vec<Stack>, style: &Style<'_>) -> Result<Drawing, String> {
    // By frames, not by folded lines as inferno sorts: `db-wal` must not come between `db` and the frames below `db`.
    stacks.sort_by(|a, b| a.frames.cmp(&b.frames));
    let tree = Tree::of(&stacks);
    let whole = tree.totals[0].weight;
    if whole == 0 {
        return Err("no stack has a weight".to_owned());
    }
    let min_weight = style.hide_under / 100.0 * whole as f64;
    let is_narrow = |total: &Total| (total.weight as f64) < min_weight;
    let hidden = tree.totals.iter().filter(|total| total.weight > 0 && is_narrow(total)).count();

    let is_differential = stacks.iter().any(|stack| stack.base.is_some());
    let hues = PALETTES.iter().find(|(name, _)| *name == style.palette).map_or(PALETTES[0].1, |&(_, hues)| hues);
    let mut colours = PaletteMap::default();
    let mut label = |path: &[String], total: Total| -> String {
        let name = path.last().map_or("", String::as_str);
        let (name, colour) = if is_differential {
            let change = ChangeBounds::of(total, style.perhaps.get(path).copied().unwrap_or_default());
            let name = if path.is_empty() { String::new() } else { format!("{} {name}", change.mark()) };
            (name, change.colour())
        } else {
            (name.to_owned(), if is_nameless(name) { GREY } else { tint(name, hues) })
        };
        let name = escape_for_inferno(name);
        colours.insert(&name, colour);
        name
    };
    label(&[], tree.totals[0]);
    let lines = folded(&stacks, &tree, |stack| stack.weight, is_narrow, &mut label);
    let is_gone = tree.totals.iter().any(|total| total.weight == 0 && total.base > 0.0);
    let base_lines = if is_differential && is_gone {
        let min_base = style.hide_under / 100.0 * tree.totals[0].base;
        folded(&stacks, &tree, base_weight, |total| total.base < min_base, &mut label)
    } else {
        Vec::new()
    };
    let mut svg = render(&lines, style, &mut colours, true)?;
    if !base_lines.is_empty() {
        let below = render(&base_lines, style, &mut colours, false)?;
        svg = with_base(&svg, &below).ok_or("the graph of the base has another form than expected")?;
    }
    if let Some(end) = svg.rfind("</svg>") {
        svg.insert_str(end, EXTRA_STYLE);
    }
    let svg = svg.into_bytes();
    Ok(Drawing { svg, hidden })
}

/// Returns the weight of a stack in the base, for a graph whose widths are those of the base.
fn base_weight(stack: &Stack) -> u64 {
    stack.base.unwrap_or_default().round_ties_even() as u64
}

/// Returns folded lines of labelled frames, with the number that `weight` returns. Stacks without a weight are left out.
fn folded(
    stacks: &[Stack],
    tree: &Tree,
    weight: impl Fn(&Stack) -> u64,
    is_narrow: impl Fn(&Total) -> bool,
    label: &mut impl FnMut(&[String], Total) -> String,
) -> Vec<String> {
    let mut lines: Vec<(String, u64)> = Vec::new();
    let mut path = vec![0];
    for (stack, nodes) in stacks.iter().zip(&tree.nodes) {
        nodes.advance(&mut path, stack.frames.len());
        let weight = weight(stack);
        if weight == 0 {
            continue;
        }
        // Frames that are too narrow are cut off here: their caller keeps the width, and inferno has less to parse. The outermost
        // frame stays, because a line needs one.
        let shown: Vec<String> = (path[1..].iter().enumerate())
            .map(|(depth, &node)| (depth, tree.totals[node]))
            .take_while(|(depth, total)| *depth == 0 || !is_narrow(total))
            .map(|(depth, total)| label(&stack.frames[..=depth], total))
            .collect();
        let folded = shown.join(";");
        match lines.last_mut() {
            Some((last, sum)) if *last == folded => *sum += weight,
            _ => lines.push((folded, weight)),
        }
    }
    lines.into_iter().map(|(folded, weight)| format!("{folded} {weight}")).collect()
}

/// Runs inferno. Without a script, it shortens names to the width of their frames.
fn render(lines: &[String], style: &Style<'_>, colours: &mut PaletteMap, has_script: bool) -> Result<String, String> {
    let mut options = Options::default();
    options.title = one_line(style.title);
    options.subtitle = Some(one_line(style.subtitle));
    options.notes = xml_comment(style.notes);
    style.unit.clone_into(&mut options.count_name);
    options.factor = style.factor;
    options.name_type = format!("{}:", style.frame_is);
    options.min_width = style.hide_under;
    options.text_truncate_direction = TextTruncateDirection::Right;
    options.bgcolors = Some(BackgroundColor::Flat(WHITE));
    options.stroke_color = StrokeColor::Color(WHITE);
    // Lighter than inferno's, so that the text is readable.
    if let Ok(colour) = "#ff87ff".parse() {
        options.search_color = colour;
    }
    options.palette_map = Some(colours);
    // Reads the lines from last to first and does not sort them.
    options.flame_chart = true;
    options.no_javascript = !has_script;
    let mut svg = Vec::new();
    from_lines(&mut options, lines.iter().rev().map(String::as_str), &mut svg).map_err(|e| e.to_string())?;
    String::from_utf8(svg).map_err(|e| e.to_string())
}

/// Adds the frames of `base` below those of `svg`. They have tooltips, and no zoom. `None` if the texts are not as inferno writes them.
fn with_base(svg: &str, base: &str) -> Option<String> {
    let height = height_of(svg)?;
    let whole = height + height_of(base)?;
    let frames = base.get(base.find("<svg id=\"frames\"")?..)?;
    let frames = frames.get(frames.find('>')? + 1..frames.find("</svg>")?)?;
    let svg = svg
        .replacen(&format!("height=\"{height}\""), &format!("height=\"{whole}\""), 1)
        .replacen(&format!("viewBox=\"0 0 1200 {height}\""), &format!("viewBox=\"0 0 1200 {whole}\""), 1)
        .replacen(
            &format!("height=\"{height}\" fill=\"url(#background)\""),
            &format!("height=\"{whole}\" fill=\"url(#background)\""),
            1,
        );
    let end = svg.rfind("</svg>")?;
    let title = height + BASE_TITLE_Y;
    Some(format!(
        "{}<text id=\"base-title\" x=\"50%\" y=\"{title}\" text-anchor=\"middle\">{BASE_TITLE}</text>\
         <svg id=\"base\" x=\"10\" y=\"{height}\" width=\"1180\" style=\"width:calc(100% - 20px)\">{frames}</svg>{}",
        svg.get(..end)?,
        svg.get(end..)?
    ))
}

/// Returns the height of a picture, the first attribute of that name.
fn height_of(svg: &str) -> Option<usize> {
    let rest = svg.split_once(" height=\"")?.1;
    rest.split_once('"')?.0.parse().ok()
}

/// Formats text for an XML comment, which must not contain two dashes or end in one.
fn xml_comment(text: &str) -> String {
    let mut text = text.lines().map(one_line).collect::<Vec<_>>().join(" | ").replace("--", "- -").replace("--", "- -");
    text.push(' ');
    text
}

/// Replaces spaces that inferno would misread by no-break spaces: before a number at the end, which it takes for a second weight, and in
/// `# ` at the start, which it takes for a comment.
fn escape_for_inferno(mut name: String) -> String {
    const NO_BREAK_SPACE: &str = "\u{a0}";
    if let Some(at) = name.rfind(' ')
        && name[at + 1..].bytes().all(|b| b.is_ascii_digit() || b == b'.')
    {
        name.replace_range(at..=at, NO_BREAK_SPACE);
    }
    if name.starts_with("# ") {
        name.replace_range(1..2, NO_BREAK_SPACE);
    }
    name
}

/// Returns whether a frame is an address, a library without a function, or a placeholder such as `[no stack]`.
fn is_nameless(frame: &str) -> bool {
    frame.starts_with("0x") || (frame.starts_with('[') && frame.ends_with(']'))
}

/// The frames of sorted stacks as a tree; the root is node 0.
struct Tree {
    totals: Vec<Total>,
    /// The nodes of each stack.
    nodes: Vec<StackNodes>,
}

/// The nodes of one stack, with the root.
struct StackNodes {
    /// Number of nodes that it shares with the stack before it.
    shared: usize,
    /// The first of its own nodes, which are consecutive.
    first: usize,
}

impl StackNodes {
    /// Changes `path` from the nodes of the stack before to those of this stack, which has `frames` frames.
    fn advance(&self, path: &mut Vec<usize>, frames: usize) {
        path.truncate(self.shared);
        path.extend(self.first..self.first + frames + 1 - self.shared);
    }
}

impl Tree {
    fn of(stacks: &[Stack]) -> Self {
        let mut tree = Self { totals: vec![Total::default()], nodes: Vec::with_capacity(stacks.len()) };
        let mut path = vec![0];
        let mut before: &[String] = &[];
        for stack in stacks {
            let common = before.iter().zip(&stack.frames).take_while(|(a, b)| a == b).count();
            let nodes = StackNodes { shared: common + 1, first: tree.totals.len() };
            tree.totals.resize(tree.totals.len() + stack.frames.len() - common, Total::default());
            nodes.advance(&mut path, stack.frames.len());
            for &node in &path {
                let total = &mut tree.totals[node];
                total.weight += stack.weight;
                total.base += stack.base.unwrap_or_default();
            }
            tree.nodes.push(nodes);
            before = &stack.frames;
        }
        tree
    }
}

/// Returns a light colour that depends only on the name. Black text is readable on it.
fn tint(name: &str, (from, to): (f64, f64)) -> Color {
    // FNV-1a. Any hash that is the same on every machine will do.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let part = |shift: u32| f64::from((hash >> shift) as u16) / f64::from(u16::MAX);
    let hue = from + (to - from) * part(32);
    let (lightness, saturation) = (0.70 + 0.08 * part(16), 0.75);
    let reach = saturation * lightness.min(1.0 - lightness);
    let channel = |offset: f64| {
        let at = (offset + hue / 30.0) % 12.0;
        (255.0 * (lightness - reach * (at - 3.0).min(9.0 - at).clamp(-1.0, 1.0))).round() as u8
    };
    Color { r: channel(0.0), g: channel(8.0), b: channel(4.0) }
}

/// Relative error of a base that was scaled and summed in another order.
const ROUNDING: f64 = 1e-9;

/// How a frame's weight differs from its base.
#[derive(PartialEq)]
enum Change {
    New,
    Same,
    /// In percent of the base.
    By(f64),
}

impl Change {
    fn of(weight: f64, base: f64) -> Self {
        if (weight - base).abs() <= ROUNDING * weight {
            Self::Same
        } else if base <= 0.0 {
            Self::New
        } else {
            Self::By(100.0 * (weight - base) / base)
        }
    }

    fn is_more(&self) -> bool {
        matches!(self, Self::New) || matches!(self, Self::By(percent) if *percent > 0.0)
    }

    /// Returns the prefix of a frame's name. It begins with `+`, `-` or `=` and is short, to leave room for the name. From ten times the base
    /// on it is a factor instead of a percentage.
    fn mark(&self) -> String {
        match self {
            Self::New => "+new".to_owned(),
            Self::Same => "=".to_owned(),
            Self::By(percent) if *percent >= 899.5 => format!("+x{:.0}", percent / 100.0 + 1.0),
            Self::By(percent) if percent.abs() < 9.95 => format!("{percent:+.1}%"),
            Self::By(percent) => format!("{percent:+.0}%"),
        }
    }

    /// Returns red for more, blue for less. The larger the change, the stronger the colour; it is strongest at +100 % and -100 %.
    fn colour(&self) -> Color {
        let percent = match self {
            Self::Same => return SAME,
            Self::New => 100.0,
            Self::By(percent) => *percent,
        };
        let faded = (230.0 - 130.0 * (percent.abs() / 100.0).min(1.0)) as u8;
        if percent > 0.0 {
            Color { r: 255, g: faded, b: faded }
        } else {
            Color { r: faded, g: faded.saturating_add(15), b: 255 }
        }
    }
}

/// Bounds of a change. They are equal where no name is missing.
struct ChangeBounds {
    lowest: Change,
    highest: Change,
}

impl ChangeBounds {
    fn of(total: Total, (more, more_base): (f64, f64)) -> Self {
        let weight = total.weight as f64;
        if Change::of(weight, total.base) == Change::Same && Change::of(more, more_base) == Change::Same {
            // Neither the frame nor the frames that may belong to it have changed.
            return Self { lowest: Change::Same, highest: Change::Same };
        }
        Self { lowest: Change::of(weight, total.base + more_base), highest: Change::of(weight + more, total.base) }
    }

    /// Returns the smallest change that is certain; `None` if even its sign is not.
    fn certain(&self) -> Option<&Change> {
        let (lowest, highest) = (&self.lowest, &self.highest);
        if lowest == highest || lowest.is_more() {
            Some(lowest)
        } else if *highest == Change::Same || highest.is_more() {
            None
        } else {
            Some(highest)
        }
    }

    fn mark(&self) -> String {
        let Some(change) = self.certain() else { return "?".to_owned() };
        let mark = change.mark();
        if self.lowest.mark() == self.highest.mark() { mark } else { format!("{}≥{}", &mark[..1], &mark[1..]) }
    }

    fn colour(&self) -> Color {
        self.certain().map_or(UNCERTAIN, Change::colour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style() -> Style<'static> {
        Style {
            title: "t",
            subtitle: "s",
            notes: "a -- b",
            unit: "requests",
            factor: 1.0,
            frame_is: "Function",
            palette: "hot",
            hide_under: 0.01,
            perhaps: HashMap::new(),
        }
    }

    fn stack(folded: &str, weight: u64, base: Option<f64>) -> Stack {
        Stack { frames: folded.split(';').map(str::to_owned).collect(), weight, base }
    }

    /// Returns the titles of the frames, sorted.
    fn titles(stacks: Vec<Stack>, style: &Style<'_>) -> Vec<String> {
        let svg = String::from_utf8(draw(stacks, style).unwrap().svg).unwrap();
        let mut titles: Vec<_> =
            svg.split("<title>").skip(1).map(|rest| rest.split("</title>").next().unwrap().to_owned()).collect();
        titles.sort();
        titles
    }

    #[test]
    fn a_frame_is_drawn_once() {
        // Sorted by folded lines, `db-wal` comes between the two stacks of `db`.
        let stacks = vec![stack("wl;db", 1, None), stack("wl;db-wal", 2, None), stack("wl;db;f", 5, None)];
        let want = [
            "all (8 requests, 100%)",
            "db (6 requests, 75.00%)",
            "db-wal (2 requests, 25.00%)",
            "f (5 requests, 62.50%)",
            "wl (8 requests, 100.00%)",
        ];
        assert_eq!(titles(stacks, &style()), want);
    }

    #[test]
    fn names_are_not_read_as_numbers_or_comments() {
        let stacks = vec![stack("# a;file 12", 3, None), stack("# a;file 12;b 1.5", 1, None), stack("5", 4, None)];
        let want = [
            "#\u{a0}a (4 requests, 50.00%)",
            "5 (4 requests, 50.00%)",
            "all (8 requests, 100%)",
            "b\u{a0}1.5 (1 requests, 12.50%)",
            "file\u{a0}12 (4 requests, 50.00%)",
        ];
        assert_eq!(titles(stacks, &style()), want);
        // The same after the mark of a change.
        let stacks = vec![stack("wl;12", 3, Some(3.0)), stack("wl;13", 1, Some(0.0))];
        let want = [
            "+33% wl (4 requests, 100.00%)",
            "+new\u{a0}13 (1 requests, 25.00%)",
            "=\u{a0}12 (3 requests, 75.00%)",
            "all (4 requests, 100%)",
        ];
        assert_eq!(titles(stacks, &style()), want);
    }

    #[test]
    fn notes_do_not_end_their_comment() {
        for dashes in 1..9 {
            let text = xml_comment(&format!("a{}", "-".repeat(dashes)));
            assert!(!text.contains("--") && text.ends_with("- "), "{text}");
        }
    }

    #[test]
    fn changes_are_in_the_names() {
        let stacks = vec![
            stack("wl;a;x", 30, Some(10.0)),
            stack("wl;a;y", 0, Some(10.0)),
            stack("wl;b", 10, Some(10.0)),
            stack("wl;c", 2, Some(0.0)),
            stack("wl;d", 25, Some(2.5)),
            stack("wl;gone", 0, Some(40.0)),
        ];
        let want = [
            "+200% x (30 requests, 44.78%)",
            "+50% a (30 requests, 44.78%)",
            "+new c (2 requests, 2.99%)",
            "+x10 d (25 requests, 37.31%)",
            // 67 against 72.5.
            "-7.6% wl (67 requests, 100.00%)",
            "= b (10 requests, 14.93%)",
            "all (67 requests, 100%)",
            // The base below, with its own widths.
            "+200% x (10 requests, 13.89%)",
            "+50% a (20 requests, 27.78%)",
            "+x10 d (2 requests, 2.78%)",
            "-100% gone (40 requests, 55.56%)",
            "-100% y (10 requests, 13.89%)",
            "-7.6% wl (72 requests, 100.00%)",
            "= b (10 requests, 13.89%)",
            "all (72 requests, 100%)",
        ];
        let mut want = want;
        want.sort_unstable();
        assert_eq!(titles(stacks, &style()), want);
    }

    #[test]
    fn the_base_is_drawn_below_if_something_is_gone() {
        let height = |stacks: Vec<Stack>| {
            let svg = String::from_utf8(draw(stacks, &style()).unwrap().svg).unwrap();
            assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
            assert!(svg.contains(&format!("viewBox=\"0 0 1200 {}\"", height_of(&svg).unwrap())));
            assert!(svg.contains(&format!("height=\"{}\" fill=\"url(#background)\"", height_of(&svg).unwrap())));
            (height_of(&svg).unwrap(), svg.contains("id=\"base\""))
        };
        let (one, has_base) = height(vec![stack("wl;a", 3, Some(2.0)), stack("wl;b", 1, Some(9.0))]);
        assert!(!has_base);
        let (two, has_base) = height(vec![stack("wl;a", 3, Some(2.0)), stack("wl;b", 0, Some(9.0))]);
        assert!(has_base && two > one);
    }

    #[test]
    fn changes_that_missing_names_may_explain_are_not_stated() {
        let frame = |folded: &str| folded.split(';').map(str::to_owned).collect::<Vec<_>>();
        let stacks = vec![
            stack("wl;open", 20, Some(40.0)),
            stack("wl;[address]", 20, Some(0.0)),
            stack("wl;even", 30, Some(30.0)),
            stack("wl;more", 90, Some(30.0)),
            stack("wl;less", 10, Some(100.0)),
            stack("wl;hardly", 20_000, Some(10_000.0)),
            stack("wl;bare", 10, Some(0.0)),
            stack("wl;same", 8, Some(8.0)),
        ];
        let perhaps = [
            // As many as in the base, if all frames without a name belong to it.
            ("wl;open", (20.0, 0.0)),
            ("wl;[address]", (20.0, 40.0)),
            ("wl;even", (1.0, 0.0)),
            // 90 compared with 30 to 60; 10 to 50 compared with 100.
            ("wl;more", (0.0, 30.0)),
            ("wl;less", (40.0, 0.0)),
            // Too small to change the mark.
            ("wl;hardly", (1.0, 1.0)),
            // 10 compared with 0 to 5.
            ("wl;bare", (0.0, 5.0)),
            ("wl;same", (3.0, 3.0)),
        ];
        let perhaps = perhaps.into_iter().map(|(folded, more)| (frame(folded), more)).collect();
        let titles = titles(stacks, &Style { perhaps, ..style() });
        let names: Vec<_> = titles.iter().map(|title| title.split(" (").next().unwrap()).collect();
        // The whole: 20,188 compared with 10,208.
        let want = [
            ("+100% hardly", "+98% wl"),
            ("+≥100% bare", "+≥50% more"),
            ("-≥50% less", "= same"),
            ("? [address]", "? even"),
            ("? open", "all"),
        ];
        assert_eq!(names.chunks(2).map(|two| (two[0], two[1])).collect::<Vec<_>>(), want);
    }

    #[test]
    fn narrow_frames_are_counted() {
        let stacks = || {
            let under = [stack("wl;b;under", 3, None), stack("wl;b;x;y", 1, None), stack("w;narrow", 2, None)];
            [stack("wl;a;deep", 94, None)].into_iter().chain(under).collect::<Vec<_>>()
        };
        let titles = |hide_under| titles(stacks(), &Style { hide_under, ..style() });
        let hidden = |hide_under| draw(stacks(), &Style { hide_under, ..style() }).unwrap().hidden;
        assert_eq!(hidden(1.0), 0);
        assert_eq!(titles(1.0).len(), 10);
        // `x`, `y`, `w` and `narrow`; the whole is unchanged.
        assert_eq!(hidden(3.0), 4);
        let want = [
            "a (94 requests, 94.00%)",
            "all (100 requests, 100%)",
            "b (4 requests, 4.00%)",
            "deep (94 requests, 94.00%)",
            "under (3 requests, 3.00%)",
            "wl (98 requests, 98.00%)",
        ];
        assert_eq!(titles(3.0), want);
        assert_eq!(hidden(3.5), 5);
    }

    #[test]
    fn a_graph_without_weight_is_an_error() {
        assert!(draw(vec![], &style()).is_err());
        assert!(draw(vec![stack("wl", 0, Some(3.0))], &style()).is_err());
    }
}
