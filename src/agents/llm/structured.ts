import { jsonIn } from '../../protocol/json.ts'
import { mistakesIn } from '../../core/tools/json-schema.ts'
import type { ResponseFormat } from '../../protocol/session-config.ts'

/** A text in the requested form, or its mistakes. */
export type Checked = { readonly text: string; readonly mistakes?: undefined } | { readonly mistakes: readonly string[] }

/** The check for a requested form of the answer (UAMP events §8.3). */
export function checkerOf(format: ResponseFormat | undefined): ((text: string) => Checked) | undefined {
  if (!format || format.type === 'text') return undefined
  const schema = format.type === 'json_schema' ? (format.json_schema.schema ?? {}) : { type: 'object' }
  return (text) => {
    const json = unfenced(text)
    const value = jsonIn(json)
    if (value === undefined) return { mistakes: ['It is not JSON'] }
    const mistakes = mistakesIn(schema, value)
    return mistakes.length > 0 ? { mistakes } : { text: json }
  }
}

/** Models without a JSON mode often put JSON into a Markdown block. */
function unfenced(given: string): string {
  const text = given.trim()
  if (!text.startsWith('```') || !text.endsWith('```') || !text.includes('\n')) return given
  return text.slice(text.indexOf('\n') + 1, -3).trim()
}

/** The message to the model about an answer with mistakes. */
export function complaint(mistakes: readonly string[]): string {
  return `Your answer does not have the requested form: ${mistakes.join('; ')}. Answer again, with nothing but the corrected JSON.`
}
