import type { Vendor } from '../vendor.ts'
import { anthropic } from './anthropic.ts'
import { google } from './google.ts'
import { compatibleChat, openaiChat } from './openai-chat.ts'
import { openaiResponses } from './openai-responses.ts'

/** Where each vendor lives. */
export const mounts = (): readonly { readonly prefix: string; readonly vendor: Vendor }[] => [
  { prefix: '/openai/v1', vendor: openaiChat() },
  { prefix: '/openai/v1', vendor: openaiResponses() },
  ...['/compatible/v1', '/deepseek/v1', '/fireworks/v1', '/ollama/v1'].map((prefix) => ({ prefix, vendor: compatibleChat() })),
  { prefix: '/anthropic', vendor: anthropic() },
  { prefix: '/google', vendor: google() },
]
