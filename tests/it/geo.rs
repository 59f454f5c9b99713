//! Databases and lists that change while requests come, and ones that cannot be used.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::harness::{Client, Folder, Process, Running, Wire, wait_until};

/// The clients of a test come from this computer.
fn table(asn: u32) -> String {
    format!("127.0.0.0\t127.255.255.255\t{asn}\tNL\tTests\n")
}

fn packed(folder: &Folder, name: &str, text: &str) -> Vec<u8> {
    let plain = folder.write(name, text);
    let gzip = Command::new("gzip").arg("-c").arg(plain).output().unwrap();
    assert!(gzip.status.success());
    gzip.stdout
}

/// Everything of AS 64501 is stopped; what is in `folder` is named by its whole path.
fn config(folder: &Folder) -> String {
    let folder = folder.path().display();
    format!(
        "[server]\nworkers = 2\n[log]\naccess = \"{folder}/access.log\"\n\
         [geo]\nasn_database = \"{folder}/asn.tsv\"\ncountry_database = \"{folder}/asn.tsv\"\n\
         [lists]\nagents = {{ file = \"{folder}/agents.txt\" }}\n\
         [[listeners]]\naddress = \"127.0.0.1:0\"\n[[routes]]\nrespond = {{ body = \"hello\" }}\n\
         [[rules]]\nname = \"hoster\"\nmitigate = 'ip.src.asnum eq 64501 and ip.src.continent eq \"EU\"'\n\
         [[rules]]\nname = \"agents\"\nmitigate = 'http.user_agent in $agents'\n"
    )
}

fn files(asn: u32, agents: &str) -> Folder {
    let folder = Folder::new();
    folder.write("asn.tsv", table(asn));
    folder.write("agents.txt", agents);
    folder
}

/// Asks until all is done; gives nothing but 200 and 429 away.
fn ask_until(done: &AtomicBool, mut wire: Wire, answered: &AtomicU64) {
    while !done.load(Ordering::SeqCst) {
        let status = wire.get("/").status;
        assert!(matches!(status, 200 | 429), "{status}");
        answered.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_database_is_replaced_while_in_use() {
    let folder = files(64500, "");
    let gateway = Running::on(&config(&folder));
    let logged = |text: &str| {
        let log = fs::read_to_string(folder.path().join("access.log")).unwrap();
        log.lines().filter(|line| line.contains(text)).count()
    };
    let (done, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let answers = || {
        let before = answered.load(Ordering::SeqCst);
        wait_until("more requests were answered", || {
            answered.load(Ordering::SeqCst) > before + 20
        });
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            let wire = gateway.client().connect();
            scope.spawn(|| ask_until(&done, wire, &answered));
        }
        let steps = scope.spawn(|| {
            answers();
            gateway.client().get("/").times(1).all_are(200);
            folder.write("asn.tsv", packed(&folder, "new.tsv", &table(64501)));
            gateway
                .gateway()
                .reloader()
                .reload(lockgate::gateway::ReloadTrigger::Signal)
                .unwrap();
            gateway.client().get("/").times(3).all_are(429);
            answers();

            let mut cut = packed(&folder, "newer.tsv", &table(64502));
            cut.truncate(cut.len() - 9);
            for (bad, said) in [
                (cut, "asn.tsv: is a damaged gzip file: it ends too early"),
                (
                    format!("{}1.0.0.0\t1.0", table(64502)).into_bytes(),
                    "asn.tsv:2: 2 columns, where the first line has 5",
                ),
            ] {
                folder.write("asn.tsv", bad);
                let refused = gateway
                    .gateway()
                    .reloader()
                    .reload(lockgate::gateway::ReloadTrigger::Signal)
                    .unwrap_err()
                    .to_string();
                assert!(refused.contains("gateway.toml:6:16: error: "), "{refused}");
                assert!(refused.contains(said), "{refused}");
                gateway.client().get("/").times(3).all_are(429);
                answers();
            }
            folder.write("asn.tsv", table(64503));
            gateway
                .gateway()
                .reloader()
                .reload(lockgate::gateway::ReloadTrigger::Signal)
                .unwrap();
            gateway.client().get("/").times(3).all_are(200);
        });
        let ended = steps.join();
        done.store(true, Ordering::SeqCst);
        ended.unwrap();
    });
    for asn in [64500, 64501, 64503] {
        let line = format!("\"asn\":{asn},\"country\":\"NL\"");
        wait_until("it is in the access log", || logged(&line) > 0);
    }
    assert_eq!(logged("\"asn\":64502"), 0);
    assert_eq!(logged("\"asn\":null"), 0);
}

#[test]
fn lists_and_databases_are_read_again_on_sighup() {
    let folder = files(64500, "# none yet\n");
    let config = config(&folder);
    let process = Process::run(&config);
    let curl = Client::plain(process.address(0)).header("user-agent", "curl");
    curl.times(1).all_are(200);
    folder.write("agents.txt", "wget\ncurl # since today\n");
    process.reload(&config);
    curl.times(1).all_are(429);

    folder.write("agents.txt", b"wget\ncu\xffrl\n");
    process.reload(&config);
    curl.times(1).all_are(429);
    wait_until("the line is in the log", || {
        !process.logged("agents.txt:2: not UTF-8").is_empty()
    });

    folder.write("agents.txt", "wget\n");
    folder.write("asn.tsv", table(64501).replace("64501", "AS64501"));
    process.reload(&config);
    curl.times(1).all_are(429);
    wait_until("the line is in the log", || {
        !process
            .logged("asn.tsv:1: `AS64501` is not an AS number")
            .is_empty()
    });

    folder.write("asn.tsv", table(64500));
    process.reload(&config);
    curl.times(1).all_are(200);
}

#[test]
fn check_reports_a_list_value_of_the_wrong_type() {
    let folder = Folder::new();
    folder.write(
        "office.txt",
        "\u{feff}# the office\r\n192.0.2.0/24\r\n\r\n192.0.2.300\r\n",
    );
    let text = "[[listeners]]\naddress = \"127.0.0.1:0\"\n[lists]\n\
        office = { file = \"office.txt\" }\nhosters = [64500,\n  \"AS64501\"]\nids = [7, \"007\"]\n\
        gone = { file = \"gone.txt\" }\n\
        [[rules]]\nname = \"a\"\nmitigate = 'ip.src in $office'\n\
        [[rules]]\nname = \"b\"\nmitigate = 'ip.src.asnum in $hosters or http.cookie in $ids'\n";
    folder.write("gateway.toml", text);
    let check = Process::output(&folder, &["check"]);
    assert_eq!(check.status.code(), Some(1));
    let said = String::from_utf8(check.stdout).unwrap() + &String::from_utf8(check.stderr).unwrap();
    for line in [
        "gateway.toml:8:17: error: cannot read `gone.txt`: ",
        "gateway.toml:11:23: error: `ip.src` is an address; `$office` holds `192.0.2.300` (office.txt:4)",
        "gateway.toml:14:29: error: `ip.src.asnum` is an integer; `$hosters` holds `AS64501` (gateway.toml:6)",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    assert_eq!(said.matches(": error: ").count(), 3, "{said}");
}
