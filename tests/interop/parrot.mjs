// A model whose answers are known: each token has one successor. Attention and MLP are zero, so
// the last token's embedding goes straight to the head, whose rows are embeddings of predecessors.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folder, tiny } from './cluster.mjs';

const hidden = 64;
const eos = 507;
const first = 512; // tokens below are the tiny model's

export const call = (city) =>
  `{"name": "weather", "arguments": {"city": "${city}"}}`;

// What follows the prompt's last token, by what the template ends with.
const lines = [
  ['<|asked|>', 'Let me look.', '\n', '<tool_call>', call('Oslo'), '</tool_call>',
    `\n<tool_call>${call('Bergen')}</tool_call>`, null],
  ['<|told|>', 'It is 21 degrees', ' in both.', null],
  ['<|broken|>', ' <tool_call>{"name": weather', ' or so}', null],
  ['<|on|>', ' on', ' and', ' on'],
];
// Many models have the tags as control tokens, which are no text otherwise.
const control = new Set(['<|asked|>', '<|told|>', '<|broken|>', '<|on|>', '<tool_call>',
  '</tool_call>']);

const template = `{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}
{%- if m['content'] %}{{ m['content'] }}{% endif %}
{%- for c in m['tool_calls'] or [] %}{{ '<tool_call>' + (c['function'] | tojson) + '</tool_call>' }}
{%- endfor %}{{ '<|im_end|>' }}{% endfor %}
{%- if messages[-1]['role'] == 'tool' %}<|told|>
{%- elif messages[-1]['content'] == 'break' %}<|broken|>
{%- elif tools %}<|asked|>{% else %}<|on|>{% endif %}`;

function random(seed) { // xorshift
  let s = seed;
  return () => {
    s ^= s << 13; s ^= s >>> 17; s ^= s << 5;
    return (s >>> 0) / 2 ** 32 - 0.5;
  };
}

function safetensors(tensors) {
  const header = {};
  let at = 0;
  for (const [name, { shape, data }] of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [at, at + data.byteLength] };
    at += data.byteLength;
  }
  let json = JSON.stringify(header);
  json = json.padEnd(Math.ceil(json.length / 8) * 8);
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([size, Buffer.from(json),
    ...tensors.map(([, { data }]) => Buffer.from(data.buffer))]);
}

function weights(successors, vocab) {
  const next = random(48151);
  const embedding = new Float32Array(vocab * hidden);
  const head = new Float32Array(vocab * hidden);
  for (let i = 0; i < vocab; ++i) {
    const row = embedding.subarray(i * hidden, (i + 1) * hidden);
    for (let k = 0; k < hidden; ++k) row[k] = next();
    const norm = Math.hypot(...row);
    for (let k = 0; k < hidden; ++k) row[k] /= norm;
  }
  for (const [from, to] of successors)
    for (let k = 0; k < hidden; ++k) head[to * hidden + k] += 8 * embedding[from * hidden + k];
  const zero = (...shape) => ({ shape, data: new Float32Array(shape.reduce((a, b) => a * b)) });
  const one = () => ({ shape: [hidden], data: new Float32Array(hidden).fill(1) });
  const layer = 'model.layers.0.';
  return safetensors([
    ['model.embed_tokens.weight', { shape: [vocab, hidden], data: embedding }],
    ['lm_head.weight', { shape: [vocab, hidden], data: head }],
    ['model.norm.weight', one()],
    [`${layer}input_layernorm.weight`, one()],
    [`${layer}post_attention_layernorm.weight`, one()],
    [`${layer}self_attn.q_proj.weight`, zero(hidden, hidden)],
    [`${layer}self_attn.k_proj.weight`, zero(hidden, hidden)],
    [`${layer}self_attn.v_proj.weight`, zero(hidden, hidden)],
    [`${layer}self_attn.o_proj.weight`, zero(hidden, hidden)],
    [`${layer}mlp.gate_proj.weight`, zero(hidden, hidden)],
    [`${layer}mlp.up_proj.weight`, zero(hidden, hidden)],
    [`${layer}mlp.down_proj.weight`, zero(hidden, hidden)],
  ]);
}

/// Writes the model; gives its folder, to be removed by the caller.
export function makeParrot({ context = 512 } = {}) {
  const ids = new Map([[null, eos]]);
  const added = [];
  for (const text of lines.flat()) {
    if (ids.has(text)) continue;
    ids.set(text, first + added.length);
    added.push({ id: ids.get(text), content: text, single_word: false, lstrip: false,
      rstrip: false, normalized: false, special: control.has(text) });
  }
  const successors = new Map();
  for (const line of lines)
    for (let i = 0; i + 1 < line.length; ++i)
      successors.set(ids.get(line[i]), ids.get(line[i + 1]));
  const vocab = first + added.length;
  const into = folder();
  const read = (name) => JSON.parse(readFileSync(join(tiny, name)));
  const write = (name, json) => writeFileSync(join(into, name), JSON.stringify(json));
  const tokenizer = read('tokenizer.json');
  tokenizer.added_tokens.push(...added);
  write('tokenizer.json', tokenizer);
  write('tokenizer_config.json', { ...read('tokenizer_config.json'), chat_template: template });
  write('config.json', { ...read('config.json'), num_hidden_layers: 1, num_attention_heads: 4,
    num_key_value_heads: 4, head_dim: hidden / 4, hidden_size: hidden, intermediate_size: hidden,
    vocab_size: vocab, max_position_embeddings: context, torch_dtype: 'float32' });
  writeFileSync(join(into, 'model.safetensors'), weights(successors, vocab));
  return into;
}
