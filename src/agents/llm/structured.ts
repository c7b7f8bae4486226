import { parseJson } from '../../protocol/json.ts'
import { mistakesIn } from '../../core/tools/json-schema.ts'
import type { ResponseFormat } from '../../protocol/session-config.ts'

/** A text as it was asked for, or what is wrong with it. */
export type Checked = { readonly text: string; readonly mistakes?: undefined } | { readonly mistakes: readonly string[] }

/** How an answer is checked, where its form was asked for (UAMP events §8.3). */
export function checkerOf(format: ResponseFormat | undefined): ((text: string) => Checked) | undefined {
  if (!format || format.type === 'text') return undefined
  const schema = format.type === 'json_schema' ? (format.json_schema.schema ?? {}) : { type: 'object' }
  return (text) => {
    const json = unfenced(text)
    let value: unknown
    try {
      value = parseJson(json)
    } catch {
      return { mistakes: ['It is not JSON'] }
    }
    const mistakes = mistakesIn(schema, value)
    return mistakes.length > 0 ? { mistakes } : { text: json }
  }
}

/** Models that have no mode for it like to put JSON into a block of Markdown. */
function unfenced(given: string): string {
  const text = given.trim()
  if (!text.startsWith('```') || !text.endsWith('```') || !text.includes('\n')) return given
  return text.slice(text.indexOf('\n') + 1, -3).trim()
}

/** What the model is told about an answer that does not do. */
export function complaint(mistakes: readonly string[]): string {
  return `Your answer does not have the form that was asked for: ${mistakes.join('; ')}. Answer again, with nothing but the corrected JSON.`
}
