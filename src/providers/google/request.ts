import type { ModelRequest } from '../../core/ports/provider.ts'
import { isRecord } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { present } from '../../wire/fields.ts'
import { modelFor, ownSlot, settingsFor, usableChoice, type Settings } from '../../wire/openai/settings.ts'
import { toContents } from './contents.ts'
import { hostedTools } from './hosted-tools.ts'
import { traitsOf, type Traits } from './models.ts'

/** Settings in Google's own words that pass unchanged: of the request, and of its `generationConfig`. */
const OF_REQUEST = ['safetySettings', 'cachedContent'] as const
const OF_GENERATION = ['topK', 'topP', 'maxOutputTokens', 'stopSequences', 'responseModalities', 'speechConfig', 'mediaResolution'] as const

/** Gemini API, OpenAI compatibility: what each effort means there. */
const BUDGETS: Readonly<Record<string, number>> = { minimal: 1_024, low: 1_024, medium: 8_192 }
const MOST = 24_576
/** The smallest budget of models that always think. */
const LEAST = 128

type Own = Readonly<Record<string, unknown>>

export interface GenerateRequest {
  readonly model: string
  readonly body: Readonly<Record<string, unknown>>
}

/** `name`: the provider's name, under which its settings stand. */
export function toRequest({ model: usual, messages, config }: ModelRequest, name = 'google'): GenerateRequest {
  const own = ownSlot(config, name)
  const settings = settingsFor(config, name)
  const model = modelFor(config, name) ?? usual
  const traits = traitsOf(model)
  const { system, contents } = toContents(messages, traits)
  const hosted = hostedTools(config)
  const format = formatFor(config, { traits, hosted })
  const instructions = [config.instructions ?? '', ...system, format.instruction ?? ''].filter((text) => text !== '').join('\n\n')
  const generation = {
    ...present({
      temperature: settings.temperature,
      topP: settings.top_p,
      maxOutputTokens: settings.max_tokens,
      stopSequences: settings.stop === undefined ? undefined : [settings.stop].flat(),
      seed: settings.seed,
      responseLogprobs: settings.logprobs,
      logprobs: settings.logprobs ? settings.top_logprobs : undefined,
      presencePenalty: settings.presence_penalty,
      frequencyPenalty: settings.frequency_penalty,
      thinkingConfig: thinkingFor(traits, own, settings.reasoning_effort),
    }),
    ...format.config,
    ...picked(own, OF_GENERATION),
  }
  const body = {
    contents,
    ...(instructions !== '' && { systemInstruction: { parts: [{ text: instructions }] } }),
    ...(hosted.length > 0 ? { tools: hosted } : toolsOf(config, settings)),
    ...(Object.keys(generation).length > 0 && { generationConfig: generation }),
    ...picked(own, OF_REQUEST),
  }
  return { model, body }
}

function picked(own: Own, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.filter((key) => own[key] !== undefined).map((key) => [key, own[key]]))
}

function toolsOf({ tools }: SessionConfig, settings: Settings): Record<string, unknown> {
  if (!tools || tools.length === 0) return {}
  const functionDeclarations = tools.map(({ function: { name, description, parameters } }) => ({
    name,
    ...(description !== undefined && { description }),
    ...(parameters && { parametersJsonSchema: parameters }),
  }))
  const wanted = usableChoice(settings.tool_choice, tools)
  const mode = wanted === undefined || wanted === 'auto' ? undefined : wanted === 'none' ? 'NONE' : 'ANY'
  return {
    tools: [{ functionDeclarations }],
    ...(mode && {
      toolConfig: { functionCallingConfig: { mode, ...(typeof wanted === 'object' && { allowedFunctionNames: [wanted.name] }) } },
    }),
  }
}

/** UAMP events §8.3. Before Gemini 3, JSON and tools exclude each other. Then the model is told in words. */
function formatFor(
  { response_format: wanted, tools = [] }: SessionConfig,
  { traits: { third }, hosted }: { readonly traits: Traits; readonly hosted: readonly object[] },
): { config?: Own; instruction?: string } {
  if (wanted === undefined || wanted.type === 'text') return {}
  const schema = wanted.type === 'json_schema' ? wanted.json_schema.schema : undefined
  if (!third && (tools.length > 0 || hosted.length > 0)) {
    const valid = schema ? `, valid by this JSON Schema: ${JSON.stringify(schema)}` : ''
    return { instruction: `Give your final answer as JSON and nothing else${valid}` }
  }
  return { config: { responseMimeType: 'application/json', ...(schema && { responseJsonSchema: schema }) } }
}

/** How much to think: by Google's own settings, or by the effort that OpenAI's clients name. Thoughts are always shown. */
function thinkingFor({ thinking, pro }: Traits, own: Own, effort: string | undefined): Own | undefined {
  if (isRecord(own['thinkingConfig'])) return { includeThoughts: true, ...own['thinkingConfig'] }
  if (thinking === 'none') return undefined
  if (effort === undefined) return { includeThoughts: true }
  if (thinking === 'budget')
    return { includeThoughts: effort !== 'none', thinkingBudget: effort === 'none' ? (pro ? LEAST : 0) : (BUDGETS[effort] ?? MOST) }
  const least = pro ? 'low' : 'minimal'
  const thinkingLevel = effort === 'none' || effort === 'minimal' ? least : effort === 'low' || effort === 'medium' ? effort : 'high'
  return { includeThoughts: true, thinkingLevel }
}
