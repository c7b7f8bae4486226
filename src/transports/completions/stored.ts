import { jsonAnswer } from '../../core/edge/json-answer.ts'
import { mayDo } from '../../core/basics/principal.ts'
import { weigh } from '../../core/basics/weight.ts'
import type { Action } from '../../core/ports/access.ts'
import type { StoredResponse } from '../../core/ports/session.ts'
import type { Host, KnownCall, Streamed } from '../../core/ports/transport.ts'
import { UampError } from '../../protocol/errors.ts'
import type { EventOf } from '../../protocol/events.ts'
import { plainText, type Message } from '../../protocol/message.ts'
import { openAiHeaders } from '../../wire/openai/headers.ts'
import { listBody, notInList, pagingIn } from '../../wire/openai/paging.ts'
import { parseBody } from '../../wire/parse.ts'
import { toCompletion } from './completion.ts'
import { choiceKey, listOf, ownerOf, setCompletion, type KeptCompletion, type Metadata } from './kept.ts'
import { UpdateRequest } from './schema.ts'

/** Completions that one list with a filter looks at. Older ones are not found by it. */
const SEARCHED = 10_000

/** How often a change is tried while others change the same completion. */
const ATTEMPTS = 16

type Completion = { readonly id: string } & Readonly<Record<string, unknown>>

interface Found {
  readonly kept: KeptCompletion
  readonly version: number
  /** One for each choice. */
  readonly turns: readonly StoredResponse[]
  readonly ends: readonly EventOf<'response.done'>[]
}

/** Stored completions, for their owners. Each is made again of the responses of its choices. */
export class StoredCompletions {
  readonly #host: Host

  constructor(host: Host) {
    this.#host = host
  }

  /** `GET /chat/completions/{id}`. */
  async get(call: KnownCall): Promise<Response | Streamed> {
    return this.#json(shown(await this.#find(call)), call)
  }

  /** `POST /chat/completions/{id}`: replaces the metadata. */
  async update(call: KnownCall): Promise<Response | Streamed> {
    const { metadata } = parseBody(UpdateRequest, await call.text())
    // Of several changes at once the last one counts. Each requires the version that it read, so that none brings back a deleted completion.
    for (let attempt = 1; ; attempt++) {
      const found = await this.#find(call, 'call')
      const kept = { ...found.kept, metadata: metadata ?? {} }
      const { key, value, options } = setCompletion(ownerOf(call.principal), kept)
      try {
        await this.#host.store.set(key, value, { ...options, ifVersion: found.version, sync: true })
        return this.#json(shown({ ...found, kept }), call)
      } catch (thrown) {
        if (UampError.from(thrown).code !== 'conflict') throw thrown
        if (attempt === ATTEMPTS) throw new UampError('conflict', 'Others are changing this completion: try again', { cause: thrown })
      }
    }
  }

  /** `DELETE /chat/completions/{id}`, with everything that was written of it. */
  async delete(call: KnownCall): Promise<Response | Streamed> {
    const { kept, turns } = await this.#find(call)
    for (const { session } of turns) await this.#host.gateway.remove(session, call.principal)
    return this.#json({ object: 'chat.completion.deleted', id: kept.head.id, deleted: true }, call)
  }

  /** `GET /chat/completions`: `model` and `metadata[key]` choose among them. */
  async list(call: KnownCall): Promise<Response | Streamed> {
    const query = new URL(call.request.url).searchParams
    const { after, limit, order } = pagingIn(query, 'asc')
    const owner = ownerOf(call.principal)
    if (after !== null && !(await this.#host.store.get(choiceKey(owner, after, 0)))) throw notInList(after)
    const wanted = filterIn(query)
    const data: Completion[] = []
    const hold = this.#host.gateway.hold(call.principal, 0)
    let bytes = 0
    let cursor: string | undefined
    try {
      for (let searched = 0; searched < SEARCHED;) {
        const page = await this.#host.store.list(listOf(owner), {
          descending: order === 'desc',
          limit: limit + 1,
          ...(cursor === undefined ? { afterSort: after ?? undefined } : { after: cursor }),
        })
        for (const { value } of page.items) {
          const kept = value as unknown as KeptCompletion
          const found = wanted(kept) ? await this.#whole({ kept, version: 0 }, call) : undefined
          if (!found) continue
          if (data.length === limit) return this.#json(listBody(data, true), call)
          const completion = shown(found)
          hold.grow((bytes += weigh(completion)))
          data.push(completion)
        }
        searched += page.items.length
        cursor = page.next
        if (cursor === undefined) break
      }
    } finally {
      hold.close()
    }
    return this.#json(listBody(data, false), call)
  }

  /** `GET /chat/completions/{id}/messages`: what it was asked with. */
  async messages(call: KnownCall): Promise<Response | Streamed> {
    const { kept, turns } = await this.#find(call)
    const { after, limit, order } = pagingIn(new URL(call.request.url).searchParams, 'asc')
    const all = (turns[0]?.input ?? []).map((message, index) => messageOf(message, `${kept.head.id}-${index}`))
    const listed = order === 'asc' ? all : all.toReversed()
    const from = after === null ? 0 : listed.findIndex(({ id }) => id === after) + 1
    if (after !== null && from === 0) throw notInList(after)
    return this.#json(listBody(listed.slice(from, from + limit), listed.length > from + limit), call)
  }

  async #find(call: KnownCall, action: Action = 'read'): Promise<Found> {
    const id = call.params['id'] ?? ''
    const stored = await this.#host.store.get(choiceKey(ownerOf(call.principal), id, 0))
    const kept = stored?.value as unknown as KeptCompletion | undefined
    if (kept) this.#host.gateway.authorize(call.principal, action, kept.head.model)
    const found = stored && (await this.#whole({ kept: stored.value as unknown as KeptCompletion, version: stored.version }, call))
    if (!found) throw new UampError('not_found', `Completion with id '${id}' not found.`, { details: { param: 'completion_id' } })
    return found
  }

  /** Undefined: the caller may not see it, or one of its choices failed or is gone. */
  async #whole({ kept, version }: Pick<Found, 'kept' | 'version'>, { principal, access }: KnownCall): Promise<Found | undefined> {
    if (!mayDo(access, principal, { action: 'read', agent: kept.head.model })) return undefined
    const turns: StoredResponse[] = []
    const ends: EventOf<'response.done'>[] = []
    for (let index = 0; index < kept.choices; index++) {
      const stored = index === 0 ? undefined : await this.#host.store.get(choiceKey(ownerOf(principal), kept.head.id, index))
      const choice = index === 0 ? kept : (stored?.value as unknown as KeptCompletion | undefined)
      const turn = choice && (await this.#host.gateway.response(choice.response, principal))
      if (!turn) return undefined
      turns.push(turn)
      ends.push(endOf(turn, choice.end))
    }
    return { kept, version, turns, ends }
  }

  #json(body: object, { quota, principal }: KnownCall): Response | Streamed {
    return jsonAnswer(body, { headers: openAiHeaders(quota), gateway: this.#host.gateway, principal })
  }
}

function endOf({ id, output, usage }: StoredResponse, { status, extensions, signature }: KeptCompletion['end']): EventOf<'response.done'> {
  return {
    type: 'response.done',
    response: { id, status, output: [...output], ...(usage && { usage }), ...(extensions && { extensions }) },
    ...(signature !== undefined && { signature }),
  } as EventOf<'response.done'>
}

function shown({ kept: { head, shape, metadata }, turns, ends }: Found): Completion {
  const functions = new Set(turns[0]?.config.tools?.map((tool) => tool.function.name))
  return { ...toCompletion(head, { ...shape, functions, usage: true }, { ends, metadata }), id: head.id }
}

function filterIn(query: URLSearchParams): (kept: KeptCompletion) => boolean {
  const model = query.get('model')
  const pairs = [...query].flatMap(([name, value]) => {
    const key = /^metadata\[(.*)\]$/s.exec(name)?.[1]
    return key === undefined ? [] : [[key, value] as const]
  })
  const has = (metadata: Metadata, key: string, value: string) => Object.hasOwn(metadata, key) && metadata[key] === value
  return ({ head, metadata }) => (model === null || head.model === model) && pairs.every(([key, value]) => has(metadata, key, value))
}

function messageOf(message: Message, id: string): Completion {
  const { role, name, tool_call_id, tool_calls, content_items } = message
  return {
    id,
    role,
    content: plainText(message),
    name: name ?? null,
    ...(tool_call_id !== undefined && { tool_call_id }),
    ...(tool_calls && {
      tool_calls: tool_calls.map((call) => ({
        id: call.id,
        type: 'function',
        function: { name: call.name, arguments: call.arguments },
      })),
    }),
    // Parts of other kinds than text, in the terms of UAMP, as requests may have them.
    ...(content_items && { content_items }),
  }
}
