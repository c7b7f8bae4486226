import * as z from 'zod/mini'
import { list, type Slot } from '../../protocol/json.ts'
import { limits } from '../../protocol/limits.ts'
import type { GivenItem, Item, MessageItem, Part } from './model.ts'

/** What a dialect calls the parts of a message. */
interface PartNames {
  readonly text: string
  readonly audio: string
}

/** Both dialects have the same names, except for parts of the assistant. */
const INPUT: PartNames = { text: 'input_text', audio: 'input_audio' }
const IMAGE = 'input_image'

/** How a dialect reads and shows items. */
export interface ItemWords {
  readonly schema: z.ZodMiniType<GivenItem>
  show(item: Item, withAudio?: (audio: string, role: MessageItem['role']) => string): Slot
}

const Id = z.string().check(z.maxLength(limits.idLength))
const id = z.nullish(Id)

const FunctionCall = z.pipe(
  z.object({
    type: z.literal('function_call'),
    id,
    call_id: id,
    name: z.string().check(z.regex(limits.toolName, 'is not the name of a function')),
    arguments: z.string(),
  }),
  // GA allows a call without a `call_id`; an output then names the item.
  z.transform((call) => ({ ...call, call_id: call.call_id ?? call.id ?? call.name })),
)
const FunctionCallOutput = z.object({ type: z.literal('function_call_output'), id, call_id: Id, output: z.string() })

const imagePart = z.pipe(
  z.object({ type: z.literal(IMAGE), image_url: z.string(), detail: z.nullish(z.string()) }),
  z.transform(({ image_url: url, detail }): Part => ({ type: 'image', url, detail: detail ?? undefined })),
)

export function itemWords(assistant: PartNames): ItemWords {
  const message = z.discriminatedUnion('role', [
    messageOf('user', [textPart(INPUT.text), audioPart(INPUT.audio), imagePart]),
    messageOf('assistant', [textPart(assistant.text), audioPart(assistant.audio)]),
    messageOf('system', [textPart(INPUT.text)]),
  ])
  return {
    schema: z.discriminatedUnion('type', [message, FunctionCall, FunctionCallOutput]),
    show(item, withAudio) {
      const common = { id: item.id, object: 'realtime.item', type: item.type, status: item.status }
      switch (item.type) {
        case 'message': {
          const { role, content } = item
          const audio = withAudio && ((recording: string): string => withAudio(recording, role))
          const names = role === 'assistant' ? assistant : INPUT
          return { ...common, role, content: content.map((part) => showPart(part, names, audio)) }
        }
        case 'function_call':
          return { ...common, call_id: item.call_id, name: item.name, arguments: item.arguments }
        case 'function_call_output':
          return { ...common, call_id: item.call_id, output: item.output }
      }
    },
  }
}

function messageOf<R extends MessageItem['role'], const P extends readonly [PartSchema, ...PartSchema[]]>(role: R, parts: P) {
  return z.object({
    type: z.literal('message'),
    id,
    role: z.literal(role),
    content: list(z.discriminatedUnion('type', parts), limits.list),
  })
}

type PartSchema = ReturnType<typeof textPart | typeof audioPart> | typeof imagePart

function textPart(name: string) {
  return z.pipe(
    z.object({ type: z.literal(name), text: z.string() }),
    z.transform(({ text }): Part => ({ type: 'text', text })),
  )
}

function audioPart(name: string) {
  return z.pipe(
    z.object({ type: z.literal(name), audio: z.nullish(z.string()), transcript: z.nullish(z.string()) }),
    z.transform(({ audio, transcript }): Part => ({ type: 'audio', audio: audio ?? undefined, transcript: transcript ?? null })),
  )
}

function showPart(part: Part, names: PartNames, withAudio: ((audio: string) => string) | undefined): Slot {
  switch (part.type) {
    case 'text':
      return { type: names.text, text: part.text }
    case 'audio':
      return {
        type: names.audio,
        transcript: part.transcript,
        ...(withAudio && part.audio !== undefined && { audio: withAudio(part.audio) }),
      }
    case 'image':
      return { type: IMAGE, image_url: part.url, ...(part.detail !== undefined && { detail: part.detail }) }
  }
}
