// @ts-check
import { readFileSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { buildSync } from 'esbuild'

/** Loaded by their paths, by the command and by `write-schemas.js`. */
const BY_PATH = ['config/strip-types', 'protocol/schemas']
/** Comes as 92 modules, 64 of them the languages of its messages: what is used of it goes into ours. */
const BUNDLED = 'zod'

/**
 * Hundreds of modules take a fifth of a server's start. So what belongs together is one file: each module that others may load by
 * its name, and chunks with what several of them share, so that nothing is there twice.
 *
 * @param {{ root: string, dist: string, sources: readonly string[], outputs: readonly string[] }} folders
 */
export function bundle({ root, dist, sources, outputs }) {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const modules = sources.map((file) => relative(join(root, 'src'), file).replaceAll('\\', '/').replace(/\.ts$/, ''))
  const isNamed = namedBy(manifest)
  const { metafile } = buildSync({
    absWorkingDir: root,
    entryPoints: modules.filter((name) => isNamed(name) || BY_PATH.includes(name)).map((name) => `src/${name}.ts`),
    outbase: 'src',
    outdir: relative(root, dist),
    bundle: true,
    splitting: true,
    // One folder below `dist`, as the command is: paths from there are the same.
    chunkNames: 'chunks/[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }).filter((name) => name !== BUNDLED),
    metafile: true,
    logLevel: 'warning',
  })
  const written = new Set(Object.keys(metafile.outputs).map((name) => join(root, name)))
  for (const file of outputs) if (file.endsWith('.js') && !written.has(file)) rmSync(file)
}

/**
 * Whether a module has a name in `exports`, or is the command.
 *
 * @param {{ exports: Record<string, unknown>, bin: Record<string, string> }} manifest
 * @returns {(module: string) => boolean}
 */
function namedBy({ exports, bin }) {
  const files = [...Object.values(bin), ...Object.values(exports).flatMap(defaults)].map(pattern)
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

/** @param {string} file @returns {RegExp} of the modules that it stands for */
function pattern(file) {
  const name = file.replace(/^\.\/dist\//, '').replace(/\.js$/, '')
  return new RegExp(`^${name.replace('*', '[^/]+')}$`)
}
