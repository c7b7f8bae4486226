import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { finished, project } from './run.ts'
import { verifies } from '../support/verifies.ts'

const ONE = 'agents:\n  - name: one\n    model: ollama/m\n'

const MISTAKES: readonly [string, Record<string, string>, RegExp][] = [
  ['JSON that is none', { 'uamp.config.json': '{ "agents":\n nonsense }' }, /uamp\.config\.json:2: is not JSON: value is expected here/],
  ['YAML that is none', { 'uamp.config.yaml': 'agents:\n  - "one\n' }, /uamp\.config\.yaml:\d: is not YAML: Missing closing "quote/],
  ['nothing', { 'uamp.config.yaml': '' }, /uamp\.config\.yaml.*: must be an object/],
  ['no agents', { 'uamp.config.yaml': 'port: 80\n' }, /uamp\.config\.yaml:1: agents must be an array, but is missing/],
  [
    'an empty list',
    { 'uamp.config.json': '{\n"agents": [] }' },
    /uamp\.config\.json:2: agents must name an agent, such as \["\.\/agent\.ts"\]/,
  ],
  ['a number for an agent', { 'uamp.config.yaml': 'agents:\n  - 3\n' }, /:2: agents\[0\] must be the path of an agent module/],
  ['a wrong port', { 'uamp.config.yaml': `${ONE}port: x\n` }, /:4: port must be a whole number from 0 to 65535, not a string/],
  ['a key that is misspelt', { 'uamp.config.yaml': `${ONE}prot: 1\n` }, /:4: prot is unknown here: did you mean "port"\?/],
  ['a limit that is none', { 'uamp.config.yaml': `${ONE}limits:\n  bodyBite: 1\n` }, /:5: limits\.bodyBite is unknown here/],
  [
    'a model without a provider',
    { 'uamp.config.yaml': 'agents:\n  - name: one\n    model: gpt-5\n' },
    /:3: agents\[0\]\.model must be provider\/model/,
  ],
  [
    'a protocol that is none',
    { 'uamp.config.yaml': `${ONE}    protocols: [events, grpc]\n` },
    /:4: agents\[0\]\.protocols\[1\] must be one of "events", "completions", "responses", "realtime", "a2a", "ag-ui", "acp", "omnia"/,
  ],
  [
    'a provider that is none',
    { 'uamp.config.yaml': 'agents:\n  - name: one\n    model: opneai/gpt-5\n' },
    /:3: agents\[0\]\.model names the provider "opneai", but there are openai, anthropic/,
  ],
  [
    'a key that is missing',
    { 'uamp.config.yaml': 'agents:\n  - name: one\n    model: openai/gpt-5\n' },
    /:3: agents\[0\]\.model needs a key: set OPENAI_API_KEY, or write providers\.openai\.apiKey/,
  ],
  [
    'a variable that is missing',
    { 'uamp.config.yaml': 'agents:\n  - name: one\n    model: openai/gpt-5\nproviders:\n  openai:\n    apiKey: ${MY_KEY}\n' },
    /:6: providers\.openai\.apiKey needs MY_KEY, which the environment lacks: set it/,
  ],
  [
    'a variable that is missing by name',
    { 'uamp.config.yaml': 'agents:\n  - name: one\n    model: openai/gpt-5\nproviders: { openai: { apiKeyEnv: MY_KEY } }\n' },
    /:4: providers\.openai\.apiKeyEnv needs MY_KEY/,
  ],
  [
    'a token that is missing',
    { 'uamp.config.yaml': `${ONE}tokens:\n  alice: $ALICE\n` },
    /:5: tokens\.alice needs ALICE, which the environment lacks/,
  ],
  [
    'a provider without an address',
    { 'uamp.config.yaml': 'agents:\n  - name: one\n    model: mine/m\nproviders:\n  mine:\n    type: openai-compatible\n' },
    /:5: providers\.mine needs a "baseUrl"/,
  ],
  [
    'a cycle of handoffs',
    {
      'uamp.config.yaml':
        'agents:\n  - name: a\n    model: ollama/m\n    handoffs: [b]\n  - name: b\n    model: ollama/m\n    handoffs: [a]\n',
    },
    /:4: agents\[0\]\.handoffs\[0\] makes a cycle \(a → b → a\): remove one of its handoffs/,
  ],
  [
    'a handoff to oneself',
    { 'uamp.config.yaml': `${ONE}    handoffs: [one]\n` },
    /:4: agents\[0\]\.handoffs\[0\] makes a cycle \(one → one\): remove one of its handoffs/,
  ],
  [
    'a handoff to nobody',
    { 'uamp.config.yaml': `${ONE}    handoffs:\n      - nobody\n` },
    /:5: agents\[0\]\.handoffs\[0\] is "nobody", but the agents are: one/,
  ],
  [
    'two agents of one name',
    { 'uamp.config.yaml': `${ONE}  - name: one\n    model: ollama/m\n` },
    /:4: agents\[1\]\.name is "one", like that of an agent before it/,
  ],
  [
    'an agent at the root that is none',
    { 'uamp.config.yaml': `${ONE}defaultAgent: two\n` },
    /:4: defaultAgent is "two", but the agents are: one/,
  ],
  [
    'addresses that are none, all of them',
    {
      'uamp.config.yaml': `${ONE}trustProxy: [me]\norigins: [me]\npublicUrl: me\nallowedHosts: ["http://me"]\noutbound: { allow: ["a b"] }\n`,
    },
    /:4: trustProxy\[0\] cannot be used: "me" is not a proxy.*:5: origins\[0\].*:6: publicUrl .*:7: allowedHosts\[0\].*:8: outbound\.allow\[0\]/s,
  ],
  [
    'a module that is not there',
    { 'uamp.config.json': '{ "agents": [\n "./gone.ts" ] }' },
    /:2: agents\[0\] is "\.\/gone\.ts", but there is no agent at .*gone\.ts/,
  ],
  [
    'tools that are not there',
    { 'uamp.config.yaml': `${ONE}    tools: [./gone.ts]\n` },
    /:4: agents\[0\]\.tools\[0\] is "\.\/gone\.ts", but there is no file/,
  ],
  [
    'tools that are none',
    { 'uamp.config.yaml': `${ONE}    tools: [./tools.js]\n`, 'tools.js': 'export const port = 1' },
    /:4: agents\[0\]\.tools\[0\] is .*tools\.js, which exports no tool: add one/,
  ],
  [
    'two tools of one name',
    {
      'uamp.config.yaml': `${ONE}    tools: [./tools.js]\n`,
      'tools.js': `export const a = { name: 'x', run: () => 1 }\nexport const b = { name: 'x', run: () => 2 }`,
    },
    /:2: agents\[0\] cannot be made: Two tools are called "x"/,
  ],
  [
    'a server of tools that does not start',
    { 'uamp.config.yaml': `${ONE}    mcp:\n      - command: node\n        args: [gone.js]\n` },
    /:5: agents\[0\]\.mcp\[0\] does not work: Error: Cannot find module '.*gone\.js'/,
  ],
  [
    'a server of tools without an address',
    { 'uamp.config.yaml': `${ONE}    mcp: [{ name: x }]\n` },
    /:4: agents\[0\]\.mcp\[0\] must have either a "command"/,
  ],
  [
    'a remote agent without a model',
    { 'uamp.config.yaml': 'agents:\n  - name: far\n    remote:\n      url: https://a.example\n      protocol: completions\n' },
    /:3: agents\[0\]\.remote must have a "model"/,
  ],
  [
    'a remote agent at no address',
    { 'uamp.config.yaml': 'agents:\n  - name: far\n    remote: a2a+ftp://a.example\n' },
    /:3: agents\[0\]\.remote\.url must begin with http:\/\/, https:\/\/, a2a\+http:\/\/ or a2a\+https:\/\//,
  ],
  [
    'an A2A agent of an A2A agent',
    { 'uamp.config.yaml': 'agents:\n  - name: far\n    remote:\n      url: a2a+https://a.example\n      agent: bob\n' },
    /:5: agents\[0\]\.remote\.agent is for a uamp server: an A2A agent has an address of its own/,
  ],
  [
    'a module that says nothing of it',
    { 'uamp.config.ts': 'export default { agents: [{ name: "one" }] }' },
    /uamp\.config\.ts: agents\[0\]\.model must be provider\/model/,
  ],
]

for (const [what, files, message] of MISTAKES)
  verifies('gateway.mistakes', `refuses ${what} with the place and the fix, and exits with 2`, async () => {
    const { code, stderr } = await finished(['serve'], { cwd: await project(files), env: { UAMP_DATA: 'memory' } })
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/^ {4}at /m)
    expect(code).toBe(2)
  })

verifies('gateway.all-mistakes', 'tells all mistakes of a config at once, one a line', async () => {
  const config = 'agents:\n  - name: a b\n    model: x\nport: -1\n'
  const { code, stderr } = await finished(['serve', '--config', 'c.yaml'], { cwd: await project({ 'c.yaml': config }) })
  expect(stderr.trim().split('\n')).toEqual([
    expect.stringMatching(/c\.yaml:2: agents\[0\]\.name must be made of letters/),
    expect.stringMatching(/c\.yaml:3: agents\[0\]\.model must be provider\/model/),
    expect.stringMatching(/c\.yaml:4: port /),
  ])
  expect(code).toBe(2)
})

verifies('gateway.mistakes', 'a file that is not text is refused in the same way', async () => {
  const cwd = await project()
  await writeFile(join(cwd, 'uamp.config.yaml'), new Uint8Array([0x61, 0xff, 0xfe]))
  const { code, stderr } = await finished(['serve'], { cwd })
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/uamp\.config\.yaml: cannot be read: it is not UTF-8 text; save it as such/),
  })
})

test('a file and --config at once are one too many', async () => {
  const { code, stderr } = await finished(['serve', 'a.ts', '--config', 'b.yaml'])
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/Name one file to serve/) })
})
