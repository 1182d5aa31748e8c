//! Bundles and backups.

use crate::harness::{Home, finish};
use crate::reading::with_demo;

#[test]
fn an_export_imports_elsewhere_byte_for_byte() {
    let home = with_demo();
    let file = home.path("bundle.jsonl");
    let file = file.to_str().unwrap();
    assert_eq!(home.ok(&["export", "-o", file]), format!("wrote 1 conversation to {file}\n"));
    let other = Home::new();
    let done = other.json(&["import", file]);
    assert_eq!(done["conversations"], 1);
    assert_eq!(other.everything(), home.everything());
    assert_eq!(other.ok(&["tree"]), home.ok(&["tree"]));
    assert!(other.ok(&["import", file]).contains("1 unchanged"));
    home.ok(&["append", "one more"]);
    other.ok_with(&["import", "-"], home.everything().as_bytes());
    assert_eq!(other.everything(), home.everything());
    assert_eq!(other.json(&["verify"])["ok"], true);
}

#[test]
fn an_import_can_go_into_another_project() {
    let home = with_demo();
    let bundle = home.everything();
    home.ok_with(&["import", "-", "--project", "archive"], bundle.as_bytes());
    assert!(home.ok(&["ls", "--project", "archive"]).contains("tokyo-trip"));
}

#[test]
fn an_altered_bundle_is_refused_as_a_whole() {
    let home = with_demo();
    let altered = home.everything().replace("Late March", "Late Marsh");
    let other = Home::with_trip();
    other.refused_with("invalid", &["import", "-"], altered.as_bytes());
    other.refused_with("invalid", &["import", "-"], b"Dear Sir\n");
    let cut = &altered[..altered.len() / 2];
    other.refused_with("invalid", &["import", "-"], cut.as_bytes());
}

#[test]
fn a_failed_export_keeps_an_existing_file() {
    let home = with_demo();
    let file = home.write("bundle.jsonl", "older");
    home.refused("not_found", &["export", "nothing", "-o", &file]);
    assert_eq!(home.run(&["export", "tokyo-trip", "nothing"]).out, "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "older");
    let names: Vec<_> = std::fs::read_dir(home.path("")).unwrap().collect();
    assert!(!format!("{names:?}").contains("partial"));
}

/// A link stays a link, a private file private, and what is no file is written to.
#[test]
#[cfg(unix)]
fn an_export_keeps_links_permissions_and_pipes() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let home = with_demo();
    let real = home.write("real.jsonl", "older");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (link, dangling) = (home.path("link.jsonl"), home.path("dangling.jsonl"));
    symlink("real.jsonl", &link).unwrap();
    symlink("new.jsonl", &dangling).unwrap();
    for path in [&link, &dangling] {
        home.ok(&["export", "--all", "-o", path.to_str().unwrap()]);
        assert!(path.symlink_metadata().unwrap().is_symlink());
    }
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    for path in [home.path("real.jsonl"), home.path("new.jsonl")] {
        assert_eq!(std::fs::read_to_string(path).unwrap(), home.everything());
    }
    let pipe = home.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap())
    };
    home.ok(&["export", "--all", "-o", pipe.to_str().unwrap()]);
    assert_eq!(reader.join().unwrap(), home.everything());
    assert!(pipe.metadata().unwrap().file_type().is_fifo());
}

#[test]
fn a_backup_is_a_store_and_can_be_replaced() {
    let home = with_demo();
    let folder = home.path("backup");
    let folder = folder.to_str().unwrap();
    home.ok(&["backup", folder]);
    let exported = |home: &Home| {
        finish(&mut home.command(&["export", "--all", "--store", folder, "--json"]), b"").out
    };
    assert!(exported(&home) == home.everything(), "reading a backup does not change it");
    for number in 0..2 {
        home.ok(&["append", &format!("{number}")]);
        home.ok(&["store", "backup", folder]);
        assert!(exported(&home) == home.everything(), "a later backup replaces it");
    }
    home.ok(&["append", "elsewhere", "--store", folder]);
    let error = home.refused("protected", &["backup", folder]);
    assert!(error.contains("changed since"), "{error}");
    let other = Home::with_trip();
    let store = other.path("store");
    let error = home.refused("protected", &["backup", store.to_str().unwrap()]);
    assert!(error.contains("not a backup"), "{error}");
    assert!(other.ok(&["log"]).contains("Late March"));
    let names = std::fs::read_dir(home.path("")).unwrap().map(|it| it.unwrap().file_name());
    let names: Vec<_> = names.collect();
    assert!(!format!("{names:?}").contains("tine-backup"), "{names:?}");
}
