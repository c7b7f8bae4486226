import type { EventOf, ServerEvent } from '../../client/index.ts'
import type { Page } from './page.ts'

type Delta = EventOf<'response.delta'>['delta']
type Media = Extract<Delta, { type: 'image' | 'audio' | 'video' | 'file' }>

/** Shows one event on the page. Most events are not shown. */
export function show(event: ServerEvent, page: Page): void {
  switch (event.type) {
    case 'response.created':
      page.spoke = false
      return
    case 'response.delta':
      page.spoke = true
      return showDelta(event.delta, page)
    case 'thinking':
      page.spoke = true
      return page.aside(event.content)
    case 'transcript.delta':
      page.spoke = true
      return page.answer(event.transcript)
    case 'progress':
      return page.note(progress(event))
    case 'payment.required':
      return page.note(`payment wanted: ${event.requirements.amount} ${event.requirements.currency}; this chat cannot pay`, 'yellow')
    case 'response.done':
      if (event.response.output.length === 0) page.note('(no answer)')
      // An agent may say everything in `response.done`.
      if (!page.spoke) for (const item of event.response.output) showDelta(item, page)
      return page.end()
    case 'response.cancelled':
      page.note('(cancelled)')
      return page.end()
    case 'response.error':
    case 'session.error':
      page.note(`${event.error.code}: ${event.error.message}`, 'red')
      return page.end()
    default:
  }
}

function showDelta(delta: Delta, page: Page): void {
  switch (delta.type) {
    case 'text':
      return page.answer(delta.text)
    case 'thinking':
      return page.aside(delta.thinking)
    case 'tool_call':
      return page.note(`→ ${delta.tool_call.name} ${delta.tool_call.arguments}`, 'cyan')
    case 'tool_progress':
      return page.note(`  ${delta.tool_progress.text}`)
    case 'tool_result':
      return page.note(`← ${delta.tool_result.result}`, delta.tool_result.is_error ? 'red' : 'cyan')
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      page.end()
      return page.answer(`${media(delta)}\n`)
  }
}

function media(item: Media): string {
  const facts = item.type === 'file' ? [item.filename, item.mime_type] : [item.format, seconds(item), item.description]
  return `[${[item.type, ...facts, item.content_id].filter((fact) => fact !== undefined && fact !== '').join(' ')}]`
}

function seconds(item: Media): string | undefined {
  return 'duration_ms' in item && item.duration_ms !== undefined ? `${item.duration_ms / 1000} s` : undefined
}

function progress({ message, stage, target, percent, step, total_steps: total }: EventOf<'progress'>): string {
  const what = message ?? (step === undefined ? (stage ?? target) : `step ${step}${total === undefined ? '' : ` of ${total}`}`)
  return `· ${what}${percent === undefined ? '' : ` (${percent} %)`}`
}
