import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { verifies } from '../support/verifies.ts'
import { finished, project } from './run.ts'

/** What `uamp serve` says about a config, one message a line. */
async function mistakes(config: string, files: Readonly<Record<string, string>> = {}, name = 'uamp.config.yaml'): Promise<string[]> {
  const cwd = await project({ ...files, [name]: config })
  const before = await readdir(cwd)
  const { code, stderr, stdout } = await finished(['serve', '--port', '0'], { cwd })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).not.toMatch(/^ {4}at /m)
  expect(await readdir(cwd)).toEqual(before)
  return stderr
    .trim()
    .replace(/^error: /, '')
    .split('\n')
}

const ONE = 'agents:\n  - name: one\n    model: ollama/m\n'

verifies('gateway.all-mistakes', 'ten mistakes in one config give ten messages with line, reason and remedy', async () => {
  const config = [
    'agents:',
    '  - name: helper',
    '    model: opneai/gpt-5',
    '    tools: [./gone.ts]',
    '    handoffs: [biling]',
    '  - name: billing',
    '    modle: ollama/llama3.2',
    '  - name: asker',
    '    model: anthropic/claude',
    '  - { name: tooled, model: ollama/m, tools: [./empty.js] }',
    'providers:',
    '  unused: { baseUrl: "localhost:8000" }',
    'tokens: { alice: "${ALICE_TOKEN}" }',
    'prot: 8787',
    'limits: { requestsPerSecond: 0 }',
    'defaultAgent: billing',
  ]
  expect(await mistakes(config.join('\n'), { 'empty.js': 'export const port = 1' })).toEqual([
    expect.stringMatching(/^uamp\.config\.yaml:3: agents\[0\]\.model names the provider "opneai".*did you mean "openai"\?/),
    expect.stringMatching(
      /^uamp\.config\.yaml:4: agents\[0\]\.tools\[0\] is ".\/gone\.ts", but there is no file .*relative to the config$/,
    ),
    expect.stringMatching(/^uamp\.config\.yaml:5: agents\[0\]\.handoffs\[0\] is "biling", but .*did you mean "billing"\?/),
    expect.stringMatching(/^uamp\.config\.yaml:7: agents\[1\]\.modle is unknown here: did you mean "model"\?$/),
    expect.stringMatching(/^uamp\.config\.yaml:9: agents\[2\]\.model needs a key: set ANTHROPIC_API_KEY, or write/),
    expect.stringMatching(/^uamp\.config\.yaml:10: agents\[3\]\.tools\[0\] is empty\.js, which exports no tool: add one, as in/),
    expect.stringMatching(/^uamp\.config\.yaml:12: providers\.unused\.baseUrl must begin with http:\/\/ or https:\/\//),
    expect.stringMatching(/^uamp\.config\.yaml:13: tokens\.alice needs ALICE_TOKEN, which the environment lacks: set it, as in/),
    expect.stringMatching(/^uamp\.config\.yaml:14: prot is unknown here: did you mean "port"\?$/),
    expect.stringMatching(/^uamp\.config\.yaml:15: limits\.requestsPerSecond must be a number above 0, but is 0$/),
  ])
})

test('a typo in one agent gave a second mistake, that there is no such agent', async () => {
  const config =
    'agents:\n  - { name: a, model: ollama/m, handoffs: [b] }\n  - { name: b, modell: ollama/m, model: ollama/m }\ndefaultAgent: b\n'
  expect(await mistakes(config)).toEqual(['uamp.config.yaml:3: agents[1].modell is unknown here: did you mean "model"?'])
})

test('an agent with one mistake was not looked at for others', async () => {
  const config = 'agents:\n  - name: a\n    model: ollama/m\n    zebra: 1\n    maxSteps: 0\n    tools: [./gone.ts]\n    handoffs: [b]\n'
  expect(await mistakes(config)).toEqual([
    expect.stringMatching(/:4: agents\[0\]\.zebra is unknown here/),
    expect.stringMatching(/:5: agents\[0\]\.maxSteps must be/),
    expect.stringMatching(/:6: agents\[0\]\.tools\[0\] is "\.\/gone\.ts", but there is no file/),
    expect.stringMatching(/:7: agents\[0\]\.handoffs\[0\] is "b"/),
  ])
})

test('an agent whose module does not load is not also an agent that does not exist', async () => {
  const config = 'agents:\n  - { name: a, model: ollama/m, handoffs: [b] }\n  - ./b.js\ndefaultAgent: b\n'
  expect(await mistakes(config, { 'b.js': 'throw new Error("no luck")' })).toEqual([
    expect.stringMatching(/^uamp\.config\.yaml:3: agents\[1\] cannot be used: .*b\.js failed while it loaded: no luck \(.*b\.js:1:7\)/),
  ])
})

test.each<[what: string, lines: string, message: RegExp]>([
  ['a part of a port', 'port: 80.5', /:4: port must be a whole number from 0 to 65535, but is 80\.5$/],
  ['a port beyond the last', 'port: 70000', /:4: port must be a whole number from 0 to 65535, but is 70000$/],
  ['a port in words', 'port: http', /:4: port must be a whole number from 0 to 65535, not a string$/],
  [
    'a time beyond any timer',
    'providers: { x: { timeouts: { idleMs: 1e20 } } }',
    /:4: providers\.x\.timeouts\.idleMs must be a whole number of milliseconds from 1 to 2147483647, but is 100000000000000000000$/,
  ],
  ['half a retry', 'providers: { x: { retries: 1.5 } }', /:4: providers\.x\.retries must be a whole number from 0 to 10, but is 1\.5$/],
  ['a limit of nothing', 'limits: { bodyBytes: 0 }', /:4: limits\.bodyBytes must be a whole number of at least 1, but is 0$/],
  ['a negative price', 'prices: { "a/b": { input: -1, output: 1 } }', /:4: prices\.a\/b\.input must be US dollars .*, but is -1$/],
  ['a name that is far off', 'limits: { bodyByte: 5 }', /:4: limits\.bodyByte is unknown here: did you mean "bodyBytes"\?$/],
  ['two letters wrong', 'defalutAgnet: one', /:4: defalutAgnet is unknown here: did you mean "defaultAgent"\?$/],
  ['nothing like it', 'zebra: 1', /:4: zebra is unknown here: there are agents, providers/],
  ['a key twice', 'port: 1\nport: 2', /:5: port is written twice: remove one of them$/],
  [
    'a short secret',
    'tokens: { alice: hushhush }',
    /:4: tokens\.alice has 8 characters, and needs 16: `openssl rand -hex 16` prints a good one$/,
  ],
  [
    'a short secret of a client',
    'access: { clients: { shop: { secret: hushhush } } }',
    /:4: access\.clients\.shop has a secret that has 8 characters, and needs 16: /,
  ],
  [
    'a list of clients',
    'access: { clients: [{ name: shop }] }',
    /:4: access\.clients must be an object with a field for each client, by its name$/,
  ],
  ['a list of tokens', 'tokens: [alice]', /:4: tokens must be an object, not an array$/],
  [
    'a misspelt scope of a client',
    'access: { clients: { shop: { secret: a-secret-of-sixteen, scopes: [my:own, host:one, tools:*, Read] } } }',
    /:4: access\.clients\.shop\.scopes\[3\] is "Read", which allows nothing: did you mean "read"\?$/,
  ],
  [
    'a misspelt scope of an issuer',
    'access: { issuers: [{ issuer: "https://login.example", scopes: { user: [cal] } }] }',
    /:4: access\.issuers\[0\]\.scopes\.user\[0\] is "cal", which allows nothing: did you mean "call"\?$/,
  ],
  [
    'an issuer that is many',
    'access: { issuers: [{ issuer: "https://login.microsoftonline.com/common/v2.0" }] }',
    /:4: access\.issuers\[0\]\.issuer stands for the issuers of many tenants: name yours by its id$/,
  ],
  [
    'a rule that denies nobody',
    'access: { agents: { deny: ["https://Evil.example"] } }',
    /:4: access\.agents\.deny\[0\] must be written as "https:\/\/evil\.example", as tokens have it$/,
  ],
  [
    'an address with a password',
    'providers: { x: { baseUrl: "http://a:b@c" } }',
    /:4: providers\.x\.baseUrl must not contain a name or a password: use "apiKey" or "headers"$/,
  ],
  ['an address with a fragment', 'providers: { x: { baseUrl: "http://a/v1#b" } }', /:4: providers\.x\.baseUrl must not contain "#"/],
  ['a header that is none', 'providers: { x: { headers: { "a b": c } } }', /:4: providers\.x\.headers\.a b cannot be a header/],
])('%s is refused for its own reason', async (_, lines, message) => {
  expect(await mistakes(`${ONE}${lines}\n`)).toEqual([expect.stringMatching(message)])
})

test('a module without an agent is told with its place', async () => {
  expect(await mistakes('agents:\n  - ./empty.js\n', { 'empty.js': 'export const port = 1' })).toEqual([
    expect.stringMatching(/^uamp\.config\.yaml:2: agents\[0\] cannot be used: .*empty\.js exports no agent\. End it with one, as in/),
  ])
})

test('mistakes that only show when programs start are told together, too', async () => {
  const config =
    'agents:\n  - { name: a, model: ollama/m, mcp: [{ command: node, args: [gone.js] }] }\n  - { name: b, model: ollama/m, mcp: [{ command: no-such-program }] }\n'
  expect(await mistakes(config)).toEqual([
    expect.stringMatching(/:2: agents\[0\]\.mcp\[0\] does not work: Error: Cannot find module/),
    expect.stringMatching(/:3: agents\[1\]\.mcp\[0\] does not work: /),
  ])
})

test('a key that is written twice in JSON is told', async () => {
  const config = '{ "agents": [{ "name": "one", "model": "ollama/m" }],\n"port": 1,\n"port": 2 }'
  expect(await mistakes(config, {}, 'uamp.config.json')).toEqual(['uamp.config.json:3: port is written twice: remove one of them'])
})

test('a client that has the name of a token is told with its line, before the server starts', async () => {
  const config = `${ONE}tokens: { shop: a-secret-of-sixteen }\naccess:\n  clients:\n    shop: { secret: another-of-sixteen }\n`
  expect(await mistakes(config)).toEqual([
    expect.stringMatching(/^uamp\.config\.yaml:7: access\.clients\.shop is also the name of a token: choose another$/),
  ])
})
