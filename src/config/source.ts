import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { Document, LineCounter, Node } from 'yaml'
import { UampError } from '../protocol/errors.ts'
import { jsonMistake } from './json-mistake.ts'
import type { Modules } from './modules.ts'
import { shown } from './shown.ts'

export type Path = readonly (string | number)[]

export interface Problem {
  readonly path: Path
  /** Completes a sentence that begins with the field's name. */
  readonly message: string
  /** The line, where it is not that of the path. */
  readonly line?: number | undefined
}

/** A config file: its value, and the line of each field. */
export interface Source {
  readonly file: string
  readonly value: unknown
  /** Mistakes that the parser found and could read past, such as a key that is written twice. */
  readonly problems?: readonly Problem[]
  /** The line of a field, or of the nearest one around it; undefined in a module, which has no lines to name. */
  lineOf(path: Path): number | undefined
}

/** True for files that are read. Others are modules. */
export function isData(file: string): boolean {
  return ['.json', '.yaml', '.yml'].includes(extname(file))
}

export async function readSource(file: string, modules: Modules): Promise<Source> {
  if (isData(file)) modules.note(file)
  switch (extname(file)) {
    case '.json':
      return readJson(file)
    case '.yaml':
    case '.yml':
      return readYaml(file)
    default:
      return { file, value: (await modules.load(file))['default'], lineOf: () => undefined }
  }
}

/** An error with one line for each mistake. It ends the process with exit code 2. */
export function configError(source: Pick<Source, 'file' | 'lineOf'>, problems: readonly Problem[], cause?: unknown): UampError {
  const places = problems.map((problem) => ({ ...problem, line: problem.line ?? source.lineOf(problem.path) }))
  const lines = places
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    .map(({ path, message, line }) => {
      const place = `${shown(source.file)}${line === undefined ? '' : `:${line}`}: ${path.length === 0 ? '' : `${spell(path)} `}`
      // What follows in a message of several lines is indented, so that each mistake begins a line of its own.
      return `${place}${message.replaceAll('\n', '\n  ')}`
    })
  return new UampError('invalid_request', lines.join('\n'), { details: { config: source.file }, ...(cause !== undefined && { cause }) })
}

/** The mistakes in such an error, one text for each. */
export function mistakesOf({ message }: Error): string[] {
  return message.split(/\n(?! )/)
}

/** True if the config is wrong, and not the command. */
export function isConfigError(thrown: unknown): boolean {
  return thrown instanceof UampError && thrown.details?.['config'] !== undefined
}

/** `agents[0].model`. */
function spell(path: Path): string {
  return path.reduce<string>((text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? key : `${text}.${key}`), '')
}

async function readJson(file: string): Promise<Source> {
  const text = await read(file)
  const value = parseJson(file, text)
  // JSON is YAML as well, so one parser knows the lines of both.
  const { document, lines } = await parseYaml(text)
  return { file, value, ...mistakesIn(document, lines) }
}

function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    const mistake = jsonMistake(text)
    const line = mistake && text.slice(0, mistake.offset).split('\n').length
    const why = mistake ? `${mistake.wants} is expected here` : (cause as Error).message
    throw configError({ file, lineOf: () => line }, [{ path: [], message: `is not JSON: ${why}` }], cause)
  }
}

async function readYaml(file: string): Promise<Source> {
  const { document, lines } = await parseYaml(await read(file))
  // What follows a first mistake of grammar is rarely a mistake of its own.
  const error = document.errors.find(({ code }) => code !== 'DUPLICATE_KEY')
  if (error) {
    const { line } = lines.linePos(error.pos[0])
    throw configError({ file, lineOf: () => line }, [{ path: [], message: `is not YAML: ${error.message}` }], error)
  }
  try {
    return { file, value: document.toJS(), ...mistakesIn(document, lines) }
  } catch (cause) {
    throw configError({ file, lineOf: () => undefined }, [{ path: [], message: `is not YAML: ${(cause as Error).message}` }], cause)
  }
}

/** The lines of a document, and the keys that it has twice. */
function mistakesIn(document: Document.Parsed, lines: LineCounter): Pick<Source, 'problems' | 'lineOf'> {
  const twice = document.errors.filter(({ code }) => code === 'DUPLICATE_KEY').map(({ pos }) => pos[0])
  const problems = twice.map((offset) => ({
    path: keyAt(document.contents, offset),
    message: 'is written twice: remove one of them',
    line: lines.linePos(offset).line,
  }))
  return { problems, lineOf: (path) => lineOf(document, lines, path) }
}

async function read(file: string): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file))
  } catch (cause) {
    const why = WHY[(cause as NodeJS.ErrnoException).code ?? ''] ?? (cause as Error).message
    throw configError({ file, lineOf: () => undefined }, [{ path: [], message: `cannot be read: ${why}` }], cause)
  }
}

const WHY: Readonly<Record<string, string>> = {
  EACCES: 'its permissions forbid it; `chmod u+r` allows it',
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder; name the file in it',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8 text; save it as such',
}

async function parseYaml(text: string): Promise<{ document: Document.Parsed; lines: LineCounter }> {
  const yaml = await import('yaml')
  const lines = new yaml.LineCounter()
  return { document: yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false }), lines }
}

function lineOf(document: Document, lines: LineCounter, path: Path): number | undefined {
  for (let length = path.length; length >= 0; length--) {
    const range = rangeOf(document, path.slice(0, length))
    if (range) return lines.linePos(range[0]).line
  }
  return undefined
}

/** The range of the key, if there is one, because its value may begin on the next line. */
function rangeOf(document: Document, path: Path): Node['range'] {
  const parent: unknown = path.length < 2 ? document.contents : document.getIn(path.slice(0, -1), true)
  const name = path.at(-1)
  if (name === undefined) return document.contents?.range
  const pairs = isCollection(parent) ? parent.items : []
  const entry = typeof name === 'number' ? pairs[name] : pairs.find((pair) => isPair(pair) && pair.key.value === name)
  return isPair(entry) ? entry.key.range : (entry as Node | undefined)?.range
}

/** The path of the key that begins at an offset. */
function keyAt(node: unknown, offset: number): Path {
  for (const [index, item] of isCollection(node) ? node.items.entries() : []) {
    if (!isPair(item)) {
      const found = keyAt(item, offset)
      if (found.length > 0) return [index, ...found]
      continue
    }
    const name = String(item.key.value)
    if (item.key.range?.[0] === offset) return [name]
    const found = keyAt(item.value, offset)
    if (found.length > 0) return [name, ...found]
  }
  return []
}

interface Pair {
  readonly value?: unknown
  readonly key: { readonly value: unknown; readonly range: Node['range'] }
}

function isCollection(value: unknown): value is { readonly items: readonly unknown[] } {
  return typeof value === 'object' && value !== null && Array.isArray((value as { items?: unknown }).items)
}

function isPair(value: unknown): value is Pair {
  return typeof value === 'object' && value !== null && typeof (value as { key?: unknown }).key === 'object'
}
