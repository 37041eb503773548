// Clients of a chat interface: each asks its next request when its last answer is whole.
import {Agent, request} from "node:http";

/** A generator of numbers in [0, 1) from a seed (mulberry32). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

// Short ones are as common as long ones: evenly by their logarithm.
const drawn = (random, least, most) =>
  Math.round(least * (most / least) ** random());

/** Letters of which the random model's vocabulary has no words: one token each. */
function textOf(random, letters) {
  let text = "";
  while (text.length < letters) text += "abcdefghijklmnopqrstuvxyz"[Math.floor(random() * 25)];
  return text;
}

/** What everyone asks, in this order: prompts of 32 to 1,024 tokens, answers of 16 to 256. */
export function requestsFrom(seed, count) {
  const random = randomFrom(seed);
  return Array.from({length: count}, () => ({
    prompt: textOf(random, drawn(random, 32, 1024) - promptExtra),
    tokens: drawn(random, 16, 256),
  }));
}
// The three bytes of the space before the first word.
const promptExtra = 3;

export class Client {
  constructor(url) {
    this.url = new URL("/v1/chat/completions", url);
    this.agent = new Agent({keepAlive: true, maxSockets: 1});
  }

  /**
   * Resolves to times of its pieces (ms), its text, its usage; rejects where it is not whole.
   * begun() whenever it has a piece.
   */
  ask({prompt, tokens}, begun = () => {}) {
    const body = JSON.stringify({model: "bench", stream: true, temperature: 0, ignore_eos: true,
                                 max_tokens: tokens, stream_options: {include_usage: true},
                                 messages: [{role: "user", content: prompt}]});
    const heard = {asked: performance.now(), times: [], text: "", usage: null, done: false};
    return new Promise((resolve, reject) => {
      const sent = request(this.url, {method: "POST", agent: this.agent,
                                      headers: {"Content-Type": "application/json"}});
      sent.on("error", reject);
      sent.on("response", (answer) => {
        let rest = "";
        answer.setEncoding("utf8");
        answer.on("error", reject);
        answer.on("data", (piece) => {
          rest = take(heard, rest + piece);
          if (heard.times.length > 0) begun();
        });
        answer.on("end", () => {
          if (answer.statusCode !== 200) return reject(new Error(`${answer.statusCode} ${rest}`));
          if (!heard.done) return reject(new Error("the answer was cut"));
          if (heard.usage?.completion_tokens !== tokens)
            return reject(new Error(`${heard.usage?.completion_tokens} tokens, not ${tokens}`));
          resolve(heard);
        });
      });
      sent.end(body);
    });
  }

  close() {
    this.agent.destroy();
  }
}

/** Reads whole events; returns what is left of the last one. */
function take(heard, text) {
  const lines = text.split("\n");
  const rest = lines.pop();
  for (const line of lines) {
    if (!line.startsWith("data: ")) continue;
    if (line === "data: [DONE]") {
      heard.done = true;
      continue;
    }
    const event = JSON.parse(line.slice(6));
    if (event.usage) heard.usage = event.usage;
    const content = event.choices?.[0]?.delta?.content;
    if (!content) continue;
    heard.times.push(performance.now());
    heard.text += content;
  }
  return rest;
}

/**
 * All clients at once until the list is done, or so many seconds after each has begun to hear an
 * answer: a side whose last client waits for minutes is measured as long as others. Answers are in
 * order of asking.
 */
export async function runClients(url, clients, requests, seconds) {
  let end = Infinity;
  const busy = new Set();
  const begun = (who) => {
    busy.add(who);
    if (busy.size === clients && end === Infinity) end = performance.now() + seconds * 1000;
  };
  const answers = [];
  const over = {next: 0, failed: 0, idleAt: Infinity};
  async function one(_, who) {
    const client = new Client(url);
    while (over.next < requests.length && performance.now() < end) {
      const ask = requests[over.next++];
      try {
        answers.push({...await client.ask(ask, () => begun(who)), who});
      } catch (error) {
        over.failed++;
        console.error(`serving: ${error.message}`);
      }
    }
    over.idleAt = Math.min(over.idleAt, performance.now());
    client.close();
  }
  await Promise.all(Array.from({length: clients}, one));
  return {answers, failed: over.failed, idleAt: over.idleAt};
}

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);
export const quantile = (numbers, q) => {
  const all = sorted(numbers);
  return all.length === 0 ? NaN : all[Math.min(all.length - 1, Math.floor(q * all.length))];
};

/** Times of one run. The window: from when every client has a first token until one has no more. */
export function measure(runs, clients) {
  let made = 0, seconds = 0, tokens = 0, pieces = 0;
  const first = [], gaps = [];
  for (const {answers, idleAt} of runs) {
    const begins = new Map();
    for (const a of answers)  // a client's own are in order
      if (!begins.has(a.who)) begins.set(a.who, a.times[0]);
    const from = Math.max(...begins.values());
    const times = answers.flatMap((a) => a.times);
    if (begins.size === clients && idleAt > from) {
      made += times.filter((t) => from < t && t <= idleAt).length;
      seconds += (idleAt - from) / 1000;
    }
    pieces += times.length;
    for (const a of answers) {
      tokens += a.usage.completion_tokens;
      first.push(a.times[0] - a.asked);
      for (let i = 1; i < a.times.length; ++i) gaps.push(a.times[i] - a.times[i - 1]);
    }
  }
  // A piece is a token, but for the few that have no text of their own.
  const tokens_per_second = seconds > 0 ? made / seconds * (tokens / pieces) : NaN;
  return {tokens_per_second, window_s: seconds, first, gaps};
}
