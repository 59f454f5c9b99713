"""Counts the source: files, lines, code lines and functions, with tests apart from the rest."""

import re
from pathlib import Path

TEST_MODULE = re.compile(r"#\[cfg\((?:all\()?test[^\]]*\]\s*(?:pub(?:\([^)]*\))?\s+)?mod (\w+);")
INLINE_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{\n.*?^\}\n", re.MULTILINE | re.DOTALL)
FUNCTION = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const\s+|async\s+|unsafe\s+)*fn \w", re.MULTILINE)


def count(root):
    """Per top-level module of `root`/src: files, lines, code lines, functions, lines of tests."""
    source = Path(root) / "src"
    files = sorted(source.rglob("*.rs"))
    tests = test_files(source, files)
    modules = {}
    for path in files:
        first = path.relative_to(source).parts[0].removesuffix(".rs")
        row = modules.setdefault(first, dict.fromkeys(("files", "lines", "code", "functions", "tests"), 0))
        text = path.read_text()
        kept = "" if path in tests else INLINE_TESTS.sub("", text)
        row["files"] += path not in tests
        row["lines"] += len(kept.splitlines())
        row["code"] += sum(is_code(line) for line in kept.splitlines())
        row["functions"] += len(FUNCTION.findall(kept))
        row["tests"] += len(text.splitlines()) - len(kept.splitlines())
    return modules


def total(modules):
    return {column: sum(row[column] for row in modules.values()) for column in next(iter(modules.values()))}


def is_code(line):
    line = line.strip()
    return bool(line) and not line.startswith("//")


def test_files(source, files):
    """Files that only a test build compiles: modules behind `#[cfg(test)]`, with all they contain."""
    found = set()
    for path in files:
        folder = path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.with_suffix("")
        for name in TEST_MODULE.findall(path.read_text()):
            found.update(f for f in files if f == folder / f"{name}.rs" or folder / name in f.parents)
    return found


if __name__ == "__main__":
    import sys

    modules = count(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2])
    for name, row in [*modules.items(), ("all", total(modules))]:
        print(f"{name:12}", *(f"{column} {value:>6,}" for column, value in row.items()), sep="  ")
