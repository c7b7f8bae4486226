// @ts-check
import { relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { root } from './build.js'

const LIMIT = 15_000

/**
 * Bundles the client for no runtime in particular: an import of Node, however deep, does not resolve here. Counts what a page loads at
 * first, not what the client imports when somebody needs it.
 *
 * @returns {Promise<{ bytes: number, problem: string }>} its size, gzipped
 */
export async function bundleClient() {
  const { outputFiles, metafile } = await build({
    entryPoints: ['src/client/index.ts'],
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    outdir: 'bundle',
    metafile: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    write: false,
    logLevel: 'silent',
  })
  /** @param {string} path @returns {string[]} */
  const loadedBy = (path) => {
    const imports = metafile.outputs[path]?.imports ?? []
    return [path, ...imports.filter(({ kind }) => kind === 'import-statement').flatMap((each) => loadedBy(each.path))]
  }
  const loaded = new Set(loadedBy('bundle/index.js'))
  const texts = outputFiles.filter(({ path }) => loaded.has(relative(root, path).replaceAll('\\', '/'))).map(({ contents }) => contents)
  const bytes = gzipSync(Buffer.concat(texts), { level: 9 }).length
  return { bytes, problem: bytes > LIMIT ? `${bytes} bytes gzipped; the limit is ${LIMIT}` : '' }
}
