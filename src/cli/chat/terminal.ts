import { clearScreenDown, createInterface, cursorTo, moveCursor } from 'node:readline'
import { Writable } from 'node:stream'
import { harmless, type Paint } from '../print.ts'
import { onSignal } from '../signals.ts'
import { isYes, type Console } from './console.ts'

/** Shows what readline draws only when it is the user's turn: keys that are pressed during an answer must not land in the text. */
class Curtain extends Writable {
  open = false
  readonly #stage: NodeJS.WriteStream

  constructor(stage: NodeJS.WriteStream) {
    super({ decodeStrings: false })
    this.#stage = stage
    stage.on('resize', () => this.emit('resize'))
  }

  get columns(): number {
    return this.#stage.columns
  }

  override _write(chunk: string, _encoding: BufferEncoding, done: () => void): void {
    if (this.open) this.#stage.write(chunk)
    done()
  }
}

export interface TerminalOptions {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly paint: Paint
}

/** A person who types. */
export function terminal({ stdin, stdout, paint }: TerminalOptions): Console {
  const curtain = new Curtain(stdout)
  const prompt = paint('bold', '> ')
  const lines = createInterface({ input: stdin, output: curtain, terminal: true, prompt })
  const typed: string[] = []
  let busy = false
  let ended = false
  let wanted: ((line: string | undefined) => void) | undefined

  const draw = (): void => {
    if (busy || !wanted || curtain.open) return
    curtain.open = true
    lines.prompt(true)
  }
  const hide = (): void => {
    if (!curtain.open) return
    moveCursor(stdout, 0, -lines.getCursorPos().rows)
    cursorTo(stdout, 0)
    clearScreenDown(stdout)
    curtain.open = false
  }
  const give = (line: string | undefined): void => {
    const resolve = wanted
    wanted = undefined
    curtain.open = false
    resolve?.(line)
  }
  lines.on('line', (line) => {
    if (wanted && curtain.open) give(line)
    else typed.push(line)
  })
  lines.on('close', () => {
    ended = true
    if (curtain.open) stdout.write('\n')
    give(undefined)
  })

  return {
    interactive: true,
    read() {
      const ahead = typed.shift()
      if (ahead !== undefined) stdout.write(`${prompt}${ahead}\n`)
      if (ahead !== undefined || ended) return Promise.resolve(ahead)
      return new Promise((resolve) => {
        wanted = resolve
        draw()
      })
    },
    confirm(question, signal) {
      if (ended) return Promise.resolve(false)
      // Text that was typed before the question is not an answer to it.
      for (const name of ['u', 'k']) lines.write(null, { ctrl: true, name })
      curtain.open = true
      return new Promise((resolve) => {
        const decide = (yes: boolean): void => {
          curtain.open = false
          signal.removeEventListener('abort', no)
          lines.off('close', no)
          resolve(yes)
        }
        const no = (): void => {
          stdout.write('\n')
          decide(false)
        }
        signal.addEventListener('abort', no)
        lines.once('close', no)
        lines.question(paint('yellow', `${harmless(question)} [y/n] `), { signal }, (answer) => decide(isYes(answer)))
      })
    },
    busy() {
      busy = true
      hide()
    },
    rest() {
      busy = false
      draw()
    },
    onInterrupt(listener) {
      lines.on('SIGINT', listener)
      onSignal(['SIGINT'], listener)
    },
    close() {
      hide()
      lines.close()
    },
  }
}
