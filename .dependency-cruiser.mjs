// @ts-check
import { BUNDLED } from './scripts/bundle.js'

/** Folder of src → the folders it may import besides itself. A test compares the keys with the folders that there are. */
export const MAY_IMPORT = {
  protocol: [],
  wire: ['protocol'],
  envelope: ['protocol', 'wire'],
  core: ['protocol'],
  upstream: ['protocol', 'wire', 'core'],
  auth: ['protocol', 'wire', 'core', 'envelope'],
  transports: ['protocol', 'wire', 'core', 'envelope'],
  providers: ['protocol', 'wire', 'core', 'upstream'],
  remotes: ['protocol', 'wire', 'envelope', 'core', 'upstream', 'client', 'providers', 'agents'],
  payments: ['protocol', 'wire', 'core', 'auth'],
  agents: ['protocol', 'core', 'skills', 'providers'],
  skills: ['protocol', 'core'],
  stores: ['protocol', 'core'],
  buses: ['protocol', 'core'],
  blobs: ['protocol', 'core'],
  client: ['protocol', 'wire'],
  server: ['protocol', 'wire', 'core', 'auth'],
  testing: ['protocol', 'wire', 'core'],
}

/** Where things are put together: these may import everything. */
export const COMPOSES = ['serve', 'config', 'cli']

const TEST = '[.]test[.]ts$'
const NEUTRAL = '^src/((protocol|wire|envelope|core|upstream|auth|transports|providers|agents|skills|client|server|testing)/|index[.]ts$)'
const NODE_ONLY = '^src/(client/node[.]ts|server/node/|skills/mcp/)'
/** Packages that need Node, though their import does not say `node:`. */
const NODE_PACKAGES =
  '(^|/)node_modules/(@hono/node-server|@modelcontextprotocol/client|@swc/wasm-typescript|commander|libsql|pino|prom-client|ws|yaml)/'

const layers = Object.entries(MAY_IMPORT).map(([folder, allowed]) => ({
  name: `layer-${folder}`,
  severity: 'error',
  comment: `src/${folder} may import only: ${allowed.join(', ') || 'nothing of ours'}`,
  from: { path: `^src/${folder}/`, pathNot: TEST },
  to: { path: '^src/', pathNot: `^src/(${[folder, ...allowed].join('|')})/` },
}))

export default {
  forbidden: [
    ...layers,
    {
      name: 'core-has-an-inside',
      severity: 'error',
      comment: 'who is not put together with the core uses its other folders, which say what it promises',
      from: { path: '^src/', pathNot: [TEST, '^src/(core|serve|config|cli)/', '^src/index[.]ts$'] },
      to: { path: '^src/core/(engine|log|durable)/' },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      comment: 'ports that name each other as types are no cycle: nothing of it is left at run time',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'siblings-are-strangers',
      severity: 'error',
      comment: 'one protocol, provider or remote must be readable, and removable, without the others; files beside their folders know them',
      from: { path: '^src/(transports|providers|remotes)/([^/]+)/', pathNot: TEST },
      to: { path: '^src/$1/', pathNot: '^src/$1/$2[/.]' },
    },
    {
      name: 'drivers-are-strangers',
      severity: 'error',
      comment: 'sqlite.ts may use sqlite-schema.ts, not memory.ts',
      from: { path: '^src/(stores|buses|blobs)/([^/.-]+)', pathNot: TEST },
      to: { path: '^src/$1/', pathNot: '^src/$1/$2[/.-]' },
    },
    {
      name: 'runtime-neutral',
      severity: 'error',
      comment: 'only src/server/node, src/stores/sqlite*, src/client/node.ts, src/serve, src/config and src/cli know Node',
      from: { path: NEUTRAL, pathNot: [NODE_ONLY, TEST] },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'runtime-neutral-packages',
      severity: 'error',
      from: { path: NEUTRAL, pathNot: [NODE_ONLY, TEST] },
      to: { path: [NODE_PACKAGES, NODE_ONLY], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'protocol-imports-zod-mini',
      severity: 'error',
      comment: 'the client bundles it: zod/mini is a fifth of zod',
      from: { path: '^src/protocol/', pathNot: TEST },
      to: { path: 'node_modules/', pathNot: 'node_modules/zod/(v4/)?mini/' },
    },
    {
      name: 'source-knows-no-tests',
      severity: 'error',
      from: { path: '^src/', pathNot: TEST },
      to: { path: ['^(test|spec|bench|examples|scripts|console)/', TEST] },
    },
    {
      name: 'console-is-a-client',
      severity: 'error',
      from: { path: '^console/' },
      to: { path: '^src/', pathNot: '^src/(client|protocol)/' },
    },
    {
      name: 'declared',
      severity: 'error',
      comment: 'what we ship imports only what package.json lists under dependencies, or what is bundled with it',
      from: { path: '^src/', pathNot: TEST },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'unknown', 'undetermined'] },
    },
    {
      name: 'declared',
      severity: 'error',
      comment: 'a development dependency is only there for users if it is bundled',
      from: { path: '^src/', pathNot: TEST },
      to: { dependencyTypes: ['npm-dev'], pathNot: `node_modules/(@types/)?(${BUNDLED.join('|')})/` },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    // Without these, subpaths such as `hono/router` do not resolve.
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['types', 'import', 'node', 'default'] },
  },
}
