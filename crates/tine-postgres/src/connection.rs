//! One connection to the database, used by one thread at a time.
//!
//! It has a small runtime of its own, driven by the thread that waits for an answer, so that no
//! request moves between threads. Commands that are sent together are pipelined: one round trip,
//! however many they are.
//!
//! A request that is not answered in time closes the connection. It is never cancelled: a commit
//! that is cancelled while it waits for a standby counts as committed although it may be lost.

use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::select_ok;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Connection, Row, Socket, Statement};

use crate::WRITE_DEADLINE;
use crate::address::{HOST_DEADLINE, PostgresAddress};
use crate::failure::{DatabaseFailure, DatabaseResult};
use crate::tls;

/// The maximum number of commands in a pipeline.
pub(crate) const PIPELINE_COMMANDS: usize = 128;

/// How long connecting may take, over all hosts.
const CONNECT_DEADLINE: Duration = Duration::from_secs(4);

/// A parameter of a statement.
pub(crate) type SqlValue = Box<dyn ToSql + Sync + Send>;

/// A statement with its parameters.
pub(crate) struct SqlCommand {
    pub sql: &'static str,
    pub values: Vec<SqlValue>,
    /// The kind of record that the statement must change; `None` if it may change nothing.
    pub must_change: Option<&'static str>,
}

impl SqlCommand {
    pub(crate) fn new(sql: &'static str, values: Vec<SqlValue>) -> Self {
        SqlCommand { sql, values, must_change: None }
    }
}

/// Boxes the parameters of a [`SqlCommand`].
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as $crate::connection::SqlValue),*]
    };
}
pub(crate) use values;

type SocketConnection = Connection<Socket, tls::Stream>;

pub(crate) struct PgConnection {
    runtime: Runtime,
    client: Client,
    socket: SocketConnection,
    statements: HashMap<&'static str, Statement>,
    /// Whether the server sent a warning with the last exchange.
    warned: bool,
}

impl PgConnection {
    /// Connects to the first writable host that answers.
    pub(crate) fn connect(address: &PostgresAddress) -> DatabaseResult<PgConnection> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| DatabaseFailure::Unreachable(format!("no runtime: {error}")))?;
        let race = async {
            let hosts = address.hosts().iter().map(|host| {
                Box::pin(async move {
                    match tokio::time::timeout(HOST_DEADLINE, host.connect(address.tls())).await {
                        Ok(connected) => connected.map_err(DatabaseFailure::from),
                        Err(_) => Err(DatabaseFailure::Unreachable(
                            "a host did not answer in time".to_owned(),
                        )),
                    }
                })
            });
            select_ok(hosts).await
        };
        let raced = runtime.block_on(async { tokio::time::timeout(CONNECT_DEADLINE, race).await });
        let ((client, socket), _) = match raced {
            Ok(Ok(connected)) => connected,
            Ok(Err(failure)) => return Err(failure),
            Err(_) => {
                return Err(DatabaseFailure::Unreachable("no host answered in time".to_owned()));
            }
        };
        Ok(PgConnection { runtime, client, socket, statements: HashMap::new(), warned: false })
    }

    /// Returns whether the server sent a warning with the last exchange.
    pub(crate) fn was_warned(&self) -> bool {
        self.warned
    }

    /// Sends commands in one pipeline and returns the rows of the last one, or the first failure.
    pub(crate) fn exchange(
        &mut self,
        deadline: Duration,
        commands: &[SqlCommand],
    ) -> DatabaseResult<Vec<Row>> {
        Ok(self.exchange_all(deadline, commands)?.pop().unwrap_or_default())
    }

    /// Like `exchange`, but returns the rows of each command.
    pub(crate) fn exchange_all(
        &mut self,
        deadline: Duration,
        commands: &[SqlCommand],
    ) -> DatabaseResult<Vec<Vec<Row>>> {
        self.exchange_mapped(deadline, commands, |row| row)
    }

    /// Like `exchange_all`, but converts each row while the next ones are still arriving.
    pub(crate) fn exchange_mapped<T>(
        &mut self,
        deadline: Duration,
        commands: &[SqlCommand],
        read: impl Fn(Row) -> T,
    ) -> DatabaseResult<Vec<Vec<T>>> {
        self.warned = false;
        let mut all = Vec::with_capacity(commands.len());
        for pipeline in commands.chunks(PIPELINE_COMMANDS) {
            self.prepare(deadline, pipeline)?;
            all.append(&mut self.send(deadline, pipeline, &read)?);
        }
        Ok(all)
    }

    /// Sends a statement without waiting for its answer.
    pub(crate) fn send_without_waiting(&mut self, sql: &'static str) -> DatabaseResult<()> {
        self.prepare(WRITE_DEADLINE, &[SqlCommand::new(sql, vec![])])?;
        let PgConnection { runtime, client, socket, warned, statements } = self;
        let mut sent = pin!(client.query_raw(&statements[sql], Vec::<SqlValue>::new()));
        let mut started = false;
        let sending = std::future::poll_fn(|context| match std::mem::replace(&mut started, true) {
            // Once polled, it is sent with the next write to the socket.
            false => sent.as_mut().poll(context).map(|sent| Ok(sent.map(drop)?)),
            true => Poll::Ready(Ok(())),
        });
        drive(runtime, socket, warned, WRITE_DEADLINE, sending)
    }

    /// Runs several statements, or one that cannot be prepared.
    pub(crate) fn execute_script(&mut self, deadline: Duration, sql: &str) -> DatabaseResult<()> {
        let PgConnection { runtime, client, socket, warned, .. } = self;
        drive(runtime, socket, warned, deadline, async { Ok(client.batch_execute(sql).await?) })
    }

    fn prepare(&mut self, deadline: Duration, commands: &[SqlCommand]) -> DatabaseResult<()> {
        let mut unprepared: Vec<&'static str> = Vec::new();
        for command in commands {
            if !self.statements.contains_key(command.sql) && !unprepared.contains(&command.sql) {
                unprepared.push(command.sql);
            }
        }
        if unprepared.is_empty() {
            return Ok(());
        }
        let PgConnection { runtime, client, socket, warned, statements } = self;
        let prepared = drive(runtime, socket, warned, deadline, async {
            let each = unprepared.iter().map(|sql| client.prepare(sql)).collect();
            Ok(in_order(each).await)
        })?;
        for (sql, statement) in unprepared.into_iter().zip(prepared) {
            statements.insert(sql, statement?);
        }
        Ok(())
    }

    fn send<T>(
        &mut self,
        deadline: Duration,
        commands: &[SqlCommand],
        read: &impl Fn(Row) -> T,
    ) -> DatabaseResult<Vec<Vec<T>>> {
        let PgConnection { runtime, client, socket, warned, statements } = self;
        let (client, statements) = (&*client, &*statements);
        let answers = drive(runtime, socket, warned, deadline, async {
            let each = commands.iter().map(|command| async move {
                let values = command.values.iter().map(|value| &**value as &(dyn ToSql + Sync));
                let statement = &statements[command.sql];
                let stream = client.query_raw(statement, values).await?;
                let mut stream = pin!(stream);
                let mut rows = Vec::new();
                while let Some(row) = stream.try_next().await? {
                    rows.push(read(row));
                }
                Ok::<_, DatabaseFailure>((rows, stream.rows_affected()))
            });
            Ok(in_order(each.collect()).await)
        })?;
        let mut all = Vec::with_capacity(commands.len());
        for (command, answer) in commands.iter().zip(answers) {
            let (rows, changed) = answer?;
            if let Some(what) = command.must_change.filter(|_| changed == Some(0)) {
                return Err(DatabaseFailure::Contract(format!(
                    "the {what} to be changed is not there"
                )));
            }
            all.push(rows);
        }
        Ok(all)
    }
}

/// Drives the connection until the work is done or the deadline has passed.
fn drive<T>(
    runtime: &Runtime,
    socket: &mut SocketConnection,
    warned: &mut bool,
    deadline: Duration,
    work: impl Future<Output = DatabaseResult<T>>,
) -> DatabaseResult<T> {
    let both = async {
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            loop {
                match socket.poll_message(context) {
                    Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                        tracing::debug!("the database says: {}", notice.message());
                        *warned |= notice.code().code() == "01000";
                    }
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
                    Poll::Ready(None) => {
                        let why = "the connection was closed".to_owned();
                        return Poll::Ready(Err(DatabaseFailure::Unreachable(why)));
                    }
                    Poll::Pending => break,
                }
            }
            // A message may have completed the work.
            work.as_mut().poll(context)
        })
        .await
    };
    let late =
        || DatabaseFailure::Unreachable(format!("no answer within {} s", deadline.as_secs()));
    runtime
        .block_on(async { tokio::time::timeout(deadline, both).await })
        .unwrap_or_else(|_| Err(late()))
}

/// Polls futures in order, so that requests are sent in order, and waits for all.
async fn in_order<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut all = true;
        for (future, done) in waiting.iter_mut().zip(&mut done) {
            if done.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(answer) => *done = Some(answer),
                    Poll::Pending => all = false,
                }
            }
        }
        if all { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
