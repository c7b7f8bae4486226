import type * as z from 'zod/mini'

/** For a parse of what came from outside: it may have a million mistakes, and zod would collect them all. One is told. */
export const FIRST_MISTAKE = { async: false, abortEarly: true } as const

/** What is wrong with one field, as the end of a sentence that begins with its name. */
export function explain(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${NOUNS[issue.expected] ?? issue.expected}${instead(issue.input)}`
    case 'invalid_value':
      return `must be ${choice(issue.values)}${issue.input === undefined ? MISSING : ''}`
    case 'invalid_union':
      return issue.discriminator === undefined
        ? 'has a form that is not known'
        : `must be ${choice(Array.isArray(issue.options) ? issue.options : [])}`
    case 'too_big':
      return `must ${issue.origin === 'array' ? 'have' : 'be'} at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`
    case 'too_small':
      return `must be at least ${issue.minimum}`
    default:
      return 'is not valid'
  }
}

const NOUNS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
}

const MISSING = ', but is missing'

const UNITS: Readonly<Record<string, string>> = { string: ' characters long', array: ' entries' }

const choice = (values: readonly unknown[]) => (values.length > 1 ? `one of ${values.map(quote).join(', ')}` : values.map(quote).join())

const quote = (value: unknown) => JSON.stringify(value)

/** Names what came instead, and never shows it: it may be a secret, or ten megabytes. */
function instead(input: unknown): string {
  return input === undefined ? MISSING : `, not ${kindOf(input)}`
}

export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number' && !Number.isFinite(value)) return 'a number beyond what JSON can carry'
  if (typeof value === 'boolean') return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** The same, in words. */
export const FIRST_EXPLAINED = { ...FIRST_MISTAKE, error: explain } as const
