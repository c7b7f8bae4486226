import type * as z from 'zod/mini'

/** Stops at the first mistake: input from outside may have a million, and zod would collect them all. */
export const FIRST_MISTAKE = { async: false, abortEarly: true } as const

/** Describes the mistake in a field, as the end of a sentence that begins with the field's name. */
export function explain(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${NOUNS[issue.expected] ?? issue.expected}${instead(issue.input)}`
    case 'invalid_value':
      return `must be ${choice(issue.values)}${issue.input === undefined ? MISSING : ''}`
    case 'invalid_union':
      return issue.discriminator === undefined
        ? 'has an unknown form'
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
  record: 'an object',
  array: 'an array',
}

const MISSING = ', but is missing'

const UNITS: Readonly<Record<string, string>> = { string: ' characters long', array: ' entries' }

const choice = (values: readonly unknown[]) => (values.length > 1 ? `one of ${values.map(quote).join(', ')}` : values.map(quote).join())

const quote = (value: unknown) => JSON.stringify(value)

/** Names the kind of the wrong value, but never shows it: it may be a secret, or ten megabytes. */
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

/** The same, with mistakes in words. */
export const FIRST_EXPLAINED = { ...FIRST_MISTAKE, error: explain } as const
