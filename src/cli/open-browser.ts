import { spawn } from 'node:child_process'

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  // The empty text is the title of the window: `start` would take the address for it.
  win32: ['cmd', '/c', 'start', '""'],
}

export function openBrowser(url: string, onFailure: () => void): void {
  const [command, ...args] = OPENERS[process.platform] ?? ['xdg-open']
  const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true })
  child.once('error', onFailure)
  child.once('exit', (code) => code !== 0 && code !== null && onFailure())
  child.unref()
}
