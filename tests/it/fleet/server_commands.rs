//! Commands to a test server.

use redis::{Connection, FromRedisValue};

use super::server::TestServer;

impl TestServer {
    /// Runs a command, written as in `redis-cli`, and returns its reply.
    #[track_caller]
    pub fn command<T: FromRedisValue>(&self, line: &str) -> T {
        self.try_command(line).unwrap()
    }

    /// Runs a command that may fail.
    pub fn try_command<T: FromRedisValue>(&self, line: &str) -> redis::RedisResult<T> {
        let client = redis::Client::open(self.url())?;
        run(&mut client.get_connection()?, line)
    }

    /// A connection of its own.
    pub fn connect(&self) -> Connection {
        let client = redis::Client::open(self.url()).unwrap();
        client.get_connection().unwrap()
    }

    /// A connection of a user, by default the default user, with a password.
    pub fn connect_as(&self, user: Option<&str>, password: &str) -> Connection {
        let user = user.unwrap_or_default();
        let url = format!("redis://{user}:{password}@127.0.0.1:{}", self.port);
        redis::Client::open(url).unwrap().get_connection().unwrap()
    }

    /// The keys of the gateways, in order.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.command("KEYS lockgate:*");
        keys.sort();
        keys
    }
}

/// Runs a command, written as in `redis-cli`.
pub fn run<T: FromRedisValue>(connection: &mut Connection, line: &str) -> redis::RedisResult<T> {
    let mut words = line.split_whitespace();
    let mut command = redis::cmd(words.next().unwrap());
    words.for_each(|word| _ = command.arg(word));
    command.query(connection)
}
