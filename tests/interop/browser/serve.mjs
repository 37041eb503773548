// Serves the page: `node serve.mjs client.toml [PORT]`. Its own files, the client's and those of
// the npm packages; nothing else, and no log.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { parse } from 'smol-toml';

const here = (path) => new URL(path, import.meta.url).pathname;
const folders = {
  '/client/': here('../client/'), '/npm/': here('../node_modules/'), '/': here('./'),
};
const types = {
  '.html': 'text/html; charset=utf-8', '.css': 'text/css', '.mjs': 'text/javascript',
  '.js': 'text/javascript',
};

/// Scripts of the page's own files and its import map; words go to relay and issuer alone.
function policyOf({ relays, issuer }) {
  const map = /<script type="importmap">([^]*?)<\/script>/.exec(
    readFileSync(here('index.html'), 'utf8'))[1];
  const hash = createHash('sha256').update(map).digest('base64');
  const others = [issuer, ...relays].map((url) => new URL(url).origin);
  return `default-src 'none'; script-src 'self' 'sha256-${hash}'; style-src 'self'; ` +
    `img-src data:; connect-src 'self' ${others.join(' ')}; base-uri 'none'; ` +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
}

function fileOf(path) {
  const [prefix, folder] = Object.entries(folders).find(([begins]) => path.startsWith(begins));
  return join(folder, normalize(`/${path.slice(prefix.length)}`));
}

/// Serves on loopback. `trust()` gives the trust file's text, anew for each page.
export async function servePage(trust, port = 0) {
  const answer = async ({ method, url }) => {
    const { pathname } = new URL(url, 'http://page');
    if (method !== 'GET') return [405, 'text/plain', 'use GET'];
    if (pathname === '/client.toml') return [200, 'application/toml', trust()];
    const file = fileOf(pathname === '/' ? '/index.html' : pathname), type = types[extname(file)];
    return type ? [200, type, await readFile(file)] : [404, 'text/plain', 'there is no such file'];
  };
  const server = createServer(async (request, response) => {
    const [status, type, body] = await answer(request)
      .catch(() => [404, 'text/plain', 'there is no such file']);
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store',
      'content-security-policy': policyOf(parse(trust())), 'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff', 'cross-origin-opener-policy': 'same-origin' }).end(body);
  });
  await new Promise((done, failed) => {
    server.on('error', failed).listen(port, '127.0.0.1', done);
  });
  return { origin: `http://127.0.0.1:${server.address().port}`, stop: () => {
    server.closeAllConnections();
    server.close();
  } };
}

if (process.argv[1] === here('serve.mjs')) {
  const [file, port = '8080'] = process.argv.slice(2);
  if (!file) throw new Error('usage: node serve.mjs client.toml [PORT]');
  const { origin } = await servePage(() => readFileSync(file, 'utf8'), Number(port));
  console.log(`${origin}/ (relay and issuer must have it in \`origins\`)`);
}
