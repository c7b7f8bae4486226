// @ts-check

/** `$session` and the like in a request stand for ids that are known when it is sent. */
const PLACE = /\$([a-zA-Z]\w*)/g

/** Where answers tell an id, and what it is called here. @type {readonly [RegExp, string][]} */
const TOLD = [
  [/"session_id":"([^"\\]{1,100})"/, 'session'],
  [/"sessionId":"([^"\\]{1,100})"/, 'acpSession'],
  [/"id":"(resp_[^"\\]{1,100})"/, 'response'],
  [/"id":"(chatcmpl-[^"\\]{1,100})"/, 'completion'],
  [/"response_id":"([^"\\]{1,100})"/, 'turn'],
  [/"call_id":"([^"\\]{1,100})"/, 'call'],
  [/"approval_id":"([^"\\]{1,100})"/, 'approval'],
  [/"approval_request_id":"([^"\\]{1,100})"/, 'approval'],
  [/"id":"(mcpr_[^"\\]{1,200})"/, 'approval'],
  [/"upload_id":"([^"\\]{1,100})"/, 'upload'],
  [/"upload_url":"[^"\\]{1,200}[?&]key=(\w{1,100})"/, 'uploadKey'],
  [/"taskId":"([^"\\]{1,100})"/, 'task'],
  [/"task":\{"id":"([^"\\]{1,100})"/, 'task'],
  [/"id":"([^"\\]{1,100})","contextId"/, 'task'],
  [/"contextId":"([^"\\]{1,100})"/, 'context'],
  [/"item":\{"(?:object":"realtime.item","|type":"message","|)id":"([^"\\]{1,100})"/, 'item'],
  [/"interruptId":"([^"\\]{1,200})"/, 'interrupt'],
  [/"next(?:PageToken)?":"([^"\\]{1,300})"/, 'page'],
  [/acp-connection-id: ([^\r\n]{1,100})/i, 'connection'],
  [/x-session-id: ([^\r\n]{1,100})/i, 'session'],
]

/** What ids are known by name: those of the run, and over them those that one case was told. */
export class Ids {
  /** @param {Ids} [others] that are used where this one knows none */
  constructor(others) {
    this.#others = others
  }

  #others
  /** @type {Map<string, string>} */
  #known = new Map()

  /** @param {string} name @returns {string | undefined} */
  get(name) {
    return this.#known.get(name) ?? this.#others?.get(name)
  }

  /** @param {string} name @param {string} id */
  set(name, id) {
    this.#known.set(name, id)
  }

  /** Remembers the ids in an answer. @param {string} text */
  learn(text) {
    // They stand at its beginning; what follows is what the agent said.
    const head = text.slice(0, 4000)
    for (const [pattern, name] of TOLD) {
      const found = pattern.exec(head)?.[1]
      if (found !== undefined) this.#known.set(name, found)
    }
  }

  /** @param {string} text @param {(id: string) => string} [escaped] */
  fill(text, escaped = (id) => id) {
    return text.replaceAll(PLACE, (whole, name) => {
      const id = this.get(name)
      return id === undefined ? whole : escaped(id)
    })
  }
}
