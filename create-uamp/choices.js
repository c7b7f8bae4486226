// @ts-check
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { MODELS } from './project.js'

export const HELP = `Makes a project with one agent and one test of it.

npm create uamp@latest [folder] -- [options]

  --language ts|js        TypeScript or JavaScript (ts)
  --model ${Object.keys(MODELS).join('|')}
                          the model that answers; none: an agent without one, which needs no key (none)
  --uamp <version>        what package.json says of uamp, also in UAMP_VERSION (this version)
  --yes                   asks nothing

Without a terminal it asks nothing, either.
`

/** A mistake of the user's: its message is all there is to say. */
export class Refusal extends Error {}

/** @typedef {{ folder: string, language: 'ts' | 'js', model: keyof typeof MODELS, uamp: string | undefined }} Choices */

/** @type {Record<string, (text: string) => string | undefined>} what is wrong with an answer */
const CHECKS = {
  folder: (text) => (text.trim() === '' || text.includes('\0') ? 'Name a folder' : undefined),
  language: (text) => (['ts', 'js'].includes(text) ? undefined : `"${text}" is neither ts nor js`),
  model: (text) => (Object.hasOwn(MODELS, text) ? undefined : `"${text}" is not one of ${Object.keys(MODELS).join(', ')}`),
}

const QUESTIONS = /** @type {const} */ ([
  { name: 'folder', text: 'Folder', usual: 'my-agent' },
  { name: 'language', text: 'TypeScript or JavaScript (ts, js)', usual: 'ts' },
  { name: 'model', text: `Model (${Object.keys(MODELS).join(', ')})`, usual: 'none' },
])

/** @param {string[]} args @returns {{ folder?: string, language?: string, model?: string, uamp?: string, yes: boolean, help: boolean }} */
function flagsOf(args) {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        language: { type: 'string' },
        model: { type: 'string' },
        uamp: { type: 'string' },
        yes: { type: 'boolean', short: 'y', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (positionals.length > 1) throw new Refusal(`One folder, please: ${positionals.join(' and ')} are ${positionals.length}`)
    return { ...values, ...(positionals[0] !== undefined && { folder: positionals[0] }) }
  } catch (thrown) {
    throw thrown instanceof Refusal
      ? thrown
      : new Refusal(`${/** @type {Error} */ (thrown).message.split('. ')[0]}. --help has the options.`)
  }
}

/**
 * @param {string[]} args
 * @param {{ input: NodeJS.ReadableStream & { isTTY?: boolean }, output: NodeJS.WritableStream & { isTTY?: boolean } }} terminal
 * @returns {Promise<Choices | undefined>} undefined: only help was asked for
 */
export async function choose(args, { input, output }) {
  const { yes, help, uamp, ...given } = flagsOf(args)
  if (help) return undefined
  /** @type {Record<string, string>} */
  const chosen = {}
  for (const [name, value] of Object.entries(given)) {
    const problem = CHECKS[name]?.(value)
    if (problem !== undefined) throw new Refusal(problem)
    chosen[name] = value
  }
  const open = QUESTIONS.filter(({ name }) => chosen[name] === undefined)
  if (!yes && open.length > 0 && input.isTTY && output.isTTY) Object.assign(chosen, await ask(open, { input, output }))
  for (const { name, usual } of open) chosen[name] ??= usual
  return /** @type {Choices} */ (/** @type {unknown} */ ({ ...chosen, uamp }))
}

/**
 * @param {readonly (typeof QUESTIONS)[number][]} questions
 * @param {{ input: NodeJS.ReadableStream, output: NodeJS.WritableStream }} terminal
 */
async function ask(questions, { input, output }) {
  const lines = createInterface({ input, output })
  const left = new Promise((_, reject) => lines.once('close', () => reject(new Refusal('Nothing was made.'))))
  left.catch(() => undefined)
  /** @type {Record<string, string>} */
  const answers = {}
  try {
    for (const { name, text, usual } of questions) {
      while (answers[name] === undefined) {
        const answer = String(await Promise.race([lines.question(`${text} [${usual}]: `), left])).trim() || usual
        const problem = CHECKS[name]?.(answer)
        if (problem === undefined) answers[name] = answer
        else output.write(`${problem}\n`)
      }
    }
    return answers
  } finally {
    lines.close()
  }
}
