// Uploads 5 MB with node's own client, and prints the status of each attempt.
const [port, scheme, attempts] = process.argv.slice(2);
const client = require(scheme === 'tls' ? 'https' : 'http');
const attempt = () => new Promise((done) => {
  const options = { host: '127.0.0.1', port, method: 'POST', path: '/', rejectUnauthorized: false, agent: false };
  const request = client.request(options, (response) => {
    response.resume();
    response.on('end', () => done(response.statusCode));
    response.on('error', (error) => done(error.code));
  });
  request.on('error', (error) => done(error.code));
  request.end(Buffer.alloc(5_000_000));
});
(async () => {
  for (let n = 0; n < attempts; n += 1) console.log(await attempt());
  process.exit(0);
})();
