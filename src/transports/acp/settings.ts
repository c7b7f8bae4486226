import { choicesOf, chosenIn } from '../../core/agent-kit/choices.ts'
import type { Capabilities } from '../../protocol/capabilities.ts'
import { uampIn, type Slot } from '../../protocol/json.ts'
import type { SessionConfig } from '../../protocol/session-config.ts'
import { RPC, RpcError } from '../../wire/json-rpc.ts'

type Named = { readonly id: string; readonly name?: string | undefined; readonly description?: string | undefined }

export interface SessionSettings {
  readonly modes?: { readonly currentModeId: string | undefined; readonly availableModes: readonly Slot[] }
  readonly configOptions?: readonly Slot[]
}

/** What a client may set in a session, and its current values: ACP's modes, and its config options, which include the modes. */
export function settingsOf(capabilities: Capabilities | undefined, config: SessionConfig): SessionSettings {
  const { models, modes } = choicesOf(capabilities)
  const { model, mode } = chosenIn(config)
  const configOptions = [
    ...(modes.length > 0 ? [select('mode', 'Mode', { choices: modes, chosen: mode })] : []),
    // A single model leaves nothing to choose.
    ...(models.length > 1 ? [select('model', 'Model', { choices: models, chosen: model })] : []),
  ]
  const availableModes = modes.map((choice) => ({ id: choice.id, ...shown(choice) }))
  return {
    ...(modes.length > 0 && { modes: { currentModeId: current(modes, mode), availableModes } }),
    ...(configOptions.length > 0 && { configOptions }),
  }
}

/** The updates that tell a client its settings. */
export function settingsUpdates({ modes, configOptions }: SessionSettings): Slot[] {
  return [
    ...(modes ? [{ sessionUpdate: 'current_mode_update', currentModeId: modes.currentModeId }] : []),
    ...(configOptions ? [{ sessionUpdate: 'config_option_update', configOptions }] : []),
  ]
}

/** The update that tells a client the commands of an agent, if it has any. */
export function commandsUpdates(capabilities: Capabilities | undefined): Slot[] {
  const availableCommands = choicesOf(capabilities).commands.map(({ name, description, hint }) => ({
    name,
    description: description ?? name,
    ...(hint !== undefined && { input: { hint } }),
  }))
  return availableCommands.length > 0 ? [{ sessionUpdate: 'available_commands_update', availableCommands }] : []
}

/** The extensions of a session with another choice. */
export function choose(
  capabilities: Capabilities | undefined,
  { extensions }: SessionConfig,
  { option, value }: { readonly option: string; readonly value: string | boolean },
): Slot {
  const { models, modes } = choicesOf(capabilities)
  const choices: readonly Named[] = option === 'mode' ? modes : option === 'model' ? models : []
  if (choices.length === 0) throw new RpcError(RPC.invalidParams, `This agent has no option "${option}"`)
  if (!choices.some(({ id }) => id === value)) {
    throw new RpcError(RPC.invalidParams, `"${option}" must be one of ${choices.map(({ id }) => `"${id}"`).join(', ')}`)
  }
  return { ...extensions, uamp: { ...uampIn(extensions), [option]: value } }
}

function select(
  id: string,
  name: string,
  { choices, chosen }: { readonly choices: readonly Named[]; readonly chosen: string | undefined },
): Slot {
  const options = choices.map((choice) => ({ value: choice.id, ...shown(choice) }))
  return { id, name, category: id, type: 'select', currentValue: current(choices, chosen), options }
}

function current(choices: readonly Named[], chosen: string | undefined): string | undefined {
  return (choices.find(({ id }) => id === chosen) ?? choices[0])?.id
}

function shown({ id, name, description }: Named): Slot {
  return { name: name ?? id, ...(description !== undefined && { description }) }
}
