//! The committed corpora of the fuzz targets, through the same checks, without libFuzzer.

use std::fs;
use std::path::Path;

#[path = "../../fuzz/src/checks/mod.rs"]
pub mod checks;

const MOST_FILES: usize = 300;
const MOST_BYTES: usize = 300 * 1024;

#[test]
fn every_corpus_passes() {
    for (target, check) in checks::ALL {
        let corpus = corpus(target);
        assert!(corpus.len() > 20, "{target} has {} inputs", corpus.len());
        for (name, data) in &corpus {
            println!("{target} {name}");
            check(data);
        }
    }
}

#[test]
fn every_corpus_is_small() {
    for (target, _) in checks::ALL {
        let corpus = corpus(target);
        let bytes: usize = corpus.iter().map(|(_, data)| data.len()).sum();
        assert!(corpus.len() <= MOST_FILES, "{target}: {}", corpus.len());
        assert!(bytes <= MOST_BYTES, "{target}: {bytes} bytes");
    }
}

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = files.map(|file| file.unwrap().path());
    paths
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect()
}
