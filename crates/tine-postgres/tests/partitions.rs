//! What can be distributed by project touches one part at a time.
//!
//! On tables that are partitioned by project, PostgreSQL itself refuses a unique key without the
//! project; that the tables can be made at all is half of the proof. The other half is the
//! server's own count of scans: whatever is done in one project, only one partition of each table
//! is ever looked at.

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

/// Tables that are read as a whole by their nature: what waits for a place in the feed.
const WHOLE: [&str; 1] = ["unfed"];

/// Scans so far of every partition.
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

/// What everybody does, in one project.
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
fn work_in_one_project_looks_at_one_partition_of_each_table() {
    let address = fixture::address(PARTITIONS);
    // Closed, a connection tells its counts.
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
    assert!(several.is_empty(), "more than one partition was looked at: {several:?}");
}

#[test]
fn a_unique_key_without_the_project_cannot_be_made() {
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
    let told = refused.as_db_error().unwrap().message().to_owned();
    assert!(told.contains("must include all partitioning columns"), "{told}");
}
