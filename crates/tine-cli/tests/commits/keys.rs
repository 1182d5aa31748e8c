//! `tine key`, and commits that are signed.

use crate::harness::Home;

fn private_key(home: &Home, name: &str) -> std::path::PathBuf {
    home.path(".config/tine/keys").join(format!("{name}.key"))
}

#[test]
fn a_private_key_is_for_the_user_alone_and_never_shown() {
    let home = Home::new();
    let made = home.json(&["key", "new"]);
    let file = private_key(&home, "default");
    assert_eq!(made["file"], file.to_str().unwrap());
    let secret = std::fs::read_to_string(&file).unwrap();
    assert_eq!(secret.trim().len(), 64);
    let calls: [&[&str]; 4] = [
        &["key", "list"],
        &["key", "show"],
        &["--json", "key", "list"],
        &["--json", "key", "show"],
    ];
    for arguments in calls {
        let out = home.ok(arguments);
        assert!(out.contains(made["public_key"].as_str().unwrap()), "{out}");
        assert!(!out.contains(secret.trim()), "tine {arguments:?} shows a private key");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_commit_is_signed_and_the_signature_checked() {
    let home = Home::with_trip();
    home.ok(&["key", "new", "laptop"]);
    let out = home.ok(&["commit", "-m", "Final plan", "--sign", "laptop"]);
    let key = home.json(&["key", "show", "laptop"])["public_key"].as_str().unwrap().to_owned();
    assert!(out.contains(&format!("signed by {key}")), "{out}");
    let commit = &home.json(&["commits"])["items"][0];
    assert_eq!(commit["signature"]["public_key"], key);
    assert_eq!(commit["signature"]["valid"], true);
    let (hash, value) = (&commit["commit_hash"], &commit["signature"]["value"]);
    let (hash, value) = (hash.as_str().unwrap(), value.as_str().unwrap());
    assert!(tine_core::sign::verify(&key, value, hash), "anybody can check it");
    let shown = home.ok(&["show", hash]);
    assert!(shown.contains("valid, by") && home.ok(&["commits"]).contains("(signed)"), "{shown}");
}

#[test]
fn a_key_that_cannot_be_used_makes_no_commit() {
    let home = Home::with_trip();
    let why = home.refused("not_found", &["commit", "-m", "x", "--sign"]);
    assert!(why.contains("tine commit key new default"), "{why}");
    home.ok(&["key", "new"]);
    home.refused("conflict", &["key", "new"]);
    for name in ["../x", "a/b", ".hidden", ""] {
        home.refused("invalid", &["key", "new", name]);
    }
    let file = private_key(&home, "default");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&file, open).unwrap();
        let why = home.refused("invalid", &["commit", "-m", "x", "--sign"]);
        assert!(why.contains("chmod 600"), "{why}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    std::fs::write(&file, "not a key").unwrap();
    home.refused("invalid", &["commit", "-m", "x", "--sign"]);
    assert_eq!(home.ok(&["commits"]), "");
}
