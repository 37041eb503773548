// What a person types goes the private path, and each step is told as it is taken. Nothing is
// stored: account, tokens and words are in memory, and end with the page.
import { parse } from 'smol-toml';
import { hex, sha256, textOf } from './client/bytes.mjs';
import { PrivateClient, Refused } from './client/client.mjs';

const at = (id) => document.getElementById(id);
const brief = (bytes) => hex(bytes).slice(0, 16);
const many = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;
const said = []; // the conversation, as the API has it
let client;

function step(name, state, text = '') {
  const item = document.querySelector(`[data-step="${name}"]`);
  item.dataset.state = state;
  item.lastChild.textContent = text;
}

/// Takes a step; what went wrong is told in the client's own words, and thrown on.
async function take(name, run) {
  step(name, 'run');
  try {
    step(name, 'good', await run());
  } catch (why) {
    step(name, 'bad', why.message);
    throw why;
  }
}

/// One thing at a time; whatever fails is shown.
async function alone(run) {
  const buttons = document.querySelectorAll('button');
  at('trouble').textContent = '';
  for (const button of buttons) button.disabled = true;
  await run().catch((why) => { at('trouble').textContent = why.message; });
  for (const button of buttons) button.disabled = false;
}

async function readTrust() {
  const answer = await fetch('client.toml', { cache: 'no-store' });
  if (!answer.ok) throw new Error(`client.toml: it answers ${answer.status}`);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  client = new PrivateClient({ trust: parse(textOf(bytes)) });
  return `SHA-256 ${brief(await sha256(bytes))}…, relay ${new URL(client.relay).host}`;
}

async function look() {
  if (!client) await take('trust', readTrust);
  for (const later of ['log', 'roster']) step(later, 'run');
  const view = await client.look().catch((why) => {
    const where = /^(roster|policy)/.test(why.message) ? 'roster' : 'log';
    step(where === 'log' ? 'roster' : 'log', '');
    step(where, 'bad', why.message);
    throw why;
  });
  step('log', 'good', `entries: ${view.size}; witnesses: ${client.trust.quorum} or more`);
  step('roster', 'good', `epoch ${view.roster.epoch}, ${many(view.roster.leaves.length, 'node')}`);
  return view;
}

const left = () => `${many(client.tokensLeft, 'token')} left, in memory`;

async function buy() {
  await look();
  client.secret = at('secret').value;
  await take('tokens', async () => {
    await client.buy();
    return left();
  });
  client.secret = at('secret').value = '';
  showForms();
}

function showForms() {
  const rich = client.tokensLeft > 0;
  at('account').hidden = rich;
  at('ask').hidden = !rich;
  at(rich ? 'words' : 'secret').focus();
}

function show(role, text) {
  document.querySelector('.hint')?.remove();
  const item = document.createElement('li');
  item.className = role;
  item.append(Object.assign(document.createElement('p'), { textContent: text }));
  at('messages').append(item);
  item.scrollIntoView({ block: 'end' });
  return item;
}

/// The words of an answer as they come: events, or all of it at once.
async function* wordsOf(answer) {
  const streamed = answer.headers.get('content-type')?.startsWith('text/event-stream');
  if (streamed)
    for await (const { choices } of answer.events()) yield choices?.[0]?.delta?.content ?? '';
  else {
    const json = await answer.json();
    if (answer.status !== 200) throw new Error(json.error?.message ?? `status ${answer.status}`);
    yield json.choices[0].message.content;
  }
}

/// Sealed to freshly drawn nodes; gives the answer's words once the receipt is good.
async function ask(into) {
  const { policy } = await client.view();
  let answer, text = '';
  await take('seal', async () => {
    answer = await client.ask('/v1/chat/completions',
      { model: Object.keys(policy.classes)[0], messages: said, stream: true });
    return `to ${many(policy.candidates, 'node')}, drawn by capacity`;
  });
  step('receipt', 'run');
  await take('answer', async () => {
    for await (const words of wordsOf(answer)) {
      into.firstChild.textContent = text += words;
      into.scrollIntoView({ block: 'end' });
    }
    return `opened, ${many(text.length, 'character')}`;
  });
  const { epoch, release, bytesWiped } = await answer.proof;
  step('receipt', 'good', `epoch ${epoch}, release ${brief(release)}…, ${bytesWiped} bytes wiped`);
  into.append(Object.assign(document.createElement('small'), { textContent: 'receipt verified' }));
  return text;
}

async function send(content) {
  said.push({ role: 'user', content });
  at('words').value = '';
  const mine = show('user', content), into = show('assistant', '');
  try {
    for (const name of ['seal', 'answer', 'receipt']) step(name, '');
    said.push({ role: 'assistant', content: await ask(into) });
  } catch (why) {
    for (const item of [mine, into]) item.remove(); // nothing that was not verified stays
    said.pop();
    at('words').value = content;
    const receipt = /^receipt/.test(why.message);
    if (receipt) step('answer', '');
    step('receipt', receipt ? 'bad' : '', receipt ? why.message : '');
    if (why instanceof Refused && why.change === 'due') await why.claim();
    throw why;
  } finally {
    step('tokens', client.tokensLeft > 0 ? 'good' : '', left());
    showForms();
  }
}

at('account').addEventListener('submit', (event) => {
  event.preventDefault();
  alone(buy);
});
at('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  alone(() => send(at('words').value));
});
at('words').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  at('ask').requestSubmit(at('send'));
});
addEventListener('beforeunload', (event) => {
  if (client?.tokensLeft > 0) event.preventDefault(); // they would be lost
});
alone(look);
