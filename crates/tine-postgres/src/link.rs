//! One connection to the database, used by one thread at a time.
//!
//! It has a small runtime of its own and is driven by whoever waits for an answer, so that no
//! request is handed from thread to thread. Commands that are sent together travel together: one
//! round trip, however many they are.
//!
//! A request that is not answered in time ends the connection. It is never cancelled: a commit
//! that is cancelled while it waits for a standby counts as done although it may be lost.

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
use crate::address::{Address, HOST_DEADLINE};
use crate::failure::Failure;
use crate::tls;

/// Commands that travel together at most.
pub(crate) const COMMANDS_AT_ONCE: usize = 128;

/// How long connecting may take, to whichever host answers.
const CONNECT_DEADLINE: Duration = Duration::from_secs(4);

/// A value on its way to the database.
pub(crate) type Value = Box<dyn ToSql + Sync + Send>;

/// A statement with its values.
pub(crate) struct Command {
    pub sql: &'static str,
    pub values: Vec<Value>,
    /// What must be there to be changed; nothing where it need not.
    pub changes: Option<&'static str>,
}

impl Command {
    pub(crate) fn new(sql: &'static str, values: Vec<Value>) -> Self {
        Command { sql, values, changes: None }
    }
}

/// Values for a [`Command`].
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as $crate::link::Value),*]
    };
}
pub(crate) use values;

type Line = Connection<Socket, tls::Stream>;

/// One connection.
pub(crate) struct Link {
    runtime: Runtime,
    client: Client,
    line: Line,
    statements: HashMap<&'static str, Statement>,
    /// Whether the last exchange came with a warning.
    warned: bool,
}

impl Link {
    /// Connects to whichever host can be written to and answers first.
    pub(crate) fn connect(address: &Address) -> Result<Link, Failure> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::Away(format!("no runtime: {error}")))?;
        let race = async {
            let hosts = address.hosts().iter().map(|host| {
                Box::pin(async move {
                    match tokio::time::timeout(HOST_DEADLINE, host.connect(address.tls())).await {
                        Ok(connected) => connected.map_err(Failure::from),
                        Err(_) => Err(Failure::Away("a host did not answer in time".to_owned())),
                    }
                })
            });
            select_ok(hosts).await
        };
        let raced = runtime.block_on(async { tokio::time::timeout(CONNECT_DEADLINE, race).await });
        let ((client, line), _) = match raced {
            Ok(Ok(connected)) => connected,
            Ok(Err(failure)) => return Err(failure),
            Err(_) => return Err(Failure::Away("no host answered in time".to_owned())),
        };
        Ok(Link { runtime, client, line, statements: HashMap::new(), warned: false })
    }

    /// Whether the last exchange came with a warning of the server.
    pub(crate) fn was_warned(&self) -> bool {
        self.warned
    }

    /// Sends commands together and answers the rows of the last one. The first failure counts.
    pub(crate) fn exchange(
        &mut self,
        deadline: Duration,
        commands: &[Command],
    ) -> Result<Vec<Row>, Failure> {
        Ok(self.exchange_all(deadline, commands)?.pop().unwrap_or_default())
    }

    /// The same, with the rows of each.
    pub(crate) fn exchange_all(
        &mut self,
        deadline: Duration,
        commands: &[Command],
    ) -> Result<Vec<Vec<Row>>, Failure> {
        self.exchange_reading(deadline, commands, |row| row)
    }

    /// The same, with what is read from the rows; each is read while the next ones are on their
    /// way.
    pub(crate) fn exchange_reading<T>(
        &mut self,
        deadline: Duration,
        commands: &[Command],
        read: impl Fn(Row) -> T,
    ) -> Result<Vec<Vec<T>>, Failure> {
        self.warned = false;
        let mut all = Vec::with_capacity(commands.len());
        for some in commands.chunks(COMMANDS_AT_ONCE) {
            self.prepare(deadline, some)?;
            all.append(&mut self.send(deadline, some, &read)?);
        }
        Ok(all)
    }

    /// Sends a statement whose answer nobody needs, and does not wait for it.
    pub(crate) fn post(&mut self, sql: &'static str) -> Result<(), Failure> {
        self.prepare(WRITE_DEADLINE, &[Command::new(sql, vec![])])?;
        let Link { runtime, client, line, warned, statements } = self;
        let mut sent = pin!(client.query_raw(&statements[sql], Vec::<Value>::new()));
        let mut begun = false;
        let sending = std::future::poll_fn(|context| match std::mem::replace(&mut begun, true) {
            // Once it is begun it goes out with whatever the line does next.
            false => sent.as_mut().poll(context).map(|sent| Ok(sent.map(drop)?)),
            true => Poll::Ready(Ok(())),
        });
        drive(runtime, line, warned, WRITE_DEADLINE, sending)
    }

    /// Sends a text of several statements, or of one that cannot be prepared.
    pub(crate) fn batch(&mut self, deadline: Duration, sql: &str) -> Result<(), Failure> {
        let Link { runtime, client, line, warned, .. } = self;
        drive(runtime, line, warned, deadline, async { Ok(client.batch_execute(sql).await?) })
    }

    fn prepare(&mut self, deadline: Duration, commands: &[Command]) -> Result<(), Failure> {
        let mut unknown: Vec<&'static str> = Vec::new();
        for command in commands {
            if !self.statements.contains_key(command.sql) && !unknown.contains(&command.sql) {
                unknown.push(command.sql);
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let Link { runtime, client, line, warned, statements } = self;
        let prepared = drive(runtime, line, warned, deadline, async {
            let each = unknown.iter().map(|sql| client.prepare(sql)).collect();
            Ok(in_order(each).await)
        })?;
        for (sql, statement) in unknown.into_iter().zip(prepared) {
            statements.insert(sql, statement?);
        }
        Ok(())
    }

    fn send<T>(
        &mut self,
        deadline: Duration,
        commands: &[Command],
        read: &impl Fn(Row) -> T,
    ) -> Result<Vec<Vec<T>>, Failure> {
        let Link { runtime, client, line, warned, statements } = self;
        let (client, statements) = (&*client, &*statements);
        let answers = drive(runtime, line, warned, deadline, async {
            let each = commands.iter().map(|command| async move {
                let values = command.values.iter().map(|value| &**value as &(dyn ToSql + Sync));
                let statement = &statements[command.sql];
                let stream = client.query_raw(statement, values).await?;
                let mut stream = pin!(stream);
                let mut rows = Vec::new();
                while let Some(row) = stream.try_next().await? {
                    rows.push(read(row));
                }
                Ok::<_, Failure>((rows, stream.rows_affected()))
            });
            Ok(in_order(each.collect()).await)
        })?;
        let mut all = Vec::with_capacity(commands.len());
        for (command, answer) in commands.iter().zip(answers) {
            let (rows, changed) = answer?;
            if let Some(what) = command.changes.filter(|_| changed == Some(0)) {
                return Err(Failure::Contract(format!("the {what} to be changed is not there")));
            }
            all.push(rows);
        }
        Ok(all)
    }
}

/// Works on a connection and for it, until there is an answer or no time is left.
fn drive<T>(
    runtime: &Runtime,
    line: &mut Line,
    warned: &mut bool,
    deadline: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let both = async {
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            loop {
                match line.poll_message(context) {
                    Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                        tracing::debug!("the database says: {}", notice.message());
                        *warned |= notice.code().code() == "01000";
                    }
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
                    Poll::Ready(None) => {
                        let why = "the connection was closed".to_owned();
                        return Poll::Ready(Err(Failure::Away(why)));
                    }
                    Poll::Pending => break,
                }
            }
            // What came in may be what the work waits for.
            work.as_mut().poll(context)
        })
        .await
    };
    let late = || Failure::Away(format!("no answer within {} s", deadline.as_secs()));
    runtime
        .block_on(async { tokio::time::timeout(deadline, both).await })
        .unwrap_or_else(|_| Err(late()))
}

/// Begins each in order, so that requests are sent in order, and waits for all.
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
