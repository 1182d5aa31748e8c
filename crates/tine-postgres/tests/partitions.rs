//! Work in one project touches one partition of each table.
//!
//! On tables that are partitioned by project, PostgreSQL rejects a unique key without the project;
//! that the tables can be created is half of the proof. The other half is the server's count of
//! scans: work in one project scans only one partition of each table.

use std::collections::BTreeMap;

use tine_core::{Body, Message, Name, Reference, Role};
use tine_engine::{
    Append, Call, Delete, DeleteMode, Edit, Engine, Fork, ForkPoint, NewConversation, PathQuery,
    SearchQuery, TurnRef,
};
use tine_postgres::PostgresStore;
use tine_store::OpenMode;
use tokio_postgres::NoTls;

use crate::fixture;

const PARTITIONS: u32 = 4;

/// Tables that are always read completely: operations that wait for a place in the feed.
const WHOLE: [&str; 1] = ["unfed"];

/// Returns the number of scans of every partition so far.
fn scans(schema: &str) -> BTreeMap<String, i64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(tine_testkit::database::server(), NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let sql = "SELECT relname::text, coalesce(seq_scan, 0) + coalesce(idx_scan, 0) \
                   FROM pg_stat_user_tables WHERE schemaname = $1";
        let rows = client.query(sql, &[&schema]).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    })
}

/// Runs typical operations in one project.
fn work(engine: &Engine, call: &Call) {
    let id = engine.create_conversation(call, NewConversation::named("c").unwrap()).unwrap().id;
    let say = |text: &str| vec![Message::text(Role::User, text)];
    let large = "word ".repeat(4_000);
    for text in ["red", "green", "blue", &large] {
        engine.append(call, Append::to(id.clone(), say(text))).unwrap();
        let keyed = call.clone().with_key(format!("key-{}", text.len()));
        engine.append(&keyed, Append::to(id.clone(), say(&format!("{text} again")))).unwrap();
    }
    let reference = |name: &str| Reference::parse(name).unwrap();
    let at = |name: &str| TurnRef::within(id.clone(), reference(name));
    let name = Some(Name::from_stored("side"));
    let point = ForkPoint::At(reference("main~3"));
    engine.fork(call, Fork { conversation: Some(id.clone()), point, name }).unwrap();
    let append = Append { branch: Some("side".into()), ..Append::to(id.clone(), say("aside")) };
    engine.append(call, append).unwrap();
    let body = Body::Text("edited".into());
    let branch = Some("side".to_owned());
    engine.edit(call, Edit { turn: at("main~4"), body, branch, reuse: true }).unwrap();
    let delete =
        Delete { turn: at("side"), mode: DeleteMode::Cascade, force: false, dry_run: false };
    engine.delete(call, delete).unwrap();
    engine.path(call, PathQuery::of(id.clone())).unwrap();
    assert!(!engine.search(call, SearchQuery::of("red")).unwrap().hits.is_empty());
}

#[test]
fn work_in_one_project_scans_one_partition_of_each_table() {
    let address = fixture::address(PARTITIONS);
    // A connection reports its counts when it is closed.
    drop(PostgresStore::open(&address, OpenMode::Create).unwrap());
    let before = scans(address.schema());
    let engine = Engine::new(PostgresStore::open(&address, OpenMode::Existing).unwrap());
    work(&engine, &Call::by("tester"));
    drop(engine);
    let mut touched: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (table, count) in scans(address.schema()) {
        let partition = table.rsplit_once('_').filter(|(_, nth)| nth.parse::<u32>().is_ok());
        if let Some((whole, nth)) = partition
            && count > before.get(&table).copied().unwrap_or(0)
            && !WHOLE.contains(&whole)
        {
            touched.entry(whole.to_owned()).or_default().push(nth.to_owned());
        }
    }
    assert!(touched.contains_key("turn") && touched.contains_key("operation"), "{touched:?}");
    let several: Vec<_> = touched.iter().filter(|(_, parts)| parts.len() > 1).collect();
    assert!(several.is_empty(), "more than one partition was scanned: {several:?}");
}

#[test]
fn a_unique_key_without_the_project_is_rejected() {
    let address = fixture::address(PARTITIONS);
    drop(PostgresStore::open(&address, OpenMode::Create).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(tine_testkit::database::server(), NoTls).await.unwrap();
        let _connection = tokio::spawn(connection);
        let sql = format!("CREATE UNIQUE INDEX ON {}.turn (id)", address.schema());
        client.batch_execute(&sql).await.unwrap_err()
    });
    let message = refused.as_db_error().unwrap().message().to_owned();
    assert!(message.contains("must include all partitioning columns"), "{message}");
}
