//! Both fingerprints against tshark, the reference and the published examples; then hostile bytes.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

/// A hello as lists, to be written as bytes.
#[derive(Clone, Default)]
struct Draft {
    version: u16,
    ciphers: Vec<u16>,
    extensions: Vec<(u16, Vec<u8>)>,
}

impl Draft {
    fn message(&self) -> Vec<u8> {
        let mut body = self.version.to_be_bytes().to_vec();
        body.extend([7; 32]);
        body.push(0);
        body.extend(sized(2, &numbers(&self.ciphers)));
        body.extend([1, 0]);
        if !self.extensions.is_empty() {
            let list = self.extensions.iter().flat_map(|(number, body)| {
                [number.to_be_bytes().to_vec(), sized(2, body)].concat()
            });
            body.extend(sized(2, &list.collect::<Vec<u8>>()));
        }
        [vec![1], sized(3, &body)].concat()
    }

    fn records(&self) -> Vec<u8> {
        records(&self.message(), 16_384)
    }
}

fn sized(width: usize, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len().to_be_bytes();
    [&length[length.len() - width..], bytes].concat()
}

fn numbers(list: &[u16]) -> Vec<u8> {
    list.iter().flat_map(|n| n.to_be_bytes()).collect()
}

/// The message cut into TLS records of `size` bytes.
fn records(message: &[u8], size: usize) -> Vec<u8> {
    message
        .chunks(size)
        .flat_map(|piece| [vec![22, 3, 1], sized(2, piece)].concat())
        .collect()
}

fn alpn(protocols: &[&[u8]]) -> (u16, Vec<u8>) {
    let list: Vec<u8> = protocols.iter().flat_map(|p| sized(1, p)).collect();
    (16, sized(2, &list))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hellos")
}

fn table(file: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder().join(file)).unwrap();
    let rows = text.lines().skip(1);
    rows.map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

fn captured(name: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.hex"))).unwrap();
    hex(text.trim())
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let pairs = digits.map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|p| u8::from_str_radix(p, 16).unwrap()).collect()
}

fn hex_list(text: &str) -> Vec<u16> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts.map(|p| u16::from_str_radix(p, 16).unwrap()).collect()
}

fn decimal_list(text: &str) -> Vec<u16> {
    let parts = text.split('-').filter(|part| !part.is_empty());
    parts.map(|p| p.parse().unwrap()).collect()
}

#[test]
fn captured_clients_have_the_fingerprints_of_tshark_and_the_reference() {
    let rows = table("expected.tsv");
    assert!(rows.len() >= 40, "only {} clients", rows.len());
    for row in rows {
        let [name, raw, hash, ja4] = row.as_slice() else {
            panic!("four columns: {row:?}");
        };
        let whole = captured(name);
        let message = client_hello(&whole).unwrap().into_owned();
        let mut ways = vec![whole, [&records(&message, 20_000)[..], b"more"].concat()];
        ways.extend([1, 2, 3, 4, 5, 64, 500].map(|size| records(&message, size)));
        for bytes in ways {
            let found = of_records(&bytes).unwrap();
            assert_eq!(&*found.ja3_raw, raw, "{name}");
            assert_eq!(&*found.ja3, hash, "{name}");
            assert_eq!(&*found.ja4, ja4, "{name}");
            assert_eq!(found.length, message.len(), "{name}");
        }
    }
}

#[test]
fn published_ja4_examples() {
    for row in table("published.tsv") {
        let [
            version,
            ciphers,
            extensions,
            protocol,
            signatures,
            versions,
            expected,
        ] = row.as_slice()
        else {
            panic!("seven columns: {row:?}");
        };
        let body = |number| match number {
            13 => sized(2, &numbers(&hex_list(signatures))),
            16 => alpn(&[protocol.as_bytes(), b"http/1.1"]).1,
            43 => sized(1, &numbers(&hex_list(versions))),
            _ => Vec::new(),
        };
        let draft = Draft {
            version: hex_list(version)[0],
            ciphers: hex_list(ciphers),
            extensions: hex_list(extensions)
                .into_iter()
                .map(|n| (n, body(n)))
                .collect(),
        };
        assert_eq!(&*of_records(&draft.records()).unwrap().ja4, expected);
    }
}

#[test]
fn published_ja3_examples() {
    for (raw, hash) in [
        (
            "769,47-53-5-10-49161-49162-49171-49172-50-56-19-4,0-10-11,23-24-25,0",
            "ada70206e40642a3e4461f35503241d5",
        ),
        (
            "769,4-5-10-9-100-98-3-6-19-18-99,,,",
            "de350869b8c85de67a350c8d186f11e6",
        ),
    ] {
        let parts: Vec<Vec<u16>> = raw.split(',').map(decimal_list).collect();
        let formats: Vec<u8> = parts[4].iter().map(|&n| n as u8).collect();
        let body = |number| match number {
            10 => sized(2, &numbers(&parts[3])),
            11 => sized(1, &formats),
            _ => Vec::new(),
        };
        let draft = Draft {
            version: parts[0][0],
            ciphers: parts[1].clone(),
            extensions: parts[2].iter().map(|&n| (n, body(n))).collect(),
        };
        let found = of_records(&draft.records()).unwrap();
        assert_eq!((&*found.ja3_raw, &*found.ja3), (raw, hash));
    }
}

#[test]
fn protocol_part_of_ja4() {
    for (protocol, expected) in [
        ("6832", "h2"),
        ("687474702f312e31", "h1"),
        ("68", "hh"),
        ("ab", "ab"),
        ("abcd", "ad"),
        ("30ab", "3b"),
        ("3031abcd", "3d"),
        ("30abcd31", "01"),
        ("", "00"),
    ] {
        let draft = Draft {
            version: 0x303,
            extensions: vec![alpn(&[&hex(protocol), b"x"])],
            ..Draft::default()
        };
        let found = of_records(&draft.records()).unwrap().ja4;
        assert_eq!(
            *found,
            format!("t12i0001{expected}_000000000000_000000000000")
        );
    }
}

#[test]
fn grease_values_are_ignored() {
    let plain = |extra: &[u16]| {
        let with = |list: &[u16]| numbers(&[extra, list].concat());
        let mut extensions: Vec<(u16, Vec<u8>)> =
            extra.iter().map(|&number| (number, vec![0])).collect();
        extensions.push((10, sized(2, &with(&[29, 23]))));
        extensions.push((13, sized(2, &with(&[0x403]))));
        extensions.push((43, sized(1, &with(&[0x303, 0x302]))));
        Draft {
            version: 0x303,
            ciphers: [extra, &[0x1301, 0xc02b]].concat(),
            extensions,
        }
    };
    let grease: Vec<u16> = (0..16).map(|n| 0x0a0a + 0x1010 * n).collect();
    let without = of_records(&plain(&[]).records()).unwrap();
    let with = of_records(&plain(&grease).records()).unwrap();
    assert_eq!(without.ja3_raw, with.ja3_raw);
    assert_eq!(without.ja4, with.ja4);
    assert_eq!(&*with.ja3_raw, "771,4865-49195,10-13-43,29-23,");
    assert!(with.ja4.starts_with("t12i020300_"));
    let near = of_records(&plain(&[0x0a1a, 0x0b0b]).records()).unwrap();
    assert!(near.ja3_raw.starts_with("771,2586-2827-4865"));
}

#[test]
fn versions_of_ja4() {
    for (version, listed, expected) in [
        (0x0303, None, "t12"),
        (0x0302, None, "t11"),
        (0x0301, None, "t10"),
        (0x0300, None, "ts3"),
        (0x0002, None, "ts2"),
        (0x7777, None, "t00"),
        (0x0303, Some(vec![0x0302, 0x0304, 0x0303]), "t13"),
        (0x0303, Some(vec![0x0301]), "t10"),
        (0x0303, Some(vec![0x4a4a]), "t00"),
    ] {
        let listed = listed.map(|list| (43, sized(1, &numbers(&list))));
        let draft = Draft {
            version,
            extensions: listed.into_iter().collect(),
            ..Draft::default()
        };
        let found = of_records(&draft.records()).unwrap().ja4;
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn counts_stop_at_99_and_the_raw_string_at_its_maximum_length() {
    let draft = Draft {
        version: 0x303,
        ciphers: (10_000..12_000).collect(),
        extensions: (2000..2150).map(|number| (number, vec![])).collect(),
    };
    let found = of_records(&draft.records()).unwrap();
    assert!(found.ja4.starts_with("t12i999900_"));
    assert_eq!(found.ja3_raw.len(), MAX_RAW);
    let message = draft.message();
    let hello = ClientHello::parse(&message).unwrap();
    assert_eq!(*found.ja3, *ja3(&hello).1);
    assert!(ja3(&hello).0.len() > MAX_RAW);
}

#[test]
fn the_server_name_is_kept_as_sent() {
    let named = |body: Vec<u8>| {
        let draft = Draft {
            version: 0x303,
            extensions: vec![(0, body)],
            ..Draft::default()
        };
        of_records(&draft.records()).unwrap()
    };
    let entry = |kind: u8, name: &[u8]| [vec![kind], sized(2, name)].concat();
    let found = named(sized(2, &entry(0, b"WWW.Example.com.")));
    assert_eq!(found.sni.as_deref(), Some("WWW.Example.com."));
    let second = [entry(9, b"x"), entry(0, b"b")].concat();
    assert_eq!(named(sized(2, &second)).sni.as_deref(), Some("b"));
    for odd in [vec![], vec![0, 9], sized(2, &entry(0, b"\xff"))] {
        let found = named(odd);
        assert_eq!(found.sni, None);
        assert!(found.ja4.starts_with("t12d"));
    }
    assert_eq!(
        of_records(&captured("chrome131")).unwrap().sni.as_deref(),
        Some("localhost")
    );
}

#[test]
fn an_incomplete_client_hello_is_an_error() {
    let whole = captured("firefox144");
    for end in 0..whole.len() {
        assert_eq!(
            of_records(&whole[..end]),
            Err(ClientHelloError::Incomplete),
            "{end}"
        );
    }
    assert_eq!(
        of_records(b"GET / HTTP/1.1\r\n"),
        Err(ClientHelloError::NotHandshake)
    );
    assert_eq!(
        of_records(&[22, 3, 3, 0, 4, 2, 0, 0, 0]),
        Err(ClientHelloError::NotClientHello)
    );
    let mut message = client_hello(&whole).unwrap().into_owned();
    message[3] -= 1;
    assert_eq!(
        of_records(&records(&message, 16_384)),
        Err(ClientHelloError::Malformed)
    );
    let alert_between = [&records(&message, 100)[..105], &[21, 3, 3, 0, 2, 1, 0]].concat();
    assert_eq!(
        of_records(&alert_between),
        Err(ClientHelloError::NotHandshake)
    );
}

#[test]
fn no_changed_byte_causes_a_panic() {
    for name in ["chrome131", "curl", "openssl_all"] {
        let whole = captured(name);
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = of_records(&bytes);
            }
        }
    }
}

/// The definition, with comparing and `format!`.
fn naive_ja4(hello: &ClientHello<'_>) -> String {
    use sha2::Digest;
    let join = |numbers: &[u16]| {
        let texts: Vec<String> = numbers.iter().map(|n| format!("{n:04x}")).collect();
        texts.join(",")
    };
    let hash = |text: String| match text.as_str() {
        "" => "000000000000".to_owned(),
        text => sha2::Sha256::digest(text)[..6]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect(),
    };
    let mut ciphers: Vec<u16> = hello.ciphers().collect();
    let mut extensions: Vec<u16> = hello.extensions().collect();
    let counts = format!(
        "{:02}{:02}",
        ciphers.len().min(99),
        extensions.len().min(99)
    );
    ciphers.sort();
    extensions.sort();
    extensions.retain(|n| ![0, 16].contains(n));
    let signatures: Vec<u16> = hello.signature_algorithms().collect();
    let mut second = join(&extensions);
    if !signatures.is_empty() {
        second = format!("{second}_{}", join(&signatures));
    }
    // The parts that are not lists have tests of their own.
    let whole = ja4(hello);
    let (start, protocol) = (&whole[..4], &whole[8..10]);
    format!(
        "{start}{counts}{protocol}_{}_{}",
        hash(join(&ciphers)),
        hash(second)
    )
}

#[test]
fn fingerprints_are_computed_only_if_read() {
    let found = of_records(&captured("chrome146")).unwrap();
    let computed = || [&found.ja3, &found.ja3_raw, &found.ja4].map(LazyText::is_computed);
    assert_eq!(computed(), [false, false, false]);
    assert!(found.ja4.starts_with("t13d"));
    assert_eq!(computed(), [false, false, true]);
    assert_eq!(found.ja3.len(), 32);
    assert_eq!(computed(), [true, false, true]);
}

#[test]
fn the_kept_sketch_is_small() {
    for row in table("expected.tsv") {
        let whole = captured(&row[0]);
        let message = client_hello(&whole).unwrap();
        let kept = ClientHello::parse(&message).unwrap().sketch().len();
        assert!(
            kept <= 420,
            "{kept} bytes of {} for {}",
            message.len(),
            row[0]
        );
    }
}

proptest! {
    #[test]
    fn no_body_causes_a_panic(body in prop::collection::vec(any::<u8>(), 0..600), size in 1..200_usize) {
        let message = [vec![1], sized(3, &body)].concat();
        if let Ok(hello) = ClientHello::parse(&message) {
            let sketch = hello.sketch();
            let kept = ClientHello::parse(&sketch).unwrap();
            prop_assert_eq!((ja3(&kept), ja4(&kept)), (ja3(&hello), ja4(&hello)));
        }
        if let Ok(found) = of_records(&records(&message, size)) {
            prop_assert_eq!(found.ja4.len(), 36);
            prop_assert_eq!(found.ja3.len(), 32);
        }
        let _ = of_records(&body);
    }

    #[test]
    fn the_sketch_of_a_random_hello_has_the_same_fingerprints(
        ciphers in prop::collection::vec(any::<u16>(), 0..80),
        extensions in prop::collection::vec(
            (prop_oneof![0..50_u16, any::<u16>()], prop::collection::vec(any::<u8>(), 0..9)), 0..40),
    ) {
        let message = Draft { version: 0x303, ciphers, extensions }.message();
        let hello = ClientHello::parse(&message).unwrap();
        let sketch = hello.sketch();
        prop_assert!(sketch.len() <= message.len());
        let kept = ClientHello::parse(&sketch).unwrap();
        prop_assert_eq!((ja3(&kept), ja4(&kept)), (ja3(&hello), ja4(&hello)));
        prop_assert_eq!(ja4(&hello), naive_ja4(&hello));
    }
}
