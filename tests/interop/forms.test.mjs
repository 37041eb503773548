// Answers of a form, from a model that would otherwise say noise.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { Cluster, gather } from './cluster.mjs';

let cluster, openai;
before(async () => {
  cluster = await Cluster.up();
  openai = cluster.client();
});
after(async () => assert.deepEqual(await cluster.down(), { code: 0, signal: null }));

const messages = [{ role: 'user', content: 'Say something.' }];
const chat = (more) => openai.chat.completions.create(
  { model: 'tiny', messages, temperature: 0, max_tokens: 200, ...more });
const schema = {
  type: 'object',
  properties: {
    city: { enum: ['Oslo', 'Bergen'] },
    warm: { type: 'boolean' },
    hours: { type: 'array', items: { enum: [1, 2, 3] }, minItems: 2, maxItems: 3 },
  },
  required: ['city', 'warm', 'hours'],
  additionalProperties: false,
};
const response_format = { type: 'json_schema', json_schema: { name: 'report', strict: true, schema } };

function checkReport(text) {
  const { city, warm, hours, ...more } = JSON.parse(text);
  assert.ok(['Oslo', 'Bergen'].includes(city), text);
  assert.equal(typeof warm, 'boolean');
  assert.ok(hours.length >= 2 && hours.length <= 3 && hours.every((h) => [1, 2, 3].includes(h)));
  assert.deepEqual(more, {});
}

test('json_schema gives what the schema says, at any temperature', async () => {
  for (const how of [{}, { temperature: 1.5, seed: 1 }, { temperature: 1.5, seed: 2, n: 3 }])
    for (const c of (await chat({ response_format, ...how })).choices) {
      assert.equal(c.finish_reason, 'stop');
      checkReport(c.message.content);
    }
});

test('streamed it is the same, and the client parses it', async () => {
  const [whole] = (await chat({ response_format })).choices;
  const all = await gather(await chat({ response_format, stream: true }));
  assert.deepEqual(all.text, [whole.message.content]);
  const parsed = await openai.chat.completions.parse(
    { model: 'tiny', messages, temperature: 0, max_tokens: 200, response_format });
  checkReport(parsed.choices[0].message.content);
});

test('json_object gives an object', async () => {
  const bias = { 92: 100 }; // of the closing brace: noise would go on to the limit
  const [c] = (await chat({ response_format: { type: 'json_object' }, logit_bias: bias })).choices;
  assert.equal(c.finish_reason, 'stop');
  assert.equal(Object.prototype.toString.call(JSON.parse(c.message.content)), '[object Object]');
});

test('what no grammar can say is refused, with the parameter', async () => {
  const wrong = [
    [{ type: 'json_schema' }, 'response_format.json_schema'],
    [{ type: 'json_schema', json_schema: { name: 'x', schema: { type: 'nothing' } } },
      'response_format.json_schema.schema'],
  ];
  for (const [format, param] of wrong) {
    const error = await chat({ response_format: format }).catch((e) => e);
    assert.ok(error instanceof OpenAI.BadRequestError, `${error}`);
    assert.equal(error.param, param);
  }
});

test('choices and expressions, as clients of vLLM ask for them', async () => {
  const texts = ['red', 'green'];
  const [c] = (await chat({ structured_outputs: { choice: texts } })).choices;
  assert.ok(texts.includes(c.message.content));
  const [d] = (await chat({ structured_outputs: { regex: '[ab]{3}-[0-9]{2}' } })).choices;
  assert.match(d.message.content, /^[ab]{3}-[0-9]{2}$/);
});
