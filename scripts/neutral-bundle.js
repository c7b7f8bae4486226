// @ts-check
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { root } from './build.js'

const LIMIT = 15_000

/**
 * Bundles the client for no runtime in particular: an import of Node, however deep, does not resolve here.
 *
 * @returns {Promise<{ bytes: number, problem: string }>} its size, gzipped
 */
export async function bundleClient() {
  const { outputFiles } = await build({
    entryPoints: ['src/client/index.ts'],
    absWorkingDir: root,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    write: false,
    logLevel: 'silent',
  })
  const bytes = gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).length
  return { bytes, problem: bytes > LIMIT ? `${bytes} bytes gzipped; the limit is ${LIMIT}` : '' }
}
