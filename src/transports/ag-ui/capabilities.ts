import type { AgentPort } from '../../core/ports/agent.ts'

/** `AgentCapabilities` of AG-UI 1.0. */
export function capabilitiesOf({ name, description, capabilities }: AgentPort, { httpBinary }: { readonly httpBinary: boolean }): object {
  const { provider, modalities, tools, supports_thinking, file } = capabilities
  const has = (kind: string): boolean => modalities.includes(kind)
  return {
    identity: { name, type: 'uamp', provider, ...(description !== undefined && { description }) },
    transport: { streaming: true, websocket: false, httpBinary, pushNotifications: false, resumable: true },
    tools: { supported: tools?.supports_tools ?? true, parallelCalls: tools?.supports_parallel_tools ?? true, clientProvided: true },
    state: { snapshots: true, deltas: true, memory: true, persistentState: false },
    reasoning: { supported: supports_thinking, streaming: supports_thinking, encrypted: supports_thinking },
    multimodal: {
      input: { image: has('image'), audio: has('audio'), video: has('video'), pdf: file?.supports_pdf ?? has('file'), file: has('file') },
      output: { image: has('image'), audio: has('audio') },
    },
    humanInTheLoop: { supported: true, approvals: true, interrupts: true, approveWithEdits: false },
    custom: { uamp: { protocolVersions: ['1.0', '0.0'], capabilities } },
  }
}
