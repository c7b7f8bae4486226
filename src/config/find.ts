import { existsSync } from 'node:fs'
import { join } from 'node:path'

const ENDINGS = ['ts', 'mts', 'js', 'mjs', 'yaml', 'yml', 'json']

/** The config of a folder. */
export function findConfig(folder: string): string | undefined {
  return ENDINGS.map((ending) => join(folder, `uamp.config.${ending}`)).find((file) => existsSync(file))
}
