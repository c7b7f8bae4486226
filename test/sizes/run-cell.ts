import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serve } from '../../src/serve/index.ts'
import { isLarge, type Cell } from './cells.ts'
import { type Limit, type Stage } from './driver.ts'
import { Told } from '../support/raw.ts'
import { driverOf } from './drivers/index.ts'
import { Pace, pacedProxy, STALL_MS } from './pace.ts'
import { expected, promptFor, sayer, type Said } from './said.ts'

/** After this nothing will come any more. */
const HANG_MS = { small: 60_000, large: 180_000 }

export interface Outcome {
  readonly kind: 'same' | 'limit' | 'lost' | 'hang'
  /** The error, or what is missing. */
  readonly detail: string
}

/** Runs one cell on a server of its own, and judges what came. */
export async function runCell(cell: Cell): Promise<Outcome> {
  const driver = driverOf(cell.transport)
  const tasks: (() => void | Promise<void>)[] = []
  const pace = new Pace(cell)
  const stage: Stage = {
    cell,
    pace,
    prompt: promptFor(cell),
    url: () => server(cell, pace, tasks),
    after: (task) => void tasks.unshift(task),
  }
  try {
    const ms = isLarge(cell) ? HANG_MS.large : HANG_MS.small
    let timer: ReturnType<typeof setTimeout> | undefined
    const hang = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)))
    const asked = driver.ask(stage)
    asked.catch(() => undefined)
    const said = await Promise.race([asked, hang]).finally(() => clearTimeout(timer))
    return said ? compared(expectedOf(cell), said) : { kind: 'hang', detail: `nothing more in ${ms} ms` }
  } catch (thrown) {
    if (!(thrown instanceof Told)) return { kind: 'lost', detail: String(thrown) }
    const limit = limitsOf(cell).find(({ code }) => code === thrown.code)
    return limit ? { kind: 'limit', detail: limit.why } : { kind: 'lost', detail: `${thrown.code}: ${thrown.message}` }
  } finally {
    for (const task of tasks) await task()
  }
}

/** `too_large`, in the words of each protocol. */
const TOO_LARGE = ['too_large', 'request_too_large', 'answer_too_large']

/** In what this cell may end instead of in the whole answer. */
function limitsOf(cell: Cell): Limit[] {
  const { size, shape, reader, transport } = cell
  const own = driverOf(transport).limit?.(cell)
  const stalled = ['1013', 'cut', 'timeout'].map((code) => ({ code, why: `cut after ${STALL_MS} ms (${code})` }))
  // 60 MiB are 80 Mi characters of base64.
  const isTooLarge = size === '60 MiB' && (shape === 'media, then text' || cell.sound)
  const tooLarge = isTooLarge ? TOO_LARGE.map((code) => ({ code, why: '`outputBytes`' })) : []
  return [...(reader === 'stops' ? stalled : []), ...tooLarge, ...(own ? [own] : [])]
}

/** `say` gives the words alone. */
function expectedOf(cell: Cell): Said {
  const said = expected(cell)
  return cell.transport.startsWith('our client') && !cell.streamed ? { text: said.text } : said
}

async function server(cell: Cell, pace: Pace, tasks: (() => void | Promise<void>)[]): Promise<string> {
  const data = isOnDisk(cell) ? await mkdtemp(join(tmpdir(), 'uamp-sizes-')) : 'memory'
  if (data !== 'memory') tasks.push(() => rm(data, { recursive: true, force: true }))
  const running = await serve(sayer, {
    port: 0,
    data,
    log: () => undefined,
    // A slow reader is not one that has stopped, but the buffers of the kernel can make it look so for a while.
    ...(cell.reader === 'stops' && { limits: { stallMs: STALL_MS } }),
  })
  tasks.unshift(() => running.close({ graceMs: 0 }))
  if (cell.reader === 'fast') return running.url
  const proxy = await pacedProxy(running.port, pace)
  tasks.unshift(proxy.close)
  return proxy.url
}

/** Large answers are written to a disk only where there is time for it. */
function isOnDisk(cell: Cell): boolean {
  return !isLarge(cell) || process.env['UAMP_SIZES'] === 'full'
}

function compared(wanted: Said, heard: Said): Outcome {
  const wrong = [
    difference('text', wanted.text, heard.text),
    difference('media', wanted.media ?? '', heard.media ?? ''),
    soundDifference(wanted.sound, heard.sound),
  ].filter((each) => each !== undefined)
  return wrong.length === 0 ? { kind: 'same', detail: '' } : { kind: 'lost', detail: wrong.join('; ') }
}

function difference(what: string, wanted: string, heard: string): string | undefined {
  if (wanted === heard) return undefined
  let at = 0
  while (at < wanted.length && wanted[at] === heard[at]) at++
  return `${what}: ${heard.length} of ${wanted.length} characters, the first difference at ${at}`
}

const SILENCE: Buffer = Buffer.alloc(0)

function soundDifference(wanted = SILENCE, heard = SILENCE): string | undefined {
  return wanted.equals(heard) ? undefined : `sound: ${heard.length} of ${wanted.length} bytes`
}
