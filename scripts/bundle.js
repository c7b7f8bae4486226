// @ts-check
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { rolldown } from 'rolldown'

/** Loaded by their paths, by the command and by `write-schemas.js`. */
const BY_PATH = ['config/follow-imports', 'config/strip-types', 'envelope/schemas', 'protocol/schemas']
/**
 * Packages whose code goes into ours: a server loads all of them, as more than a hundred files. Those that our types do not name are development
 * dependencies, because nobody has to install them.
 */
export const BUNDLED = ['@hono/node-server', '@noble/hashes', 'commander', 'fast-json-patch', 'get-east-asian-width', 'hono', 'ws', 'zod']
/**
 * One chunk for each of these, with all that its modules import and no chunk before it has: first what a browser loads, last what only
 * a server does. So whoever loads little finds it in a small file, and a server loads few files.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const CHUNKS = {
  client: ['client/index', 'protocol/errors'],
  'client-node': ['client/node'],
  version: ['serve/package-version'],
  // The second is what a client loads when somebody wants a signature verified. The server hashes answers by it.
  fields: ['wire/fields', 'client/verify'],
  command: ['cli/program'],
  core: ['index'],
  wire: ['wire/*', 'wire/*/*'],
  // What the next one has and needs no Node for, so that runtimes without it load no Node.
  neutral: [
    'core/basics/bucket',
    'core/durable/check-key',
    'stores/memory',
    'auth/static-tokens',
    'transports/acp/index',
    'transports/omnia/options',
    'server/limits',
    'server/metrics',
    'server/public-url',
    'server/web-pages',
  ],
  // What `uamp chat agent.ts` loads as well, which needs no Node either.
  local: ['server/app', 'transports/events/index', 'transports/responses/index'],
  // What `uamp acp` loads as well, which checks the whole config.
  gateway: ['serve/gateway', 'serve/acp-stdio', 'server/node/log'],
  transports: ['transports/*/index', 'server/index', 'serve/web'],
  server: ['serve/index'],
}

/** @typedef {import('rolldown').Plugin} Plugin */

/**
 * To find and link hundreds of modules takes a good part of a server's start. So what belongs together is one file: each module that others may load by
 * its name, and chunks with what several of them share, so that nothing is there twice.
 *
 * @param {{ root: string, dist: string, sources: readonly string[] }} folders
 * @returns {Promise<ReadonlySet<string>>} the files that it wrote
 */
export async function bundle({ root, dist, sources }) {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const modules = sources.map((file) => relative(join(root, 'src'), file).replaceAll('\\', '/').replace(/\.ts$/, ''))
  const isNamed = namedBy(manifest)
  const entries = modules.filter((name) => isNamed(name) || BY_PATH.includes(name))
  const external = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }).filter((name) => !BUNDLED.includes(name))
  /** @type {Map<string, string>} a module's file → the name of its chunk */
  const chunkOf = new Map()
  const starts = Object.entries(CHUNKS).map(([chunk, names]) => ({
    chunk,
    files: names.flatMap((name) => filesNamed(name, modules)).map((name) => join(root, 'src', `${name}.ts`)),
  }))
  const build = await rolldown({
    cwd: root,
    input: Object.fromEntries(entries.map((name) => [name, `src/${name}.ts`])),
    platform: 'node',
    external: external.map((name) => new RegExp(`^${name}(/|$)`)),
    logLevel: 'warn',
    onLog: (level, log, handle) => log.code === 'INEFFECTIVE_DYNAMIC_IMPORT' || handle(level, log),
    transform: { define: { BUILT_VERSION: JSON.stringify(manifest.version) } },
    plugins: [assign(starts, chunkOf), ascii],
  })
  const { output } = await build.write({
    dir: dist,
    format: 'esm',
    entryFileNames: '[name].js',
    // One folder below `dist`, as the command is: paths from there are the same.
    chunkFileNames: 'chunks/[name]-[hash].js',
    comments: { legal: true, annotation: true, jsdoc: false },
    codeSplitting: {
      groups: Object.keys(CHUNKS).map((name, i) => ({ name, priority: 100 - i, test: (file) => chunkOf.get(file) === name })),
    },
  })
  await build.close()
  // As npm makes it where it installs the package; a link to it works without npm.
  for (const file of Object.values(manifest.bin)) chmodSync(join(root, /** @type {string} */ (file)), 0o755)
  const licenses = join(dist, 'licenses.txt')
  writeFileSync(licenses, licensesOf(output.flatMap((file) => ('moduleIds' in file ? file.moduleIds : []))))
  return new Set([licenses, ...output.map(({ fileName }) => join(dist, fileName))])
}

/**
 * Finds the chunk of each module, when all imports are known.
 *
 * @param {readonly { chunk: string, files: readonly string[] }[]} starts
 * @param {Map<string, string>} chunkOf
 * @returns {Plugin}
 */
function assign(starts, chunkOf) {
  return {
    name: 'chunks',
    buildEnd() {
      for (const { chunk, files } of starts) {
        const open = [...files]
        for (let file = open.pop(); file !== undefined; file = open.pop()) {
          const module = chunkOf.has(file) ? null : this.getModuleInfo(file)
          if (!module) continue
          chunkOf.set(file, chunk)
          open.push(...module.importedIds)
        }
      }
    },
  }
}

/**
 * V8 keeps a text with a single character beyond Latin-1 at twice the size, and takes longer to compile it. In a tagged template an
 * escape would be another text: we have none with such a character.
 *
 * @type {Plugin}
 */
const ascii = {
  name: 'ascii',
  renderChunk: (code) =>
    // oxlint-disable-next-line no-control-regex
    code.replace(/[^\x00-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`),
}

/** @param {readonly string[]} files @returns {string} what the licenses of the packages that they belong to ask to pass on */
function licensesOf(files) {
  const folders = new Set(files.flatMap((file) => /^.*[\\/]node_modules[\\/](@[^\\/]+[\\/])?[^\\/]+/.exec(file)?.[0] ?? []))
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
    if (file === undefined) throw new Error(`${name} has no license to pass on`)
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
  })
  return `The code of these packages is part of the files in this folder.\n\n${texts.join(`\n${'-'.repeat(40)}\n\n`)}`
}

/**
 * Whether a module has a name in `exports`, or is the command.
 *
 * @param {{ exports: Record<string, unknown>, bin: Record<string, string> }} manifest
 * @returns {(module: string) => boolean}
 */
function namedBy({ exports, bin }) {
  const commands = Object.values(bin).map((file) => `./${file.replace(/^\.\//, '')}`)
  const files = [...commands, ...Object.values(exports).flatMap(defaults)].map(pattern)
  const hidden = Object.entries(exports).flatMap(([name, target]) =>
    target === null ? [pattern(`${name.replace('./', './dist/')}.js`)] : [],
  )
  return (module) => files.some((file) => file.test(module)) && !hidden.some((file) => file.test(module))
}

/** @param {unknown} target @returns {string[]} the files of one entry of `exports` */
function defaults(target) {
  if (typeof target === 'string') return target.endsWith('.js') ? [target] : []
  return target === null
    ? []
    : Object.entries(/** @type {object} */ (target)).flatMap(([name, file]) => (name === 'types' ? [] : defaults(file)))
}

/** @param {string} name @param {readonly string[]} modules @returns {readonly string[]} those that it stands for */
function filesNamed(name, modules) {
  const found = modules.filter((module) => pattern(name).test(module))
  if (found.length === 0) throw new Error(`src/${name}.ts, which begins a chunk, is not there`)
  return found
}

/** @param {string} file @returns {RegExp} of the modules that it stands for */
function pattern(file) {
  const name = file.replace(/^\.\/dist\//, '').replace(/\.js$/, '')
  return new RegExp(`^${name.replaceAll('*', '[^/]+')}$`)
}
