//! Encrypted connections, and servers that are not trusted.

use tine_core::ErrorKind;
use tine_postgres::{PostgresAddress, PostgresStore};
use tine_store::OpenMode;
use tine_testkit::database::Encrypted;
use tokio_postgres::NoTls;

/// Opens a store and returns how many of its connections are encrypted.
fn open(server: &Encrypted, host: &str, parameters: &str) -> Result<i64, tine_store::StoreError> {
    let address = server.address().replace("127.0.0.1", host);
    let address = PostgresAddress::parse(&format!("{address}?{parameters}"))?;
    let _store = PostgresStore::open(&address, OpenMode::Create)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    Ok(runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(server.address(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                   WHERE ssl AND application_name = 'tine'";
        client.query_one(sql, &[]).await.unwrap().get(0)
    }))
}

#[test]
fn connections_are_encrypted_and_an_untrusted_server_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let [authority, other] = ["authority.pem", "other.pem"].map(|name| folder.path().join(name));
    let server = Encrypted::start(&authority);
    drop(Encrypted::start(&other));
    let trusting = |mode: &str| format!("sslmode={mode}&sslrootcert={}", authority.display());
    let encrypted = |host: &str, parameters: &str| open(&server, host, parameters).unwrap() > 0;

    assert!(encrypted("localhost", &trusting("verify-full")));
    assert!(encrypted("127.0.0.1", &trusting("verify-ca")), "the host name is not checked");
    assert!(encrypted("127.0.0.1", "sslmode=require"), "no certificate is checked");
    assert!(encrypted("127.0.0.1", ""), "encrypted if supported");
    assert!(!encrypted("127.0.0.1", "sslmode=disable"));

    let mistrusted = format!("sslmode=verify-full&sslrootcert={}", other.display());
    for (host, parameters, why) in [
        ("127.0.0.1", trusting("verify-full"), "127.0.0.1"),
        ("localhost", mistrusted.clone(), "invalid peer certificate"),
        ("localhost", mistrusted.replace("verify-full", "require"), "invalid peer certificate"),
        ("localhost", "sslmode=verify-full".to_owned(), "trust"),
    ] {
        let refused = open(&server, host, &parameters).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{parameters}: {refused}");
        let message = refused.to_string();
        assert!(message.contains(why) && message.contains("sslrootcert"), "{message}");
    }
}

#[test]
fn a_password_is_bound_to_the_channel_it_is_sent_over() {
    let folder = tempfile::tempdir().unwrap();
    let server = Encrypted::start(&folder.path().join("authority.pem"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(server.address(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let file: String = client.query_one("SHOW hba_file", &[]).await.unwrap().get(0);
        let sql = format!(
            "CREATE ROLE bound LOGIN SUPERUSER PASSWORD 'secret'; \
             COPY (VALUES ('host all bound all scram-sha-256'), ('host all all all trust')) \
             TO '{file}'; SELECT pg_reload_conf()"
        );
        client.batch_execute(&sql).await.unwrap();
    });
    let address = server.address().replace("postgres@", "bound:secret@");
    let open = |address: &str, parameters: &str| {
        let address = PostgresAddress::parse(&format!("{address}?{parameters}")).unwrap();
        PostgresStore::open(&address, OpenMode::Create).map(drop)
    };
    open(&address, "sslmode=require&channel_binding=require").unwrap();
    let plain = open(&address, "sslmode=disable&channel_binding=require").unwrap_err();
    assert!(plain.to_string().contains("channel binding"), "{plain}");
    let wrong = address.replace("secret", "guess");
    assert!(open(&wrong, "sslmode=require&channel_binding=require").is_err());
}

#[test]
fn a_server_without_encryption_is_rejected_if_encryption_is_required() {
    let address = format!("{}&sslmode=require", tine_testkit::database::new_store());
    let refused = PostgresStore::open(&PostgresAddress::parse(&address).unwrap(), OpenMode::Create);
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("does not support TLS"), "{message}");
}

#[test]
fn unreadable_certificates_are_reported_with_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing\n").unwrap();
    for (parameters, why) in [
        ("sslmode=verify".to_owned(), "`verify-full`"),
        ("sslrootcert=nowhere.pem".to_owned(), "nowhere.pem"),
        (format!("sslrootcert={}", empty.display()), "no certificate"),
        ("sslrootcert=%FF".to_owned(), "UTF-8"),
    ] {
        let wrong = PostgresAddress::parse(&format!("postgres://me@localhost/db?{parameters}"));
        let message = wrong.unwrap_err().to_string();
        assert!(message.contains(why), "{parameters}: {message}");
    }
}
