//! Tests of the dashboard's files.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

#[test]
fn the_files_are_small() {
    let sizes = [PAGE, STYLE, SCRIPT].map(|file| compressed(file.body));
    assert!(sizes.iter().sum::<usize>() <= 64 * 1024, "{sizes:?}");
}

#[test]
fn the_script_creates_no_markup() {
    for sink in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
    ] {
        assert!(!SCRIPT.body.contains(sink), "{sink}");
    }
    assert!(!PAGE.body.contains(" style="));
    assert!(!PAGE.body.contains("onclick="));
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    for file in [PAGE, STYLE, SCRIPT] {
        let text = file.body;
        let mut addresses = text.match_indices("://").map(|(at, _)| &text[at + 3..]);
        let is_known = |rest: &str| {
            ["www.w3.org/2000/svg", "shop.example", "localhost", "${"]
                .iter()
                .any(|start| rest.starts_with(start))
        };
        assert_eq!(addresses.find(|rest| !is_known(rest)), None);
    }
}

/// The actions in `app.css`, each with a colour for light and for dark pages.
const ACTIONS: [&str; 6] = ["forward", "delay", "challenge", "shadow", "block", "other"];

/// What the eye makes of linear red, green and blue: with all cones, and without one kind of them (Machado, Oliveira
/// and Fernandes 2009, severity 1).
const VISIONS: [(&str, [[f64; 3]; 3]); 4] = [
    (
        "normal",
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ),
    (
        "protan",
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    ),
    (
        "deutan",
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
    ),
    (
        "tritan",
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ),
];

#[test]
fn any_two_actions_differ_in_color() {
    for theme in 0..2 {
        for (vision, matrix) in VISIONS {
            let colors = ACTIONS.map(|action| (action, lab(linear_color(action, theme), matrix)));
            for (index, (first, a)) in colors.iter().enumerate() {
                for (second, b) in &colors[index + 1..] {
                    let difference = (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt();
                    assert!(
                        difference >= 23.0,
                        "{first} and {second}, theme {theme}, {vision}: {difference:.1}"
                    );
                }
            }
        }
    }
}

/// Returns the colour of an action as linear red, green and blue.
fn linear_color(action: &str, theme: usize) -> [f64; 3] {
    let (_, rest) = STYLE
        .body
        .split_once(&format!("--{action}: light-dark("))
        .unwrap();
    let (pair, _) = rest.split_once(')').unwrap();
    let hex = pair.split(", ").nth(theme).unwrap().trim_start_matches('#');
    [0, 2, 4].map(|at| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    })
}

/// Returns a colour in CIELAB (D65), in which distances are differences that an eye sees.
fn lab(color: [f64; 3], vision: [[f64; 3]; 3]) -> [f64; 3] {
    let apply = |matrix: [[f64; 3]; 3], vector: [f64; 3]| {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum::<f64>())
    };
    let seen = apply(vision, color).map(|value| value.clamp(0.0, 1.0));
    let to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ];
    let [x, y, z] = apply(to_xyz, seen);
    let [x, y, z] = [x / 0.95047, y, z / 1.08883].map(|value: f64| {
        if value > 0.008856 {
            value.cbrt()
        } else {
            7.787 * value + 16.0 / 116.0
        }
    });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn compressed(text: &str) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().len()
}
