import type { EventOf, ServerEvent } from '../../client/index.ts'
import type { Usage } from '../../protocol/usage.ts'
import { wholeInput } from '../../protocol/usage.ts'
import { count } from '../models/facts.ts'
import type { Media } from './media.ts'
import type { Page } from './page.ts'

type Delta = EventOf<'response.delta'>['delta']

interface Place {
  readonly page: Page
  readonly media: Media
}

/** Shows one event on the page. Most events are not shown. */
export function show(event: ServerEvent, place: Place): void {
  const { page } = place
  switch (event.type) {
    case 'response.created':
      page.spoke = false
      return page.end()
    case 'response.delta':
      page.spoke = true
      return showDelta(event.delta, place)
    case 'thinking':
      page.spoke = true
      return page.aside(event.content)
    case 'transcript.delta':
      page.spoke = true
      return page.answer(event.transcript)
    case 'progress':
      return page.note(progress(event))
    case 'payment.error':
      return page.note(`payment refused: ${event.message}`, 'yellow')
    case 'response.done':
      return showEnd(event, place)
    case 'response.cancelled':
      page.note('(cancelled)')
      return page.end()
    case 'response.error':
    case 'session.error':
      page.error(`${event.error.code}: ${event.error.message}`)
      return page.end()
    default:
  }
}

function showEnd({ response: { output, usage } }: EventOf<'response.done'>, place: Place): void {
  const { page } = place
  if (output.length === 0) page.note('(no answer)')
  // An agent may say everything in `response.done`.
  if (!page.spoke) for (const item of output) showDelta(item, place)
  page.end()
  if (page.shown && usage) page.note(usageText(usage))
}

function showDelta(delta: Delta, { page, media }: Place): void {
  switch (delta.type) {
    case 'text':
      return page.answer(delta.text)
    case 'thinking':
      return page.aside(delta.thinking)
    case 'tool_call':
      return page.call(delta.tool_call)
    case 'tool_progress':
      return page.note(`  ${delta.tool_progress.text}`)
    case 'tool_result':
      return page.note(`← ${delta.tool_result.result}`, delta.tool_result.is_error ? 'red' : 'cyan')
    case 'image':
    case 'audio':
    case 'video':
    case 'file': {
      const { line, picture } = media.show(delta, page.shown)
      if (picture !== undefined && page.shown) page.picture(picture)
      return page.line(line)
    }
  }
}

function progress({ message, stage, target, percent, step, total_steps: total }: EventOf<'progress'>): string {
  const what = message ?? (step === undefined ? (stage ?? target) : `step ${step}${total === undefined ? '' : ` of ${total}`}`)
  return `· ${what}${percent === undefined ? '' : ` (${percent} %)`}`
}

/** Tokens and cost: `120 in (80 cached) · 34 out · $0.0021`. */
export function usageText(usage: Usage): string {
  const { output_tokens, output, reasoning, cache_read, cached_tokens, cost } = usage
  const input = wholeInput(usage)
  const cached = cache_read ?? cached_tokens ?? 0
  const parts = [
    `${count(input)} in${cached > 0 ? ` (${count(cached)} cached)` : ''}`,
    `${count(output_tokens ?? output ?? 0)} out${reasoning ? ` (${count(reasoning)} thought)` : ''}`,
  ]
  if (cost?.total_cost !== undefined) parts.push(money(cost.total_cost, cost.currency ?? 'USD'))
  return parts.join(' · ')
}

function money(amount: number, currency: string): string {
  const digits = amount === 0 || amount >= 1 ? 2 : Math.min(8, 1 - Math.floor(Math.log10(amount)))
  return currency === 'USD' ? `$${amount.toFixed(digits)}` : `${amount.toFixed(digits)} ${currency}`
}
