import { type Facts, imageFact, isObject, type Json, objects, type Problem, string, unknownKey } from '../vendor.ts'

const TOP = 'contents tools toolConfig safetySettings systemInstruction generationConfig cachedContent model store serviceTier'
const CONFIG =
  'stopSequences responseMimeType responseSchema responseJsonSchema _responseJsonSchema responseModalities candidateCount maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs speechConfig thinkingConfig imageConfig mediaResolution enableEnhancedCivicAnswers'
const PART =
  'text inlineData fileData functionCall functionResponse executableCode codeExecutionResult thought thoughtSignature partMetadata mediaResolution videoMetadata'
const DATA = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse', 'executableCode', 'codeExecutionResult']
/** The OpenAPI subset that `parameters` and `responseSchema` understand. */
const SCHEMA =
  'type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum'

const bad = (message: string): Problem => ({ status: 400, message })
const unknownName = (name: string, at: string) =>
  bad(`Invalid JSON payload received. Unknown name "${name}" at '${at}': Cannot find field.`)

/** What Gemini answers 400 to. `issued` are the thought signatures that it gave out. */
export function checkContents(body: Json, { rounds }: Facts, issued: ReadonlySet<string>): Problem | undefined {
  const extra = unknownKey(body, TOP)
  if (extra) return unknownName(extra, 'request')
  const contents = objects(body.contents)
  if (contents.length === 0) return bad('* GenerateContentRequest.contents: contents is not specified')
  const turns = joined(contents)
  return config(body) ?? declarations(body) ?? partsOf(contents) ?? functionTurns(turns) ?? signatures(turns, rounds, issued)
}

/** A turn may come as several contents of one role: Google's own client sends back every chunk as one. */
function joined(contents: readonly Json[]): Json[] {
  const turns: { role: unknown; parts: Json[] }[] = []
  for (const { role = 'user', parts } of contents) {
    const last = turns.at(-1)
    if (last && last.role === role) last.parts.push(...objects(parts))
    else turns.push({ role, parts: objects(parts) })
  }
  return turns
}

function config(body: Json): Problem | undefined {
  const settings = isObject(body.generationConfig) ? body.generationConfig : {}
  const extra = unknownKey(settings, CONFIG)
  if (extra) return unknownName(extra, 'generation_config')
  const thinking = isObject(settings.thinkingConfig) ? settings.thinkingConfig : {}
  if (thinking.thinkingBudget !== undefined && thinking.thinkingLevel !== undefined)
    return bad('You can only set one of thinking budget and thinking level.')
  if (settings.responseSchema !== undefined && settings.responseJsonSchema !== undefined)
    return bad('Only one of response_schema and response_json_schema may be set.')
  return subset(settings.responseSchema, 'generation_config.response_schema')
}

function subset(schema: unknown, at: string): Problem | undefined {
  if (!isObject(schema)) return undefined
  const extra = unknownKey(schema, SCHEMA)
  if (extra) return unknownName(extra, at)
  for (const [name, inner] of Object.entries(isObject(schema.properties) ? schema.properties : {})) {
    const problem = subset(inner, `${at}.properties[${name}]`)
    if (problem) return problem
  }
  return subset(schema.items, `${at}.items`)
}

function declarations(body: Json): Problem | undefined {
  for (const tool of objects(body.tools)) {
    for (const [at, declaration] of objects(tool.functionDeclarations).entries()) {
      const where = `tools[0].function_declarations[${at}]`
      const extra = unknownKey(declaration, 'name description parameters parametersJsonSchema response responseJsonSchema behavior')
      if (extra) return unknownName(extra, where)
      if (!/^[a-zA-Z_][\w.:-]{0,127}$/.test(string(declaration.name)))
        return bad(`* GenerateContentRequest.${where}.name: Invalid function name.`)
      const problem = subset(declaration.parameters, `${where}.parameters`)
      if (problem) return problem
    }
  }
  return undefined
}

function partsOf(contents: readonly Json[]): Problem | undefined {
  for (const [at, { role, parts }] of contents.entries()) {
    if (role !== undefined && !['user', 'model', 'function'].includes(string(role))) return bad('Please use a valid role: user, model.')
    if (objects(parts).length === 0) return bad(`* GenerateContentRequest.contents[${at}].parts: contents.parts must not be empty.`)
    for (const [index, part] of objects(parts).entries()) {
      const where = `contents[${at}].parts[${index}]`
      const extra = unknownKey(part, PART)
      if (extra) return unknownName(extra, where)
      if (DATA.filter((key) => part[key] !== undefined).length !== 1) {
        return bad(`* GenerateContentRequest.${where}.data: required oneof field 'data' must have one initialized field`)
      }
      const { inlineData, functionCall, functionResponse } = part
      if (isObject(inlineData) && !imageFact(inlineData.mimeType, inlineData.data))
        return bad(`Invalid value at '${where}.inline_data.data' (TYPE_BYTES), Base64 decoding failed`)
      if (functionCall !== undefined && !(isObject(functionCall) && typeof functionCall.name === 'string'))
        return bad(`Invalid value at '${where}.function_call'`)
      if (functionResponse !== undefined && !(isObject(functionResponse) && isObject(functionResponse.response))) {
        return bad(`Invalid value at '${where}.function_response.response' (type.googleapis.com/google.protobuf.Struct)`)
      }
    }
  }
  return undefined
}

const having = (content: Json | undefined, key: string): Json[] => objects(content?.parts).filter((part) => part[key] !== undefined)

function functionTurns(contents: readonly Json[]): Problem | undefined {
  for (const [at, content] of contents.entries()) {
    const calls = having(content, 'functionCall').length
    const answers = having(contents[at + 1], 'functionResponse').length
    if (calls > 0 && calls !== answers) {
      return bad(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      )
    }
    if (having(content, 'functionResponse').length > 0 && having(contents[at - 1], 'functionCall').length === 0) {
      return bad('Please ensure that function response turn comes immediately after a function call turn.')
    }
    const after = contents[at - 1]
    if (calls > 0 && !(after && after.role !== 'model')) {
      return bad('Please ensure that function call turn comes immediately after a user turn or after a function response turn.')
    }
  }
  return undefined
}

/** Google's own way out for calls that another model made. */
const SKIP = new Set(['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'])

/** Gemini 3, thought signatures: the first call of each step of the current turn carries the signature that it came with. */
function signatures(contents: readonly Json[], rounds: number, issued: ReadonlySet<string>): Problem | undefined {
  const current = new Set(contents.filter((content) => having(content, 'functionCall').length > 0).slice(-rounds || contents.length))
  for (const [at, content] of contents.entries()) {
    for (const [index, part] of objects(content.parts).entries()) {
      const signature = string(part.thoughtSignature)
      if (signature !== '' && !issued.has(signature) && !SKIP.has(signature)) return bad('Corrupted thought signature.')
      const first = index === objects(content.parts).findIndex((one) => one.functionCall !== undefined)
      if (current.has(content) && first && signature === '') {
        const { name } = part.functionCall as Json
        return bad(
          `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${string(name)}\`, position ${at + 1}.`,
        )
      }
    }
  }
  return undefined
}
