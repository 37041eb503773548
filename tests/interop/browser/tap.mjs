// Stands before a server: passes everything on, and keeps what its clients said.
import { connect, createServer } from 'node:net';

export class Tap {
  #said = [];
  static async before(url) {
    const { hostname, port } = new URL(url), tap = new Tap();
    tap.server = createServer((client) => {
      const server = connect(port, hostname), pieces = [];
      tap.#said.push(pieces);
      client.on('data', (piece) => pieces.push(piece));
      for (const [from, to] of [[client, server], [server, client]])
        from.pipe(to).on('error', () => from.destroy());
    });
    await new Promise((done) => { tap.server.listen(0, '127.0.0.1', done); });
    tap.url = `http://127.0.0.1:${tap.server.address().port}`;
    tap.server.unref();
    return tap;
  }
  /// The heads of all requests since the last call, each kind once.
  takeHeads() {
    const all = this.#said.map((pieces) => Buffer.concat(pieces.splice(0)).toString('latin1'));
    const head = /[A-Z]+ \/\S* HTTP\/1\.1\r\n[^]*?\r\n\r\n/g;
    return [...new Set(all.flatMap((text) => text.match(head) ?? []))].sort();
  }
  stop() { this.server.close(); }
}
