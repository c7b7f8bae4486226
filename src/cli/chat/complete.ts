import { readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { COMMAND_NAMES } from './slash.ts'

const MOST = 200

/** How a word may go on: a command at the beginning of a message, or a path after `@`. */
export function complete(word: string, isFirst: boolean): readonly string[] {
  if (isFirst && word.startsWith('/')) return COMMAND_NAMES.map((name) => `/${name} `).filter((name) => name.startsWith(word))
  if (!word.startsWith('@')) return []
  const [, folder = '', start = ''] = /^@(.*\/)?([^/]*)$/.exec(word) ?? []
  try {
    return readdirSync(folder.replace(/^~(?=\/)/, homedir()) || '.', { withFileTypes: true })
      .filter(({ name }) => name.startsWith(start) && !/\s/.test(name) && (start !== '' || !name.startsWith('.')))
      .slice(0, MOST)
      .map((entry) => `@${folder}${entry.name}${entry.isDirectory() ? '/' : ''}`)
  } catch {
    return []
  }
}
