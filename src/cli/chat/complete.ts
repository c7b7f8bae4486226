import { readdirSync } from 'node:fs'
import { fromHome } from './files.ts'
import { COMMAND_NAMES } from './slash.ts'

const MOST = 200

/** The commands that are followed by a path. */
const TAKES_PATH = /^\/(?:file|image|save)\s+$/

/** How a word may go on: a command at the beginning of a message, or a path after `@` or a command that takes one. */
export function complete(word: string, before: string): readonly string[] {
  if (before === '' && word.startsWith('/')) return COMMAND_NAMES.map((name) => `/${name} `).filter((name) => name.startsWith(word))
  if (word.startsWith('@')) return pathsFrom(word.slice(1)).map((path) => `@${path}`)
  return TAKES_PATH.test(before) ? pathsFrom(word) : []
}

function pathsFrom(word: string): readonly string[] {
  const [, folder = '', start = ''] = /^(.*\/)?([^/]*)$/.exec(word) ?? []
  try {
    return readdirSync(fromHome(folder) || '.', { withFileTypes: true })
      .filter(({ name }) => name.startsWith(start) && !/\s/.test(name) && (start !== '' || !name.startsWith('.')))
      .slice(0, MOST)
      .map((entry) => `${folder}${entry.name}${entry.isDirectory() ? '/' : ''}`)
  } catch {
    return []
  }
}
