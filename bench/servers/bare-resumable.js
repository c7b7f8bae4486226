// @ts-check
import { BareSession } from './bare-session.js'

/** @typedef {(event: any, seq: number) => void} Emit */

/** Every event of a session, in an array, and where they go. @typedef {{ session: BareSession, events: any[], emit: Emit }} Kept */

/** @type {Map<string, Kept>} */
const sessions = new Map()

/** The least that lets a client come back: nothing is ever thrown away. @param {Emit} emit */
export function speakResumable(emit) {
  /** @type {Kept | undefined} */
  let kept
  return (/** @type {any} */ event) => {
    const resume = event.session?.extensions?.uamp?.resume
    if (resume) {
      kept = sessions.get(resume.session_id)
      if (!kept) return emit({ type: 'session.error', error: { code: 'not_found' } }, 0)
      kept.emit = emit
      emit({ type: 'session.created', session_id: resume.session_id }, 0)
      for (const each of kept.events) if (each.seq > resume.after) emit(each, each.seq)
      return
    }
    kept ??= open(emit)
    kept.session.receive(event)
  }
}

/** @param {Emit} emit @returns {Kept} */
function open(emit) {
  /** @type {any[]} */
  const events = []
  const session = new BareSession((event, seq) => {
    events.push(event)
    kept.emit(event, seq)
  })
  /** @type {Kept} */
  const kept = { session, events, emit }
  sessions.set(session.id, kept)
  return kept
}
